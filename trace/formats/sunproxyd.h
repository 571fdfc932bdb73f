/*
 * What sunproxyd's access log and its request database have in common.
 */
#ifndef SUNPROXY_TRACE_FORMATS_SUNPROXYD_H
#define SUNPROXY_TRACE_FORMATS_SUNPROXYD_H

#include "trace/builder.h"

/*
 * Whether a cache with this capacity and policy served it, by the word of the outcome: a coalesced
 * request waited for a fetch.
 */
enum trace_outcome sunproxyd_outcome(struct span word);

#endif
