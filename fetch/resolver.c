#include "fetch/resolver.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/thread.h"
#include "base/tree.h"

TAILQ_HEAD(query_list, resolver_query);

enum name_state {
    NAME_QUEUED,  /* its queries are in the queue */
    NAME_RUNNING, /* with a thread */
    NAME_CACHED   /* in cache */
};

/* In the tree as long as it lives. */
struct name {
    RB_ENTRY(name) node;
    TAILQ_ENTRY(name) link; /* in cache */
    enum name_state state;
    struct query_list waiting;
    struct queue_item turn;    /* when running */
    struct resolved *resolved; /* when cached */
    int64_t expires_us;        /* when cached */
    char host[];
};

RB_HEAD(name_tree, name);
TAILQ_HEAD(name_list, name);

struct worker {
    pthread_t thread;
    struct pool *pool;
    bool busy; /* inside getaddrinfo(); protected by the pool's lock */
};

/*
 * What the threads share. It outlives the resolver as long as a thread is stuck: one reference is
 * the resolver's, one each thread's.
 */
struct pool {
    _Atomic unsigned references;
    struct resolver_config config; /* constant */
    pthread_mutex_t lock;
    pthread_cond_t work;
    /* protected by lock */
    struct name_tree names;
    struct queue *queue;    /* of queries until a thread takes their name, then of running names */
    struct name_list cache; /* in the order in which they expire */
    struct query_list answered;
    size_t cached;
    bool stopping;
    unsigned idle;         /* threads that wait for work */
    unsigned worker_count; /* threads started, as names come that find none idle */
    struct worker workers[];
};

struct resolver {
    struct pool *pool;
};

static int
compare_names(struct name *a, struct name *b)
{
    return strcmp(a->host, b->host);
}

TREE_GENERATE(name_tree, name, node, compare_names)

struct resolved *
resolved_create(size_t count)
{
    struct resolved *resolved = calloc(1, sizeof(*resolved) + count * sizeof(union address));

    if (!resolved)
        return NULL;
    atomic_init(&resolved->references, 1);
    resolved->count = count;
    return resolved;
}

struct resolved *
resolved_retain(struct resolved *resolved)
{
    atomic_fetch_add_explicit(&resolved->references, 1, memory_order_relaxed);
    return resolved;
}

void
resolved_release(struct resolved **resolved)
{
    struct resolved *gone = *resolved;

    *resolved = NULL;
    if (gone && atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) == 1)
        free(gone);
}

static struct resolved *
resolved_from(const struct addrinfo *list)
{
    const struct addrinfo *info;
    struct resolved *resolved;
    size_t count = 0;

    for (info = list; info && count < RESOLVED_MAX; info = info->ai_next)
        if (info->ai_family == AF_INET || info->ai_family == AF_INET6)
            count++;
    resolved = resolved_create(count);
    if (!resolved)
        return NULL;
    count = 0;
    for (info = list; info && count < resolved->count; info = info->ai_next) {
        if (info->ai_family == AF_INET)
            memcpy(&resolved->list[count++].in, info->ai_addr, sizeof(struct sockaddr_in));
        else if (info->ai_family == AF_INET6)
            memcpy(&resolved->list[count++].in6, info->ai_addr, sizeof(struct sockaddr_in6));
    }
    return resolved;
}

/* Takes a name out of the tree and frees it. It is in no list, and no query waits for it. */
static void
drop_name(struct pool *pool, struct name *name)
{
    RB_REMOVE(name_tree, &pool->names, name);
    resolved_release(&name->resolved);
    free(name);
}

static void
drop_cached(struct pool *pool, struct name *name)
{
    TAILQ_REMOVE(&pool->cache, name, link);
    pool->cached--;
    drop_name(pool, name);
}

