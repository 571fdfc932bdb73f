/*
 * Several traces as one: the parts of a rotated log, or the logs of several servers.
 */
#ifndef SUNPROXY_TRACE_JOIN_H
#define SUNPROXY_TRACE_JOIN_H

#include "trace/trace.h"

/*
 * Joins the parts, `count` at least 1, into one trace in the order of time; requests of one part
 * keep their order. If a part has no times, the parts follow each other as given, and *by_time is
 * false. `options` are those of the whole: its `limit`, `unique` and `sizes_as_read` apply to what
 * is joined, so the parts are loaded without the first two and with the last. Sizes that one part
 * lacks are inferred from another (see trace_load()). The counts of requests left out are sums.
 *
 * The parts remain the caller's, and the whole shares nothing with them. TRACE_NO_MEMORY; or
 * TRACE_NOT_A_TRACE if some parts have URLs and others only numbers.
 */
enum trace_error trace_join(struct trace *const *parts, size_t count,
                            const struct trace_options *options, struct trace **whole,
                            bool *by_time);

#endif
