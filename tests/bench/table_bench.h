/*
 * Measures the cache's hash table (cache/table.h) by itself: threads that look entries up and
 * replace them, with entries and objects at chosen places in memory and locks of a chosen kind.
 *
 * Entries have the size that they have under LRU. Each stands for an object with a URL, made as the
 * cache makes them. A lookup is table_find() of an entry that is there, under the lock for reading.
 * An update removes the entry that it finds and inserts it again, under the lock for writing.
 */
#ifndef SUNPROXY_TESTS_BENCH_TABLE_BENCH_H
#define SUNPROXY_TESTS_BENCH_TABLE_BENCH_H

#include <stdbool.h>
#include <stdint.h>

/* Where entries and objects begin, in cache lines of 64 bytes. */
enum table_layout {
    TABLE_AS_IS,      /* where malloc() puts them, as in the daemon */
    TABLE_ALIGNED,    /* entries at the beginning of a line */
    TABLE_MISALIGNED, /* entries 40 bytes behind it, so that what a lookup reads is in two lines */
    TABLE_ALL_ALIGNED /* entries and objects at the beginning of a line */
};

enum table_lock { TABLE_MUTEX, TABLE_RWLOCK };

struct table_bench_config {
    enum table_layout layout;
    enum table_lock lock;
    unsigned parts; /* tables, each with a lock of its own; an entry's hash chooses one */
    unsigned threads;
    unsigned lookups; /* per cent; the others are updates */
    uint64_t entries; /* in all parts */
    int64_t duration_us;
};

struct table_bench_result {
    uint64_t operations;
    uint64_t missing; /* operations that found no entry: none */
    int64_t elapsed_us;
    int64_t cpu_us; /* of the process, meanwhile */
};

struct table_bench;

/* Makes tables and entries. NULL without memory. */
struct table_bench *table_bench_create(const struct table_bench_config *config);

/* Runs the threads for the duration. False if they cannot be started. */
bool table_bench_run(struct table_bench *bench, struct table_bench_result *result);

/* The number of entries that begin at that offset in their cache line (0 to 63); for tests. */
uint64_t table_bench_count_at(const struct table_bench *bench, unsigned offset);

/* Do the tables have all entries, and no others? For tests. */
bool table_bench_is_valid(const struct table_bench *bench);

/* NULL is harmless. */
void table_bench_destroy(struct table_bench *bench);

#endif
