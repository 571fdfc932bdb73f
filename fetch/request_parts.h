/*
 * What a request's files share: its state and end (request_state.c), a hop from its turn to its
 * transfer (request_hop.c), and what drives it from hop to hop (request.c). request.c calls
 * request_hop.c; both call request_state.c.
 */
#ifndef SUNPROXY_FETCH_REQUEST_PARTS_H
#define SUNPROXY_FETCH_REQUEST_PARTS_H

#include "fetch/request.h"

static inline bool
request_is_cancelled(const struct request *r)
{
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed);
}

/* request_finish() with a formatted sentence. */
void request_finish_with(struct request *r, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Ends it because an address or a port is refused: that of the request at first, and of a redirect
 * later. */
void request_deny(struct request *r, const char *reason);

/* For the limit of what it is at now. */
void request_arm_timer(struct request *r);

void request_enter_stage(struct request *r, enum request_stage stage);

/* It does not wait for the next turn any more. */
void request_leave_paused(struct request *r);

/* The time of a pause by its consumer has ended. Harmless without. */
void request_end_hold(struct request *r);

/* With its turn, and r->target in place: resolves the name, or begins the transfer. */
void request_start_hop(struct request *r);

#endif
