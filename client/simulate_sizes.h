/*
 * Sizes of pages for traces that have none, or not for all.
 */
#ifndef SUNPROXY_CLIENT_SIMULATE_SIZES_H
#define SUNPROXY_CLIENT_SIMULATE_SIZES_H

#include "trace/trace.h"

/*
 * Sets sizes[i] of each request whose URL a file names, lines of URL, tab and bytes; empty lines
 * and those that begin with '#' are passed over, and "http://host" is "http://host/". EX_OK, or the
 * exit status after a complaint.
 */
int simulate_sizes_read(const char *path, const struct trace *trace, uint32_t *sizes);

/*
 * Gives the requests for URLs whose size is unknown the mean of the known ones (each URL counting
 * once) and says so on stderr. False, after a complaint, if no size is known, or not even that of
 * every second URL. EX_OK, EX_DATAERR or EX_SOFTWARE.
 */
int simulate_sizes_complete(const char *path, const struct trace *trace, uint32_t *sizes);

#endif
