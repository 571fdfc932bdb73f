/*
 * What the operator learns of origins and of clients at their bounds: fetches that have failed, and
 * fetches and tunnels that had to wait or were refused. Each is counted, and some are logged
 * (log_limit.h): the names and addresses in these lines are for the operator alone.
 *
 * An origin that a row of --origin names, or has named, has counters of its own, and all others
 * share one, so there are at most 64 labels.
 *
 * Safe on any thread.
 */
#ifndef SUNPROXY_SERVER_LOGS_ORIGIN_REPORT_H
#define SUNPROXY_SERVER_LOGS_ORIGIN_REPORT_H

#include "fetch/fetch.h"
#include "proxy/proxy.h"
#include "metrics/metrics.h"
#include "server/http/http_origins.h"

struct origin_report;

/* NULL without memory. */
struct origin_report *origin_report_create(void);

/* NULL is harmless. */
void origin_report_destroy(struct origin_report *report);

/*
 * Requests of the members of these rows, and of the one of peers, are counted from now on, and
 * those of no others. The origin
 * of each member gets counters of its own. Harmless for one that has some; one beyond the 63rd has
 * none, nor has one of more than 62 bytes, as they stand in the name of a metric. Without memory
 * the last rows stay. [one thread at a time]
 */
void origin_report_watch(struct origin_report *report, const struct http_origins *origins,
                         const struct http_origins *peers);

/* Registers the counters. False without memory. */
bool origin_report_register(struct origin_report *report, struct metrics *metrics);

/* A fetch was queued that cannot begin. */
void origin_report_queued(struct origin_report *report, const struct fetch_queued *queued);

/* A client has used up its share of the tunnels. */
void origin_report_tunnel_refused(struct origin_report *report, const struct client *client);

/* A request that a client claims to be a peer's is refused, for this reason. */
void origin_report_peer_refused(struct origin_report *report, struct span client, const char *why);

/*
 * A fetch has ended, or is repeated. What is the origin's fault is logged at once, with the row's
 * member or the origin, the URL and what came of it: failures, which are counted, too, and
 * responses with a status of 5xx. Fetches that are denied are logged as well. One line in a minute
 * is about the same member and the same kind of failure.
 */
void origin_report_fetched(struct origin_report *report, const struct proxy_fetched *fetched);

#endif
