/*
 * What is measured of the daemon at a point of the soak, when it has nothing to do and its cache is
 * empty, and the criterion of "flat".
 */
#ifndef SUNPROXY_TESTS_SOAK_FLAT_H
#define SUNPROXY_TESTS_SOAK_FLAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct flat_point {
    uint64_t requests; /* since the start */
    uint64_t resident; /* bytes: VmRSS */
    uint64_t own;      /* bytes of it that are the process's own: RssAnon */
    uint64_t data;     /* bytes of private writable address space: VmData */
    unsigned descriptors;
    unsigned threads;
};

/* Reads all but `requests` from /proc. False if the process is gone. */
bool flat_measure(pid_t pid, struct flat_point *point);

/*
 * Flat means: at every point the same number of descriptors and of threads; and over the last half
 * of the points, the most resident memory is at most FLAT_PERCENT per cent and FLAT_BYTES more than
 * the least. False, with a sentence for each violation, otherwise.
 */
#define FLAT_PERCENT 5u
#define FLAT_BYTES ((uint64_t)8 << 20)
bool flat_check(const struct flat_point *points, unsigned count, struct buf *why);

/*
 * Flat in the phase of rare rows, of five points or more: descriptors and threads as above; and
 * the process's own memory is at the better of the last two points at most FLAT_RARE_BYTES more
 * than at the worse of the second and third. What is leaked stays; what malloc() keeps of a burst
 * comes and goes by two MiB.
 */
#define FLAT_RARE_BYTES ((uint64_t)2 << 20)
bool flat_check_rare(const struct flat_point *points, unsigned count, struct buf *why);

#endif
