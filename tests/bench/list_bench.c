#include "tests/bench/list_bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"

#define LINE 64u

struct node {
    struct node *next;
    uint64_t key;
    pthread_mutex_t mutex[]; /* one if each node has one; of `next`. None otherwise */
};

struct worker {
    _Alignas(LINE) struct list_bench *bench;
    pthread_t thread;
    uint64_t random;
    uint64_t operations;
    struct list_bench_result result;
};

struct list_bench {
    struct list_bench_config config;
    struct node *head; /* owned; before the first key */
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    struct worker *workers; /* owned */
    pthread_mutex_t gate;   /* held while threads are started */
    atomic_bool failed;     /* there was no memory, or not every thread */
};

/* xorshift (G. Marsaglia, 2003) */
static uint64_t
draw(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random >> 16;
}

static bool
has_mutexes(const struct list_bench *bench)
{
    return bench->config.lock == LIST_NODE_MUTEX;
}

static struct node *
make_node(const struct list_bench *bench, uint64_t key, struct node *next)
{
    struct node *node = malloc(sizeof(*node) + (has_mutexes(bench) ? sizeof(pthread_mutex_t) : 0));

    if (!node)
        return NULL;
    node->key = key;
    node->next = next;
    if (has_mutexes(bench))
        pthread_mutex_init(&node->mutex[0], NULL);
    return node;
}

