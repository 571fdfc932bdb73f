#include "proxy/shedding.h"

#define LEAST_GROWTH 64 /* a body moves when it has grown by this part of itself */

void
shedding_init(struct shedding *shedding)
{
    *shedding = (struct shedding){0};
    TAILQ_INIT(&shedding->bodies);
    LIST_INIT(&shedding->clients);
}

void
shedding_free(struct shedding *shedding)
{
    client_release(&shedding->charging);
}

void
shedding_charge_for(struct shedding *shedding, struct client *client,
                    const struct shedding_body *body)
{
    if (shedding->charging != client) {
        client_release(&shedding->charging);
        shedding->charging = client_retain(client);
    }
    shedding->growing = body;
}

/* ---- bodies and their clients ---------------------------------------------------------------- */

static void
set_size(struct shedding *shedding, struct shedding_body *body, size_t size)
{
    body->client->body_bytes += size - body->size;
    shedding->bytes += size - body->size;
    body->size = size;
}

void
shedding_add(struct shedding *shedding, struct shedding_body *body, struct client *client,
             size_t size, int64_t now_us)
{
    body->client = client;
    if (client->bodies++ == 0)
        LIST_INSERT_HEAD(&shedding->clients, client, with_bodies);
    set_size(shedding, body, size);
    body->moved_us = now_us;
    body->moved_at = 0;
    TAILQ_INSERT_TAIL(&shedding->bodies, body, link);
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
    struct client *client = body->client;

    if (shedding->growing == body)
        shedding->growing = NULL;
    if (!client)
        return;
    set_size(shedding, body, 0);
    body->client = NULL;
    if (--client->bodies == 0)
        LIST_REMOVE(client, with_bodies);
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
    const struct client *client, *most = NULL;
    struct shedding_body *body, *largest = NULL;
    size_t own = shedding->charging ? shedding->charging->body_bytes : 0;

    LIST_FOREACH(client, &shedding->clients, with_bodies)
    {
        if (client != shedding->charging && (!most || client->body_bytes > most->body_bytes))
            most = client;
    }
    if (!most || most->body_bytes <= own || most->body_bytes - own <= bytes)
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
