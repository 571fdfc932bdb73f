/*
 * Sizes of pages for traces that have none, or not for all.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_SIZES_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_SIZES_H

#include "trace/trace.h"

/*
 * Sets sizes[i] of each request whose URL a file names, lines of URL, tab and bytes; empty lines
 * and those that begin with '#' are passed over, and "http://host" is "http://host/". EX_OK, or the
 * exit status after a complaint.
 */
int simulate_sizes_read(const char *path, const struct trace *trace, uint32_t *sizes);

/* URLs by whether their size is known. */
struct simulate_sizes_known {
    uint64_t known;
    uint64_t unknown;
    uint32_t median; /* of the known ones, where some are unknown and most are known */
};

/*
 * Gives the requests for URLs whose size is unknown the median of the known ones (each URL counting
 * once) and says so on stderr: half of the pages are no larger, where a few huge ones draw the mean
 * to what hardly any page is. EX_OK; EX_DATAERR, without a word, if the sizes of most URLs are
 * unknown; EX_SOFTWARE after a complaint. `count` is set but for the last.
 */
int simulate_sizes_complete(const char *path, const struct trace *trace, uint32_t *sizes,
                            struct simulate_sizes_known *count);

#endif
