#include "proxy/body_relay.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct relay {
    /* Constant. */
    struct relay_config config;
    size_t charged;

    pthread_mutex_t lock; /* protects what follows */
    bool left;            /* the client's side has left */
    bool closed;          /* the origin's side has */
    bool complete;        /* the body is */
    bool full;            /* a write took less than it got: a wake is due */
    bool space;           /* that wake has been called, and is still to be taken */
    uint64_t paused;      /* the fetch that waits for more of the body; 0: none */
    size_t first, count;  /* bytes of the body in `ring` */
    struct relay_interim *interims, **last_interim;
    unsigned interim_count;

    char ring[]; /* RELAY_BYTES if there is a body */
};

struct relay *
relay_create(const struct relay_config *config)
{
    size_t size = sizeof(struct relay) + (config->has_body ? RELAY_BYTES : 0);
    struct relay *relay;

    if (!memory_charge(config->account, MEMORY_REQUESTS, size)) {
        errno = ENOBUFS;
        return NULL;
    }
    relay = memory_realloc(config->account, NULL, size);
    if (!relay) {
        memory_uncharge(config->account, MEMORY_REQUESTS, size);
        errno = ENOMEM;
        return NULL;
    }
    *relay = (struct relay){.config = *config, .charged = size};
    relay->last_interim = &relay->interims;
    pthread_mutex_init(&relay->lock, NULL);
    return relay;
}

/* What an interim response takes, of MEMORY_REQUESTS. */
static size_t
interim_size(size_t len)
{
    return sizeof(struct relay_interim) + len;
}

static void
free_interim(struct relay *relay, struct relay_interim *interim)
{
    memory_uncharge(relay->config.account, MEMORY_REQUESTS, interim_size(interim->len));
    free(interim);
}

/* Unlocks, and frees if both sides have left. */
static void
unlock(struct relay *relay)
{
    bool unused = relay->left && relay->closed;

    pthread_mutex_unlock(&relay->lock);
    if (!unused)
        return;
    while (relay->interims) {
        struct relay_interim *next = relay->interims->next;

        free_interim(relay, relay->interims);
        relay->interims = next;
    }
    pthread_mutex_destroy(&relay->lock);
    memory_uncharge(relay->config.account, MEMORY_REQUESTS, relay->charged);
    free(relay);
}

/* The fetch asks again for the body. Under the lock, which resuming allows. */
static void
resume(struct relay *relay)
{
    const struct origin *origin = relay->config.origin;

    if (relay->paused)
        origin->ops->resume(origin->context, relay->paused);
    relay->paused = 0;
}

/* ---- the client's side ----------------------------------------------------------------------- */

size_t
relay_write(struct relay *relay, const void *bytes, size_t len)
{
    const char *from = bytes;
    size_t taken, end, part;

    pthread_mutex_lock(&relay->lock);
    taken = RELAY_BYTES - relay->count;
    if (relay->closed || len < taken)
        taken = len;
    if (!relay->closed && taken) {
        end = (relay->first + relay->count) % RELAY_BYTES;
        part = RELAY_BYTES - end < taken ? RELAY_BYTES - end : taken;
        memcpy(relay->ring + end, from, part);
        memcpy(relay->ring, from + part, taken - part);
        relay->count += taken;
        resume(relay);
    }
    relay->full = relay->full || taken < len;
    unlock(relay);
    return taken;
}

void
relay_end(struct relay *relay)
{
    pthread_mutex_lock(&relay->lock);
    relay->complete = true;
    resume(relay);
    unlock(relay);
}

bool
relay_has_space(struct relay *relay)
{
    bool space;

    pthread_mutex_lock(&relay->lock);
    space = relay->space;
    relay->space = false;
    unlock(relay);
    return space;
}

struct relay_interim *
relay_take_interim(struct relay *relay)
{
    struct relay_interim *interim;

    pthread_mutex_lock(&relay->lock);
    interim = relay->interims;
    if (interim) {
        relay->interims = interim->next;
        relay->interim_count--;
        memory_uncharge(relay->config.account, MEMORY_REQUESTS, interim_size(interim->len));
        if (!relay->interims)
            relay->last_interim = &relay->interims;
    }
    unlock(relay);
    return interim;
}

void
relay_leave(struct relay **relay)
{
    struct relay *r = *relay;

    *relay = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->left = true;
    resume(r);
    unlock(r);
}

/* ---- the origin's side ----------------------------------------------------------------------- */

/* Wakes the client's side if it waits and there is space enough, or the fetch has ended. */
static void
announce_space(struct relay *relay)
{
    if (!relay->full || relay->left || (relay->count > RELAY_BYTES / 2 && !relay->closed))
        return;
    relay->full = false;
    relay->space = true;
    relay->config.wake(relay->config.context);
}

enum fetch_supply
relay_supply(struct relay *relay, uint64_t fetch, void *buffer, size_t size, size_t *len)
{
    enum fetch_supply answer = FETCH_SUPPLIED;
    char *to = buffer;

    *len = 0;
    pthread_mutex_lock(&relay->lock);
    if (relay->count) {
        size_t taken = size < relay->count ? size : relay->count;
        size_t part = RELAY_BYTES - relay->first < taken ? RELAY_BYTES - relay->first : taken;

        memcpy(to, relay->ring + relay->first, part);
        memcpy(to + part, relay->ring, taken - part);
        relay->first = (relay->first + taken) % RELAY_BYTES;
        relay->count -= taken;
        *len = taken;
        announce_space(relay);
    } else if (relay->complete) {
        answer = FETCH_SUPPLY_END;
    } else if (relay->left) {
        answer = FETCH_SUPPLY_FAILED;
    } else {
        relay->paused = fetch;
        answer = FETCH_SUPPLY_LATER;
    }
    unlock(relay);
    return answer;
}

void
relay_add_interim(struct relay *relay, unsigned status, struct span lines)
{
    struct relay_interim *interim;

    if (lines.len > RELAY_MAX_INTERIM ||
        !memory_charge(relay->config.account, MEMORY_REQUESTS, interim_size(lines.len)))
        return;
    interim = malloc(interim_size(lines.len));
    if (!interim) {
        memory_uncharge(relay->config.account, MEMORY_REQUESTS, interim_size(lines.len));
        return;
    }
    *interim = (struct relay_interim){.status = status, .len = lines.len};
    if (lines.len)
        memcpy(interim->lines, lines.ptr, lines.len);
    pthread_mutex_lock(&relay->lock);
    if (relay->left || relay->interim_count == RELAY_MAX_INTERIMS) {
        free_interim(relay, interim);
        unlock(relay);
        return;
    }
    *relay->last_interim = interim;
    relay->last_interim = &interim->next;
    relay->interim_count++;
    relay->config.wake(relay->config.context);
    unlock(relay);
}

void
relay_close(struct relay **relay)
{
    struct relay *r = *relay;

    *relay = NULL;
    if (!r)
        return;
    pthread_mutex_lock(&r->lock);
    r->closed = true;
    r->paused = 0;
    announce_space(r);
    unlock(r);
}
