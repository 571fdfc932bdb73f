#include "origins/origin_server.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"

/* ---- servers --------------------------------------------------------------------------------- */

void
origin_server_enter(struct origin_server *server)
{
    atomic_fetch_add_explicit(&server->requests, 1, memory_order_relaxed);
    atomic_fetch_add(&server->in_flight, 1);
}

void
origin_server_exit(struct origin_server *server)
{
    atomic_fetch_sub(&server->in_flight, 1);
}

bool
origin_server_is_full(const struct origin_server *server)
{
    unsigned limit = atomic_load_explicit(&server->limit, memory_order_relaxed);

    return limit && atomic_load(&server->in_flight) >= limit;
}

unsigned
origin_server_fetch_limit(const struct origin_server *server)
{
    unsigned limit = atomic_load_explicit(&server->limit, memory_order_relaxed);
    unsigned tunnels = atomic_load_explicit(&server->tunnels, memory_order_relaxed);

    return limit && tunnels >= limit ? 1 : limit - (limit ? tunnels : 0);
}

static void
destroy(struct shared *shared)
{
    struct origin_server *server = (struct origin_server *)shared;

    free((char *)(uintptr_t)server->key.ptr);
    free(server);
}

struct origin_server *
origin_server_retain(struct origin_server *server)
{
    (void)shared_retain(&server->shared);
    return server;
}

void
origin_server_release(struct origin_server **server)
{
    struct shared *shared = *server ? &(*server)->shared : NULL;

    *server = NULL;
    shared_release(&shared);
}

static pthread_mutex_t reasons = PTHREAD_MUTEX_INITIALIZER; /* protects those of all servers */

void
origin_reason_set(struct origin_reason *reason, const char *sentence)
{
    pthread_mutex_lock(&reasons);
    snprintf(reason->text, sizeof(reason->text), "%s", sentence);
    pthread_mutex_unlock(&reasons);
}

void
origin_reason_get(const struct origin_reason *reason, char *text, size_t size)
{
    pthread_mutex_lock(&reasons);
    snprintf(text, size, "%s", reason->text);
    pthread_mutex_unlock(&reasons);
}

/* ---- sets ------------------------------------------------------------------------------------ */

/* The slot of the key: that of its server, or a free one. */
static struct origin_server **
find_slot(const struct origin_servers *servers, struct span key)
{
    size_t i = hash64_bytes(key) & (servers->size - 1);

    while (servers->slots[i] && !span_equal(servers->slots[i]->key, key))
        i = (i + 1) & (servers->size - 1);
    return &servers->slots[i];
}

/* Makes space for one more: at least half of the slots are free. */
static bool
reserve(struct origin_servers *servers)
{
    struct origin_servers larger = {.size = servers->size ? 2 * servers->size : 16,
                                    .count = servers->count};

    if (2 * (servers->count + 1) <= servers->size)
        return true;
    larger.slots = calloc(larger.size, sizeof(struct origin_server *));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < servers->size; i++)
        if (servers->slots[i])
            *find_slot(&larger, servers->slots[i]->key) = servers->slots[i];
    free(servers->slots);
    *servers = larger;
    return true;
}

/* Takes the key, which is owned. NULL without memory. */
static struct origin_server *
create(struct span key, size_t authority)
{
    struct origin_server *server = calloc(1, sizeof(*server));

    if (!server)
        return NULL;
    shared_init(&server->shared, destroy);
    server->key = key;
    server->authority = span_of(key.ptr, authority);
    return server;
}

static bool
write_key(struct buf *key, struct span authority, const struct origin_probes *probes)
{
    buf_append(key, authority.ptr, authority.len);
    if (probes->path.len)
        buf_printf(key, " %.*s %" PRId64 " %u %u %u", (int)probes->path.len, probes->path.ptr,
                   probes->interval_us, probes->status, probes->fall, probes->rise);
    return !buf_failed(key);
}

struct origin_server *
origin_servers_add(struct origin_servers *servers, struct span authority,
                   const struct origin_probes *probes)
{
    struct origin_server **slot, *server = NULL;
    struct buf key;
    char *own;

    buf_init(&key, SIZE_MAX / 2);
    if (write_key(&key, authority, probes) && reserve(servers)) {
        slot = find_slot(servers, buf_span(&key));
        own = *slot ? NULL : strndup(key.data, key.len);
        if (own) {
            *slot = create(span_of(own, key.len), authority.len);
            servers->count += *slot != NULL;
            if (!*slot)
                free(own);
        }
        server = *slot;
    }
    buf_free(&key);
    return server;
}

struct origin_server *
origin_servers_find(const struct origin_servers *servers, const struct origin_server *like)
{
    return servers->size ? *find_slot(servers, like->key) : NULL;
}

static void
inherit_drained(struct origin_servers *to, struct span authority)
{
    for (size_t i = 0; i < to->size; i++)
        if (to->slots[i] && span_equal(to->slots[i]->authority, authority))
            atomic_store(&to->slots[i]->drained, true);
}

void
origin_servers_inherit(struct origin_servers *to, const struct origin_servers *from)
{
    for (size_t i = 0; i < to->size; i++) {
        struct origin_server *before =
            to->slots[i] ? origin_servers_find(from, to->slots[i]) : NULL;

        if (!before)
            continue;
        atomic_store(&before->limit, atomic_load(&to->slots[i]->limit));
        origin_server_release(&to->slots[i]);
        to->slots[i] = origin_server_retain(before);
    }
    for (size_t i = 0; i < from->size; i++)
        if (from->slots[i] && atomic_load(&from->slots[i]->drained))
            inherit_drained(to, from->slots[i]->authority);
}

void
origin_servers_free(struct origin_servers *servers)
{
    for (size_t i = 0; i < servers->size; i++)
        origin_server_release(&servers->slots[i]);
    free(servers->slots);
    *servers = (struct origin_servers){0};
}
