#include "server/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct worker_counters {
    _Alignas(64) _Atomic uint64_t values[COUNTERS];
};

struct counters {
    struct worker_counters *workers;
    unsigned worker_count;

    pthread_mutex_t lock; /* protects base */
    uint64_t base[COUNTERS];
};

struct counters *
counters_create(unsigned workers)
{
    struct counters *counters = calloc(1, sizeof(*counters));
    size_t size = workers * sizeof(struct worker_counters);

    if (!counters)
        return NULL;
    counters->workers = aligned_alloc(64, size);
    if (!counters->workers) {
        free(counters);
        return NULL;
    }
    memset(counters->workers, 0, size);
    counters->worker_count = workers;
    pthread_mutex_init(&counters->lock, NULL);
    return counters;
}

void
counters_destroy(struct counters *counters)
{
    if (!counters)
        return;
    pthread_mutex_destroy(&counters->lock);
    free(counters->workers);
    free(counters);
}

void
counters_add(struct counters *counters, unsigned worker, enum counter which, uint64_t n)
{
    _Atomic uint64_t *value = &counters->workers[worker].values[which];

    /* One writer: a load and a store do, without a locked instruction. */
    atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static void
sum(struct counters *counters, uint64_t sums[COUNTERS])
{
    for (unsigned which = 0; which < COUNTERS; which++) {
        sums[which] = 0;
        for (unsigned worker = 0; worker < counters->worker_count; worker++)
            sums[which] += atomic_load_explicit(&counters->workers[worker].values[which],
                                                memory_order_relaxed);
    }
}

void
counters_read(struct counters *counters, uint64_t sums[COUNTERS])
{
    /* Summed under the lock: a base set in between would be more than the sum. */
    pthread_mutex_lock(&counters->lock);
    sum(counters, sums);
    for (unsigned which = 0; which < COUNTERS; which++)
        sums[which] -= counters->base[which];
    pthread_mutex_unlock(&counters->lock);
}

void
counters_rebase(struct counters *counters)
{
    pthread_mutex_lock(&counters->lock);
    sum(counters, counters->base);
    pthread_mutex_unlock(&counters->lock);
}