/* The last one out. */
static void
pool_release(struct pool *pool)
{
    struct name *name;

    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    while ((name = RB_ROOT(&pool->names)))
        drop_name(pool, name);
    queue_destroy(pool->queue);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* Answers the waiting queries, and keeps a result that is worth it. [lock] */
static void
settle(struct pool *pool, struct name *name, int error, struct resolved *resolved)
{
    struct resolver_query *query;
    bool answered = false;

    while ((query = TAILQ_FIRST(&name->waiting))) {
        TAILQ_REMOVE(&name->waiting, query, link);
        query->name = NULL;
        query->error = error;
        query->resolved = resolved ? resolved_retain(resolved) : NULL;
        TAILQ_INSERT_TAIL(&pool->answered, query, link);
        answered = true;
    }
    if (resolved && pool->config.ttl_us > 0 && pool->config.max_names > 0 && !pool->stopping) {
        name->state = NAME_CACHED;
        name->resolved = resolved;
        name->expires_us = clock_monotonic_us() + pool->config.ttl_us;
        TAILQ_INSERT_TAIL(&pool->cache, name, link);
        if (++pool->cached > pool->config.max_names)
            drop_cached(pool, TAILQ_FIRST(&pool->cache));
    } else {
        resolved_release(&resolved);
        drop_name(pool, name);
    }
    if (answered && !pool->stopping)
        pool->config.notify(pool->config.context);
}

/* A thread takes a name: its queries need no turns any more. [lock] */
static void
begin(struct name *name, struct resolver_query *first, struct queue *queue)
{
    struct resolver_query *query;

    name->state = NAME_RUNNING;
    queue_hand_over(&first->turn, &name->turn);
    TAILQ_FOREACH(query, &name->waiting, link)
    queue_remove(queue, &query->turn);
}

/*
 * Looks the name of a query up whose turn has come. The name stays in the tree meanwhile, so that
 * other queries can wait for it.
 */
static void
look_up(struct pool *pool, struct worker *worker, struct resolver_query *first)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct resolved *resolved = NULL;
    struct name *name = first->name;
    int error;

    begin(name, first, pool->queue);
    /* The end of a look-up can give more than one client its turn. */
    if (pool->idle && queue_queued(pool->queue))
        pthread_cond_signal(&pool->work);
    worker->busy = true;
    pthread_mutex_unlock(&pool->lock);

    error = pool->config.getaddrinfo(name->host, NULL, &hints, &list);
    if (error == 0) {
        resolved = resolved_from(list);
        if (!resolved)
            error = EAI_MEMORY;
        else if (resolved->count == 0)
            error = EAI_NONAME;
        if (error)
            resolved_release(&resolved);
        if (list)
            pool->config.freeaddrinfo(list);
    }

    pthread_mutex_lock(&pool->lock);
    worker->busy = false;
    queue_remove(pool->queue, &name->turn);
    settle(pool, name, error, resolved);
}

static struct resolver_query *
query_of(struct queue_item *turn)
{
    return container_of(turn, struct resolver_query, turn);
}

static void *
work(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;

    pthread_mutex_lock(&pool->lock);
    while (!pool->stopping) {
        struct queue_item *turn = queue_next(pool->queue);

        if (turn) {
            look_up(pool, worker, query_of(turn));
        } else {
            pool->idle++;
            pthread_cond_wait(&pool->work, &pool->lock);
            pool->idle--;
        }
    }
    pthread_mutex_unlock(&pool->lock);
    pool_release(pool);
    return NULL;
}

/* Signals are for the threads that the program made for them. */
static bool
start_worker(struct pool *pool, struct worker *worker)
{
    int failed;

    worker->pool = pool;
    atomic_fetch_add(&pool->references, 1);
    failed = thread_start(&worker->thread, work, worker);
    if (failed)
        atomic_fetch_sub(&pool->references, 1);
    return !failed;
}

struct resolver *
resolver_create(const struct resolver_config *config)
{
    struct resolver *resolver = calloc(1, sizeof(*resolver));
    struct pool *pool = calloc(1, sizeof(*pool) + config->threads * sizeof(struct worker));
    const struct queue_limits limits = {
        .opening = config->threads,
        .client_opening = config->per_client,
    };

    if (!resolver || !pool)
        goto no_memory;
    pool->queue = queue_create(&limits, CLIENT_LOOKUPS);
    if (!pool->queue)
        goto no_memory;
    if (pthread_mutex_init(&pool->lock, NULL) != 0)
        goto no_memory;
    if (pthread_cond_init(&pool->work, NULL) != 0) {
        pthread_mutex_destroy(&pool->lock);
        goto no_memory;
    }
    atomic_init(&pool->references, 1);
    pool->config = *config;
    RB_INIT(&pool->names);
    TAILQ_INIT(&pool->cache);
    TAILQ_INIT(&pool->answered);
    resolver->pool = pool;
    /* One at least; the others are not needed before names come faster than they are found. */
    if (!start_worker(pool, &pool->workers[0])) {
        resolver_destroy(resolver);
        return NULL;
    }
    pool->worker_count = 1;
    return resolver;

no_memory:
    if (pool)
        queue_destroy(pool->queue);
    free(pool);
    free(resolver);
    return NULL;
}

