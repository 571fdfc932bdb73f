/*
 * Measures locks of a sorted linked list: one read-write lock or one mutex for the list, or a mutex
 * for each node. After P. Pacheco, An Introduction to Parallel Programming (2011), section 4.9,
 * whose times are figure 3 of "Exploiting Parallelism in a Proxy Server".
 *
 * Keys are drawn from a range that is much larger than the list, so most lookups and deletions go
 * through half of the list and find nothing, and the list grows with the insertions. With a mutex
 * for each node a thread holds at most two of them, from one node to the next; the other lists have
 * nodes without one.
 */
#ifndef SUNPROXY_TESTS_BENCH_LIST_BENCH_H
#define SUNPROXY_TESTS_BENCH_LIST_BENCH_H

#include <stdbool.h>
#include <stdint.h>

enum list_lock { LIST_RWLOCK, LIST_MUTEX, LIST_NODE_MUTEX };

struct list_bench_config {
    enum list_lock lock;
    unsigned threads;
    uint64_t keys;       /* at the beginning */
    uint64_t operations; /* of all threads, in equal parts */
    unsigned members;    /* per cent of the operations: lookups */
    unsigned inserts;    /* per cent; the others delete */
    uint64_t range;      /* keys are below; larger than `keys` */
    uint64_t seed;       /* of keys and operations */
};

struct list_bench_result {
    uint64_t found;    /* lookups */
    uint64_t inserted; /* insertions of keys that were not there */
    uint64_t deleted;  /* deletions of keys that were */
    int64_t elapsed_us;
    int64_t cpu_us; /* of the process, meanwhile */
};

struct list_bench;

/* Makes the list. NULL without memory. */
struct list_bench *list_bench_create(const struct list_bench_config *config);

/*
 * Runs the threads until all operations are done. False if threads cannot be started or without
 * memory.
 */
bool list_bench_run(struct list_bench *bench, struct list_bench_result *result);

/* The number of keys; UINT64_MAX if they are not in ascending order. Without threads only. */
uint64_t list_bench_count(const struct list_bench *bench);

/* NULL is harmless. */
void list_bench_destroy(struct list_bench *bench);

#endif
