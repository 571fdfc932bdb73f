#include "fetch/deadline.h"

/*
 * The end of the whole fetch: the total limit and the pauses that are over. INT64_MAX: there is
 * none any more.
 */
static int64_t
find_end(const struct fetch *fetch)
{
    if (fetch->consumer.request->flags & REQUEST_STREAMS && fetch->stage == FETCH_TRANSFER &&
        fetch->transfer.stage == TRANSFER_BODY)
        return INT64_MAX;
    return fetch->submitted_us + fetch->loop->settings.config.total_timeout_us + fetch->held_us;
}

/* The limit of the phase that a transfer is in. */
static int64_t
find_transfer_deadline(const struct fetch *fetch, const char **what)
{
    const struct fetch_config *config = &fetch->loop->settings.config;

    switch (fetch->transfer.stage) {
    case TRANSFER_CONNECTING:
    case TRANSFER_UNCLEAN:
        *what = "connecting";
        return fetch->stage_since_us + config->connect_timeout_us;
    case TRANSFER_SENDING:
        *what = "sending the body of the request";
        return fetch->transfer.last_byte_us + config->stall_timeout_us;
    case TRANSFER_ASKED:
        *what = "waiting for the first byte of the answer";
        return fetch->stage_since_us + config->first_byte_timeout_us;
    case TRANSFER_ANSWERING:
        *what = "waiting for more of the headers";
        return fetch->transfer.last_byte_us + config->stall_timeout_us;
    case TRANSFER_BODY:
    case TRANSFER_COMPLETE:
    case TRANSFER_ENDED:
        break;
    }
    *what = "waiting for more of the body";
    return fetch->transfer.last_byte_us + config->stall_timeout_us;
}

int64_t
deadline_find(const struct fetch *fetch, const char **what)
{
    const struct fetch_config *config = &fetch->loop->settings.config;
    int64_t end = find_end(fetch);
    int64_t due = end;

    /* Due at once, also if its consumer begins a pause before the loop has ended it. */
    if (fetching_is_complete(fetch)) {
        *what = "its end";
        return fetch->submitted_us;
    }
    if (fetch->held_since_us) {
        *what = "the pause by its consumer";
        return config->pause_timeout_us ? fetch->held_since_us + config->pause_timeout_us
                                        : INT64_MAX;
    }
    if (fetch->stage == FETCH_RESOLVING) {
        due = fetch->stage_since_us + config->resolve_timeout_us;
        *what = "resolving the name";
    } else if (fetch->stage == FETCH_TRANSFER) {
        due = find_transfer_deadline(fetch, what);
    }
    if (due < end)
        return due;
    *what = fetch->stage == FETCH_QUEUED ? "waiting for a turn" : "the whole fetch";
    return end;
}
