/*
 * Probes: requests of the proxy's own that show whether the members of an origin serve
 * (origin_route.h). A member that fails several probes one behind the other is down: no request
 * goes there until it has passed several. Members are left for a time after failures of requests
 * besides, as without probes.
 *
 * Probes begin at the interval, and sooner while the last ones contradict the state of the member,
 * so that it changes soon, or not.
 *
 * The first probe that fails has the member down at once, so that none begins to get requests before
 * it serves. And the name of each member is looked up once: one that does not resolve is left.
 *
 * The sender of the probes states when they are sent and what came of each. One probe of a member
 * is under way at a time. Safe on any thread.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_PROBE_H
#define SUNPROXY_ORIGINS_ORIGIN_PROBE_H

#include "origins/origin_route.h"

#define ORIGIN_PROBE_INTERVAL_US ((int64_t)5 * 1000000)
#define ORIGIN_PROBE_TIMEOUT_US ((int64_t)2 * 1000000)
#define ORIGIN_PROBE_HASTE 4 /* times as often while probes contradict the state */
#define ORIGIN_PROBE_FALL 3u
#define ORIGIN_PROBE_RISE 2u

/* Is a probe of the member due? If so one has begun, whose end is to be stated. */
bool origin_probe_begin(struct origin_route *route, unsigned member, int64_t now_us);

/* Is the name of the member to be looked up? If so that has begun. */
bool origin_probe_look_up(struct origin_route *route, unsigned member);

/* It does not resolve, for this reason: the member is left, and then looked up by a request. */
void origin_probe_unresolved(struct origin_route *route, unsigned member, int64_t now_us,
                             const char *reason);

enum origin_probe_result {
    ORIGIN_PROBE_PASSED,
    ORIGIN_PROBE_FAILED,
    ORIGIN_PROBE_UNKNOWN, /* it has not reached the member, and not by the member's fault */
};

/* It has ended; `reason` says why it failed. */
void origin_probe_end(struct origin_route *route, unsigned member, int64_t now_us,
                      enum origin_probe_result result, const char *reason);

/* Has a response with this status passed? */
bool origin_probe_accepts(const struct origin_route *route, unsigned status);

#endif
