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
    struct resolver *resolver;
    bool busy; /* inside getaddrinfo(); protected by the resolver's lock */
};

/* It stays as long as a thread is stuck: one reference is the owner's, one each thread's. */
struct resolver {
    _Atomic unsigned references;
    struct resolver_config config; /* constant, but for ttl_us, which the lock protects */
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

TREE_GENERATE_BY_STRING(name_tree, name, node, host)

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
drop_name(struct resolver *resolver, struct name *name)
{
    RB_REMOVE(name_tree, &resolver->names, name);
    resolved_release(&name->resolved);
    free(name);
}

static void
drop_cached(struct resolver *resolver, struct name *name)
{
    TAILQ_REMOVE(&resolver->cache, name, link);
    resolver->cached--;
    drop_name(resolver, name);
}

/* The last one out. */
static void
release(struct resolver *resolver)
{
    struct name *name;

    if (atomic_fetch_sub_explicit(&resolver->references, 1, memory_order_acq_rel) != 1)
        return;
    while ((name = RB_ROOT(&resolver->names)))
        drop_name(resolver, name);
    queue_destroy(resolver->queue);
    pthread_cond_destroy(&resolver->work);
    pthread_mutex_destroy(&resolver->lock);
    free(resolver);
}

/* Answers the waiting queries, and keeps a result that is worth it. [lock] */
static void
settle(struct resolver *resolver, struct name *name, int error, struct resolved *resolved)
{
    struct resolver_query *query;
    bool answered = false;

    while ((query = TAILQ_FIRST(&name->waiting))) {
        TAILQ_REMOVE(&name->waiting, query, link);
        query->name = NULL;
        query->error = error;
        query->resolved = resolved ? resolved_retain(resolved) : NULL;
        TAILQ_INSERT_TAIL(&resolver->answered, query, link);
        answered = true;
    }
    if (resolved && resolver->config.ttl_us > 0 && resolver->config.max_names > 0 &&
        !resolver->stopping) {
        name->state = NAME_CACHED;
        name->resolved = resolved;
        name->expires_us = clock_monotonic_us() + resolver->config.ttl_us;
        TAILQ_INSERT_TAIL(&resolver->cache, name, link);
        if (++resolver->cached > resolver->config.max_names)
            drop_cached(resolver, TAILQ_FIRST(&resolver->cache));
    } else {
        resolved_release(&resolved);
        drop_name(resolver, name);
    }
    if (answered && !resolver->stopping)
        resolver->config.notify(resolver->config.context);
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
look_up(struct resolver *resolver, struct worker *worker, struct resolver_query *first)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct resolved *resolved = NULL;
    struct name *name = first->name;
    int error;

    begin(name, first, resolver->queue);
    /* The end of a look-up can give more than one client its turn. */
    if (resolver->idle && queue_queued(resolver->queue))
        pthread_cond_signal(&resolver->work);
    worker->busy = true;
    pthread_mutex_unlock(&resolver->lock);

    error = resolver->config.getaddrinfo(name->host, NULL, &hints, &list);
    if (error == 0) {
        resolved = resolved_from(list);
        if (!resolved)
            error = EAI_MEMORY;
        else if (resolved->count == 0)
            error = EAI_NONAME;
        if (error)
            resolved_release(&resolved);
        if (list)
            resolver->config.freeaddrinfo(list);
    }

    pthread_mutex_lock(&resolver->lock);
    worker->busy = false;
    queue_remove(resolver->queue, &name->turn);
    settle(resolver, name, error, resolved);
}

static void *
work(void *argument)
{
    struct worker *worker = argument;
    struct resolver *resolver = worker->resolver;

    pthread_mutex_lock(&resolver->lock);
    while (!resolver->stopping) {
        struct queue_item *turn = queue_next(resolver->queue);

        if (turn) {
            look_up(resolver, worker, container_of(turn, struct resolver_query, turn));
        } else {
            resolver->idle++;
            pthread_cond_wait(&resolver->work, &resolver->lock);
            resolver->idle--;
        }
    }
    pthread_mutex_unlock(&resolver->lock);
    release(resolver);
    return NULL;
}

/* False if there is no thread to be had. */
static bool
start_worker(struct resolver *resolver)
{
    struct worker *worker = &resolver->workers[resolver->worker_count];

    worker->resolver = resolver;
    atomic_fetch_add(&resolver->references, 1);
    if (thread_start(&worker->thread, work, worker) == 0) {
        resolver->worker_count++;
        return true;
    }
    atomic_fetch_sub(&resolver->references, 1);
    return false;
}

void
resolver_configure(struct resolver *resolver, unsigned per_client, int64_t ttl_us)
{
    const struct queue_limits limits = {
        .opening = resolver->config.threads,
        .client_opening = per_client,
    };

    pthread_mutex_lock(&resolver->lock);
    resolver->config.ttl_us = ttl_us;
    queue_set_limits(resolver->queue, &limits);
    pthread_mutex_unlock(&resolver->lock);
}

struct resolver *
resolver_create(const struct resolver_config *config)
{
    struct resolver *resolver =
        calloc(1, sizeof(*resolver) + config->threads * sizeof(struct worker));
    const struct queue_limits limits = {
        .opening = config->threads,
        .client_opening = config->per_client,
    };

    if (!resolver)
        return NULL;
    resolver->queue = queue_create(&limits, CLIENT_LOOKUPS);
    if (!resolver->queue || pthread_mutex_init(&resolver->lock, NULL) != 0)
        goto failed;
    if (pthread_cond_init(&resolver->work, NULL) != 0) {
        pthread_mutex_destroy(&resolver->lock);
        goto failed;
    }
    atomic_init(&resolver->references, 1);
    resolver->config = *config;
    RB_INIT(&resolver->names);
    TAILQ_INIT(&resolver->cache);
    TAILQ_INIT(&resolver->answered);
    /* One at least; the others are not needed before names come faster than they are found. */
    if (start_worker(resolver))
        return resolver;
    resolver_destroy(resolver);
    return NULL;

failed:
    queue_destroy(resolver->queue);
    free(resolver);
    return NULL;
}

void
resolver_destroy(struct resolver *resolver)
{
    struct name *name;
    unsigned idle = 0;

    if (!resolver)
        return;
    pthread_mutex_lock(&resolver->lock);
    resolver->stopping = true;
    /* A name that hangs counts to its client no more. */
    RB_FOREACH(name, name_tree, &resolver->names)
    queue_remove(resolver->queue, &name->turn);
    /* From here on no thread becomes busy, and a busy thread never looks at its worker's handle. */
    for (unsigned i = 0; i < resolver->worker_count; i++) {
        if (resolver->workers[i].busy)
            pthread_detach(resolver->workers[i].thread);
        else
            resolver->workers[idle++].thread = resolver->workers[i].thread;
    }
    pthread_cond_broadcast(&resolver->work);
    pthread_mutex_unlock(&resolver->lock);
    for (unsigned i = 0; i < idle; i++)
        pthread_join(resolver->workers[i].thread, NULL);
    release(resolver);
}

static struct name *
add_name(struct resolver *resolver, const char *host)
{
    struct name *name = name_tree_add(&resolver->names, host);

    if (!name)
        return NULL;
    name->state = NAME_QUEUED;
    TAILQ_INIT(&name->waiting);
    return name;
}

/* Drops a name that no query waits for any more, unless a thread is with it. [lock] */
static void
drop_unwanted(struct resolver *resolver, struct name *name)
{
    if (name->state == NAME_QUEUED && TAILQ_EMPTY(&name->waiting))
        drop_name(resolver, name);
}

/* Something can be looked up: finds a thread for it. [lock] */
static void
call_thread(struct resolver *resolver)
{
    /* A thread that cannot be started is no failure: the name waits for one that there is. */
    if (queue_queued(resolver->queue) > resolver->idle &&
        resolver->worker_count < resolver->config.threads)
        (void)start_worker(resolver);
    pthread_cond_signal(&resolver->work);
}

/* Has a query wait for a name that is not cached. False without memory. [lock] */
static bool
wait_for(struct resolver *resolver, struct resolver_query *query, struct client *client,
         struct name *name)
{
    if (name->state == NAME_QUEUED) {
        /* Every look-up takes one thread: clients take turns, their names do not. */
        if (!queue_add(resolver->queue, &query->turn, client, ""))
            return false;
        call_thread(resolver);
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
    enum resolver_answer answer = RESOLVER_PENDING;
    int64_t now = clock_monotonic_us();
    struct name *name;

    query->error = 0;
    query->resolved = NULL;
    pthread_mutex_lock(&resolver->lock);
    while ((name = TAILQ_FIRST(&resolver->cache)) && name->expires_us <= now)
        drop_cached(resolver, name);
    name = name_tree_search(&resolver->names, host);
    if (!name)
        name = add_name(resolver, host);
    if (!name) {
        answer = RESOLVER_NO_MEMORY;
    } else if (name->state == NAME_CACHED) {
        query->resolved = resolved_retain(name->resolved);
        answer = RESOLVER_ANSWERED;
    } else if (!wait_for(resolver, query, client, name)) {
        drop_unwanted(resolver, name);
        answer = RESOLVER_NO_MEMORY;
    }
    pthread_mutex_unlock(&resolver->lock);
    return answer;
}

void
resolver_cancel(struct resolver *resolver, struct resolver_query *query)
{
    struct name *name;

    if (!query->pending)
        return;
    pthread_mutex_lock(&resolver->lock);
    name = query->name;
    if (name) {
        TAILQ_REMOVE(&name->waiting, query, link);
        query->name = NULL;
        queue_remove(resolver->queue, &query->turn);
        drop_unwanted(resolver, name);
    } else {
        TAILQ_REMOVE(&resolver->answered, query, link);
        resolved_release(&query->resolved);
    }
    query->pending = false;
    pthread_mutex_unlock(&resolver->lock);
}

struct resolver_query *
resolver_collect(struct resolver *resolver)
{
    struct resolver_query *query;

    pthread_mutex_lock(&resolver->lock);
    query = TAILQ_FIRST(&resolver->answered);
    if (query) {
        TAILQ_REMOVE(&resolver->answered, query, link);
        query->pending = false;
    }
    pthread_mutex_unlock(&resolver->lock);
    return query;
}
