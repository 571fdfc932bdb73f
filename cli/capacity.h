/*
 * The text form of a cache's capacity, as after --capacity.
 */
#ifndef SUNPROXY_CLI_CAPACITY_H
#define SUNPROXY_CLI_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct capacity {
    uint64_t urls;        /* 0: not bounded in URLs */
    uint64_t bytes;       /* 0: not bounded in bytes */
    double percent;       /* of distinct URLs, until capacity_resolve(); 0: no */
    double percent_bytes; /* of their bytes, likewise */
};

/*
 * "700" is 700 URLs; "64M", "1.5GB", "800B" are bytes (base/units.h); "5%" or "0.5%" is a share of
 * a trace's distinct URLs, "5%B" of their bytes. False for anything else, and for 0.
 */
bool capacity_parse(const char *text, struct capacity *capacity);

/* "0", "0B", "0%", "0.0%B": a capacity of 0, which capacity_parse() refuses. */
bool capacity_is_nothing(const char *text);

/*
 * A sentence on what is wrong with a text that capacity_parse() refuses; it names the nearest unit
 * if the unit is wrong. Returns why.
 */
const char *capacity_explain(const char *text, char *why, size_t size);

/* Turns shares into numbers of URLs or bytes: rounded, at least one. */
void capacity_resolve(struct capacity *capacity, uint64_t distinct_urls, uint64_t distinct_bytes);

/* A share of 1, "12.5 %"; "< 0.001 %" of the smallest. Returns text. */
const char *capacity_format_share(double share, char *text, size_t size);

/* "700 URLs", "64 MiB", "700 URLs and 64 MiB", "no bound". `size` of 64 is enough. Returns text. */
const char *capacity_format(uint64_t urls, uint64_t bytes, char *text, size_t size);

#endif
