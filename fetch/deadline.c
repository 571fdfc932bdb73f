#include "fetch/deadline.h"

int64_t
deadline_of_all(const struct request *r)
{
    int64_t limit_us = r->asked.limit_us ? r->asked.limit_us : INT64_MAX;
    int64_t total_us = r->loop->settings.config.total_timeout_us;

    if (r->asked.flags & FETCH_ANY_LENGTH && r->stage == REQUEST_TRANSFER &&
        r->transfer.stage == TRANSFER_BODY && !r->transfer.redirecting)
        total_us = INT64_MAX;
    if (limit_us < total_us)
        total_us = limit_us;
    return total_us == INT64_MAX ? INT64_MAX : r->submitted_us + total_us + r->held_us;
}

/* The limit of the phase that a transfer is in. */
static int64_t
find_transfer_deadline(const struct request *r, const char **what)
{
    const struct fetch_config *config = &r->loop->settings.config;

    switch (r->transfer.stage) {
    case TRANSFER_CONNECTING:
        *what = "connecting";
        return r->stage_since_us + config->connect_timeout_us;
    case TRANSFER_SENDING:
        *what = "sending the body of the request";
        return r->transfer.last_byte_us + config->stall_timeout_us;
    case TRANSFER_ASKED:
        *what = "waiting for the first byte of the answer";
        return r->stage_since_us + config->first_byte_timeout_us;
    case TRANSFER_ANSWERING:
        *what = "waiting for more of the headers";
        return r->transfer.last_byte_us + config->stall_timeout_us;
    case TRANSFER_BODY:
        break;
    }
    *what = "waiting for more of the body";
    return r->transfer.last_byte_us + config->stall_timeout_us;
}

int64_t
deadline_find(const struct request *r, const char **what)
{
    const struct fetch_config *config = &r->loop->settings.config;
    int64_t end = deadline_of_all(r);
    int64_t due = end;

    /* Due at once, also if its consumer begins a pause before the loop has ended it. */
    if (r->complete) {
        *what = "its end";
        return r->submitted_us;
    }
    if (r->held) {
        *what = "the pause by its consumer";
        return config->pause_timeout_us ? r->held_since_us + config->pause_timeout_us : INT64_MAX;
    }
    if (r->stage == REQUEST_RESOLVING) {
        due = r->stage_since_us + config->resolve_timeout_us;
        *what = "resolving the name";
    } else if (r->stage == REQUEST_TRANSFER) {
        due = find_transfer_deadline(r, what);
    }
    if (due < end)
        return due;
    *what = r->stage == REQUEST_QUEUED ? "waiting for a turn" : "the whole fetch";
    return end;
}