void
resolver_destroy(struct resolver *resolver)
{
    struct pool *pool;
    struct name *name;
    unsigned idle = 0;

    if (!resolver)
        return;
    pool = resolver->pool;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    /* A name that hangs counts to its client no more. */
    RB_FOREACH(name, name_tree, &pool->names)
    queue_remove(pool->queue, &name->turn);
    /* From here on no thread becomes busy, and a busy thread never looks at its worker's handle. */
    for (unsigned i = 0; i < pool->worker_count; i++) {
        if (pool->workers[i].busy)
            pthread_detach(pool->workers[i].thread);
        else
            pool->workers[idle++].thread = pool->workers[i].thread;
    }
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < idle; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pool_release(pool);
    free(resolver);
}

static struct name *
find(struct pool *pool, const char *host)
{
    struct name *name = RB_ROOT(&pool->names);

    while (name) {
        int order = strcmp(host, name->host);

        if (order == 0)
            return name;
        name = order < 0 ? RB_LEFT(name, node) : RB_RIGHT(name, node);
    }
    return NULL;
}

static struct name *
add_name(struct pool *pool, const char *host)
{
    size_t size = strlen(host) + 1;
    struct name *name = calloc(1, sizeof(*name) + size);

    if (!name)
        return NULL;
    memcpy(name->host, host, size);
    name->state = NAME_QUEUED;
    TAILQ_INIT(&name->waiting);
    RB_INSERT(name_tree, &pool->names, name);
    return name;
}

/* Drops a name that no query waits for any more, unless a thread is with it. [lock] */
static void
drop_unwanted(struct pool *pool, struct name *name)
{
    if (name->state == NAME_QUEUED && TAILQ_EMPTY(&name->waiting))
        drop_name(pool, name);
}

/* Something can be looked up: finds a thread for it. [lock] */
static void
call_thread(struct pool *pool)
{
    /* A thread that cannot be started is no failure: the name waits for one that there is. */
    if (queue_queued(pool->queue) > pool->idle && pool->worker_count < pool->config.threads &&
        start_worker(pool, &pool->workers[pool->worker_count]))
        pool->worker_count++;
    pthread_cond_signal(&pool->work);
}

/* Has a query wait for a name that is not cached. False without memory. [lock] */
static bool
wait_for(struct pool *pool, struct resolver_query *query, struct client *client, struct name *name)
{
    if (name->state == NAME_QUEUED) {
        /* Every look-up takes one thread: clients take turns, their names do not. */
        if (!queue_add(pool->queue, &query->turn, client, ""))
            return false;
        call_thread(pool);
    }
    query->name = name;
    query->pending = true;
    TAILQ_INSERT_TAIL(&name->waiting, query, link);
    return true;
}

enum resolver_answer
resolver_lookup(struct resolver *resolver, struct resolver_query *query, struct client *client,
                const char *host)
{
    struct pool *pool = resolver->pool;
    enum resolver_answer answer = RESOLVER_PENDING;
    int64_t now = clock_monotonic_us();
    struct name *name;

    query->error = 0;
    query->resolved = NULL;
    pthread_mutex_lock(&pool->lock);
    while ((name = TAILQ_FIRST(&pool->cache)) && name->expires_us <= now)
        drop_cached(pool, name);
    name = find(pool, host);
    if (!name)
        name = add_name(pool, host);
    if (!name) {
        answer = RESOLVER_NO_MEMORY;
    } else if (name->state == NAME_CACHED) {
        query->resolved = resolved_retain(name->resolved);
        answer = RESOLVER_ANSWERED;
    } else if (!wait_for(pool, query, client, name)) {
        drop_unwanted(pool, name);
        answer = RESOLVER_NO_MEMORY;
    }
    pthread_mutex_unlock(&pool->lock);
    return answer;
}

void
resolver_cancel(struct resolver *resolver, struct resolver_query *query)
{
    struct pool *pool = resolver->pool;
    struct name *name;

    if (!query->pending)
        return;
    pthread_mutex_lock(&pool->lock);
    name = query->name;
    if (name) {
        TAILQ_REMOVE(&name->waiting, query, link);
        query->name = NULL;
        queue_remove(pool->queue, &query->turn);
        drop_unwanted(pool, name);
    } else {
        TAILQ_REMOVE(&pool->answered, query, link);
        resolved_release(&query->resolved);
    }
    query->pending = false;
    pthread_mutex_unlock(&pool->lock);
}

struct resolver_query *
resolver_collect(struct resolver *resolver)
{
    struct pool *pool = resolver->pool;
    struct resolver_query *query;

    pthread_mutex_lock(&pool->lock);
    query = TAILQ_FIRST(&pool->answered);
    if (query) {
        TAILQ_REMOVE(&pool->answered, query, link);
        query->pending = false;
    }
    pthread_mutex_unlock(&pool->lock);
    return query;
}
