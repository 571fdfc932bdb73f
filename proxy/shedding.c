#include "proxy/shedding.h"

#include <stdlib.h>

#define LEAST_GROWTH 64 /* a body moves when it has grown by this part of itself */

void
shedding_init(struct shedding *shedding)
{
    *shedding = (struct shedding){0};
    TAILQ_INIT(&shedding->bodies);
    LIST_INIT(&shedding->clients);
}

void
shedding_charge_for(struct shedding *shedding, const struct client_key *client,
                    const struct shedding_body *body)
{
    shedding->charging = *client;
    shedding->growing = body;
}

/* ---- bodies and their clients ---------------------------------------------------------------- */

/* A client's bodies. At most as many clients are listed as there are fetches. */
struct shedding_client {
    LIST_ENTRY(shedding_client) link;
    struct client_key key;
    unsigned bodies;
    size_t bytes;
};

static struct shedding_client *
find_client(struct shedding *shedding, const struct client_key *key)
{
    struct shedding_client *client;

    LIST_FOREACH(client, &shedding->clients, link)
    {
        if (client_key_compare(&client->key, key) == 0)
            return client;
    }
    return NULL;
}

static struct shedding_client *
find_or_add_client(struct shedding *shedding, const struct client_key *key)
{
    struct shedding_client *client = find_client(shedding, key);

    if (client)
        return client;
    client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->key = *key;
    LIST_INSERT_HEAD(&shedding->clients, client, link);
    return client;
}

static void
set_size(struct shedding *shedding, struct shedding_body *body, size_t size)
{
    body->client->bytes += size - body->size;
    shedding->bytes += size - body->size;
    body->size = size;
}

bool
shedding_add(struct shedding *shedding, struct shedding_body *body, const struct client_key *client,
             size_t size, int64_t now_us)
{
    body->client = find_or_add_client(shedding, client);
    if (!body->client)
        return false;
    body->client->bodies++;
    set_size(shedding, body, size);
    body->moved_us = now_us;
    body->moved_at = 0;
    TAILQ_INSERT_TAIL(&shedding->bodies, body, link);
    return true;
}

void
shedding_grow(struct shedding *shedding, struct shedding_body *body, size_t size, size_t length,
              int64_t now_us)
{
    size_t held = body->moved_at < size ? body->moved_at : size;

    shedding->growing = NULL;
    set_size(shedding, body, size);
    if (length - body->moved_at <= held / LEAST_GROWTH)
        return;
    body->moved_at = length;
    body->moved_us = now_us;
    TAILQ_REMOVE(&shedding->bodies, body, link);
    TAILQ_INSERT_TAIL(&shedding->bodies, body, link);
}

void
shedding_remove(struct shedding *shedding, struct shedding_body *body)
{
    struct shedding_client *client = body->client;

    if (shedding->growing == body)
        shedding->growing = NULL;
    if (!client)
        return;
    set_size(shedding, body, 0);
    body->client = NULL;
    if (--client->bodies == 0) {
        LIST_REMOVE(client, link);
        free(client);
    }
    TAILQ_REMOVE(&shedding->bodies, body, link);
}

/* ---- which to give up ------------------------------------------------------------------------ */

/* The largest of the stalled bodies; NULL if none is stalled. */
static struct shedding_body *
find_stalled(struct shedding *shedding, int64_t now_us)
{
    struct shedding_body *body, *largest = NULL;

    TAILQ_FOREACH(body, &shedding->bodies, link)
    {
        if (now_us - body->moved_us <= SHEDDING_STALL_US)
            break;
        if (body != shedding->growing && body->size > (largest ? largest->size : 0))
            largest = body;
    }
    return largest;
}

/*
 * The largest body of the client that holds most; NULL if the client that memory is charged for
 * would hold as much with `bytes` more, so that no two clients end each other's bodies in turn.
 */
static struct shedding_body *
find_greedy(struct shedding *shedding, size_t bytes)
{
    const struct shedding_client *charging = find_client(shedding, &shedding->charging), *client;
    const struct shedding_client *most = NULL;
    struct shedding_body *body, *largest = NULL;
    size_t own = charging ? charging->bytes : 0;

    LIST_FOREACH(client, &shedding->clients, link)
    {
        if (client != charging && (!most || client->bytes > most->bytes))
            most = client;
    }
    if (!most || most->bytes <= own || most->bytes - own <= bytes)
        return NULL;
    TAILQ_FOREACH(body, &shedding->bodies, link)
    {
        if (body->client == most && (!largest || body->size > largest->size))
            largest = body;
    }
    return largest;
}

size_t
shedding_shed(struct shedding *shedding, size_t bytes, int64_t now_us)
{
    struct shedding_body *body;
    size_t freed = 0;

    while (freed < bytes &&
           ((body = find_stalled(shedding, now_us)) || (body = find_greedy(shedding, bytes)))) {
        freed += body->size;
        shedding_remove(shedding, body);
        body->give_up(body);
    }
    return freed;
}