static void
free_node(const struct list_bench *bench, struct node *node)
{
    if (has_mutexes(bench))
        pthread_mutex_destroy(&node->mutex[0]);
    free(node);
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void
lock_list(struct list_bench *bench, bool writes)
{
    if (bench->config.lock == LIST_MUTEX)
        pthread_mutex_lock(&bench->mutex);
    else if (bench->config.lock == LIST_RWLOCK && writes)
        pthread_rwlock_wrlock(&bench->rwlock);
    else if (bench->config.lock == LIST_RWLOCK)
        pthread_rwlock_rdlock(&bench->rwlock);
}

static void
unlock_list(struct list_bench *bench)
{
    if (bench->config.lock == LIST_MUTEX)
        pthread_mutex_unlock(&bench->mutex);
    else if (bench->config.lock == LIST_RWLOCK)
        pthread_rwlock_unlock(&bench->rwlock);
}

/*
 * The last node before a key; with mutexes of nodes it is locked, hand over hand, and so its `next`
 * does not change.
 */
static struct node *
find_before(struct list_bench *bench, uint64_t key)
{
    bool locks = has_mutexes(bench);
    struct node *node = bench->head;

    if (locks)
        pthread_mutex_lock(&node->mutex[0]);
    while (node->next && node->next->key < key) {
        struct node *next = node->next;

        if (locks) {
            pthread_mutex_lock(&next->mutex[0]);
            pthread_mutex_unlock(&node->mutex[0]);
        }
        node = next;
    }
    return node;
}

static void
release_node(const struct list_bench *bench, struct node *node)
{
    if (has_mutexes(bench))
        pthread_mutex_unlock(&node->mutex[0]);
}

/* ---- operations ------------------------------------------------------------------------------ */

static bool
is_next(const struct node *before, uint64_t key)
{
    return before->next && before->next->key == key;
}

static bool
find_key(struct list_bench *bench, uint64_t key)
{
    struct node *before;
    bool found;

    lock_list(bench, false);
    before = find_before(bench, key);
    found = is_next(before, key);
    release_node(bench, before);
    unlock_list(bench);
    return found;
}

static bool
insert_key(struct list_bench *bench, uint64_t key)
{
    struct node *before, *node = NULL;

    lock_list(bench, true);
    before = find_before(bench, key);
    if (!is_next(before, key)) {
        node = make_node(bench, key, before->next);
        if (node)
            before->next = node;
        else
            atomic_store(&bench->failed, true);
    }
    release_node(bench, before);
    unlock_list(bench);
    return node;
}

static bool
delete_key(struct list_bench *bench, uint64_t key)
{
    struct node *before, *node = NULL;

    lock_list(bench, true);
    before = find_before(bench, key);
    if (is_next(before, key)) {
        node = before->next;
        if (has_mutexes(bench)) /* a thread that stands at the node leaves it */
            pthread_mutex_lock(&node->mutex[0]);
        before->next = node->next;
        release_node(bench, node);
        free_node(bench, node);
    }
    release_node(bench, before);
    unlock_list(bench);
    return node;
}

static void
operate(struct worker *worker)
{
    struct list_bench *bench = worker->bench;
    uint64_t key = draw(&worker->random) % bench->config.range;
    unsigned which = (unsigned)(draw(&worker->random) % 100);

    if (which < bench->config.members)
        worker->result.found += find_key(bench, key);
    else if (which < bench->config.members + bench->config.inserts)
        worker->result.inserted += insert_key(bench, key);
    else
        worker->result.deleted += delete_key(bench, key);
}

static void *
work(void *context)
{
    struct worker *worker = context;

    pthread_mutex_lock(&worker->bench->gate);
    pthread_mutex_unlock(&worker->bench->gate);
    for (uint64_t i = 0; i < worker->operations && !atomic_load(&worker->bench->failed); i++)
        operate(worker);
    return NULL;
}

/* ---- making and measuring -------------------------------------------------------------------- */

static bool
fill(struct list_bench *bench)
{
    uint64_t random = 0x9e3779b97f4a7c15u ^ (bench->config.seed + 1);

    bench->head = make_node(bench, 0, NULL);
    if (!bench->head)
        return false;
    for (uint64_t keys = 0; keys < bench->config.keys && !atomic_load(&bench->failed);)
        keys += insert_key(bench, draw(&random) % bench->config.range);
    return !atomic_load(&bench->failed);
}

struct list_bench *
list_bench_create(const struct list_bench_config *config)
{
    struct list_bench *bench = calloc(1, sizeof(*bench));

    if (!bench)
        return NULL;
    bench->config = *config;
    pthread_mutex_init(&bench->gate, NULL);
    pthread_mutex_init(&bench->mutex, NULL);
    pthread_rwlock_init(&bench->rwlock, NULL);
    bench->workers = aligned_alloc(LINE, config->threads * sizeof(struct worker));
    if (!bench->workers || !fill(bench)) {
        list_bench_destroy(bench);
        return NULL;
    }
    return bench;
}

static unsigned
start_workers(struct list_bench *bench)
{
    const struct list_bench_config *config = &bench->config;
    unsigned started = 0;

    for (; started < config->threads; started++) {
        struct worker *worker = &bench->workers[started];

        *worker = (struct worker){.bench = bench,
                                  .random = 0x9e3779b97f4a7c15u *
                                            (config->seed * config->threads + started + 2),
                                  .operations = config->operations / config->threads +
                                                (started < config->operations % config->threads)};
        if (thread_start(&worker->thread, work, worker) != 0)
            break;
    }
    return started;
}

bool
list_bench_run(struct list_bench *bench, struct list_bench_result *result)
{
    unsigned started;

    *result = (struct list_bench_result){0};
    pthread_mutex_lock(&bench->gate);
    started = start_workers(bench);
    if (started < bench->config.threads)
        atomic_store(&bench->failed, true);
    result->elapsed_us = -clock_monotonic_us();
    result->cpu_us = -clock_read_us(CLOCK_PROCESS_CPUTIME_ID);
    pthread_mutex_unlock(&bench->gate);
    for (unsigned i = 0; i < started; i++) {
        const struct list_bench_result *own = &bench->workers[i].result;

        pthread_join(bench->workers[i].thread, NULL);
        result->found += own->found;
        result->inserted += own->inserted;
        result->deleted += own->deleted;
    }
    result->elapsed_us += clock_monotonic_us();
    result->cpu_us += clock_read_us(CLOCK_PROCESS_CPUTIME_ID);
    return !atomic_load(&bench->failed);
}

uint64_t
list_bench_count(const struct list_bench *bench)
{
    uint64_t count = 0;

    for (const struct node *node = bench->head->next; node; node = node->next) {
        if (node->next && node->next->key <= node->key)
            return UINT64_MAX;
        count++;
    }
    return count;
}

void
list_bench_destroy(struct list_bench *bench)
{
    if (!bench)
        return;
    while (bench->head) {
        struct node *node = bench->head;

        bench->head = node->next;
        free_node(bench, node);
    }
    free(bench->workers);
    pthread_rwlock_destroy(&bench->rwlock);
    pthread_mutex_destroy(&bench->mutex);
    pthread_mutex_destroy(&bench->gate);
    free(bench);
}
