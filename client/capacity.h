/*
 * A cache's capacity as people write it after --capacity.
 */
#ifndef SUNPROXY_CLIENT_CAPACITY_H
#define SUNPROXY_CLIENT_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capacity {
    uint64_t urls;  /* 0: not bounded in URLs */
    uint64_t bytes; /* 0: not bounded in bytes */
    double percent; /* of distinct URLs, until capacity_resolve(); 0: no */
};

/*
 * "700" is 700 URLs; "64M", "1.5GB", "800B" are bytes (base/units.h); "5%" or "0.5%" is a share of
 * a trace's distinct URLs. False for anything else, and for nothing at all.
 */
bool capacity_parse(const char *text, struct capacity *capacity);

/* Turns a share into a number of URLs: rounded, at least one. */
void capacity_resolve(struct capacity *capacity, uint64_t distinct_urls);

/* "700 URLs", "64 MiB", "700 URLs and 64 MiB", "no bound". `size` of 64 is enough. Returns text. */
const char *capacity_format(uint64_t urls, uint64_t bytes, char *text, size_t size);

#endif
