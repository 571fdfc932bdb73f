/*
 * What the control group of this process allows (cgroups(7), version 2), as in a container or by
 * MemoryMax= and CPUQuota= of a unit; and what the daemon's memory is lowered to by it.
 *
 * Nothing here is shared.
 */
#ifndef SUNPROXY_SERVER_LIMITS_CGROUP_H
#define SUNPROXY_SERVER_LIMITS_CGROUP_H

#include <stdbool.h>
#include <stdint.h>

#define CGROUP_MEMBERSHIP "/proc/self/cgroup"
#define CGROUP_ROOT "/sys/fs/cgroup"
/* What the daemon needs beside the cache and what --max-transit bounds, at the defaults. */
#define CGROUP_BASE ((uint64_t)64 << 20)
/* The least memory for what is in transit: the option's, too. */
#define CGROUP_LEAST_TRANSIT ((uint64_t)32 << 20)

struct cgroup_limits {
    uint64_t memory;     /* bytes; UINT64_MAX: not bounded */
    unsigned processors; /* of which it has the time, rounded up; 0: not bounded */
};

/*
 * The least limits of the group that the file `membership` names and of all above it, below the
 * folder `root`. What cannot be read bounds nothing.
 */
struct cgroup_limits cgroup_limits_read(const char *membership, const char *root);

/*
 * Lowers the capacity of the cache (0: not bounded in bytes, which stays) and the memory in transit
 * so that they and the base are within `memory` bytes. Each keeps what it wants up to half of that,
 * and one has what the other does not want; but the memory in transit is not lowered below its
 * least. True if anything was lowered.
 */
bool cgroup_fit_memory(uint64_t memory, uint64_t *capacity, uint64_t *transit);

#endif
