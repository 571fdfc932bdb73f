/*
 * The state of a transfer that its callbacks share: its stage, the order of the answer's parts, the
 * bound of its body, its end, and what its consumer has answered.
 */
#include "base/clock.h"
#include "fetch/transfer_parts.h"

void
transfer_enter(struct transfer *t, enum transfer_stage stage)
{
    t->last_byte_us = clock_monotonic_us();
    t->stage = stage;
    t->owner.stage(t->owner.context, stage);
}

bool
transfer_advance(struct transfer *t, enum answer_part part)
{
    if (t->error)
        return false;
    if (answer_advance(&t->answer, part))
        return true;
    transfer_fail(t, FETCH_ORIGIN_BROKE, "the parts of the answer of %s are out of order",
                  t->target->host);
    return false;
}

uint64_t
transfer_max_body(const struct transfer *t)
{
    uint64_t max = t->settings->config.max_body, by_ratio = t->body.coded * FETCH_MAX_RATIO;

    if (!(t->request->flags & FETCH_ANY_LENGTH))
        return max;
    if (!t->body.decoder)
        return UINT64_MAX;
    /* The work for a stream of HTTP/2 is not divided among turns. */
    return t->status.version >= 20 || by_ratio < max ? max : by_ratio;
}

enum fetch_flow
transfer_take_flow(struct transfer *t, enum fetch_flow flow)
{
    if (flow == FETCH_PAUSE && !(t->request->flags & FETCH_MAY_PAUSE)) {
        transfer_fail(t, FETCH_INTERNAL, "the answer was paused without FETCH_MAY_PAUSE");
        return FETCH_ABORT;
    }
    if (flow == FETCH_ABORT)
        transfer_fail(t, FETCH_INTERNAL, "the answer could not be taken");
    if (flow == FETCH_PAUSE) {
        t->receive_held = true;
        t->owner.begin_hold(t->owner.context);
    }
    return flow;
}

/*
 * libcurl ends a transfer when both bodies are through. An origin that has sent all of its answer
 * need not read the rest of the request (RFC 9112 section 9.5).
 */
void
transfer_check_complete(struct transfer *t)
{
    if (t->has_body && !body_is_complete(&t->body, t->head.stated_length, t->read_bytes))
        return;
    if (!pool_keep_member(&t->owner.connections->pools, &t->lease))
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    if (!t->upload.ended)
        t->owner.complete(t->owner.context);
}
