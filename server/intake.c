#include "server/intake.h"

#include <stdlib.h>

#define LEAST_GROWTH 64 /* a body moves when it has grown by this part of itself */

void
intake_init(struct intake *intake)
{
    *intake = (struct intake){0};
    TAILQ_INIT(&intake->bodies);
    LIST_INIT(&intake->clients);
}

void
intake_ask(struct intake *intake, const struct client_key *client)
{
    intake->asking = *client;
}

/* ---- what clients hold ----------------------------------------------------------------------- */

/* A client's bodies. At most as many clients are listed as there are fetches. */
struct intake_client {
    LIST_ENTRY(intake_client) link;
    struct client_key key;
    unsigned bodies;
    size_t bytes;
};

static struct intake_client *
find_client(struct intake *intake, const struct client_key *key)
{
    struct intake_client *client;

    LIST_FOREACH(client, &intake->clients, link)
    {
        if (client_key_compare(&client->key, key) == 0)
            return client;
    }
    return NULL;
}

static struct intake_client *
find_or_add_client(struct intake *intake, const struct client_key *key)
{
    struct intake_client *client = find_client(intake, key);

    if (client)
        return client;
    client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    client->key = *key;
    LIST_INSERT_HEAD(&intake->clients, client, link);
    return client;
}

static void
count(struct intake *intake, struct intake_body *body, size_t size)
{
    body->client->bytes += size - body->counted;
    intake->bytes += size - body->counted;
    body->counted = size;
}

bool
intake_add(struct intake *intake, struct intake_body *body, const struct client_key *client,
           int64_t now_us)
{
    body->client = find_or_add_client(intake, client);
    if (!body->client)
        return false;
    body->client->bodies++;
    count(intake, body, page_builder_size(&body->builder));
    body->moved_us = now_us;
    body->moved_at = 0;
    TAILQ_INSERT_TAIL(&intake->bodies, body, link);
    return true;
}

void
intake_remove(struct intake *intake, struct intake_body *body)
{
    struct intake_client *client = body->client;

    if (!client)
        return;
    count(intake, body, 0);
    body->client = NULL;
    if (--client->bodies == 0) {
        LIST_REMOVE(client, link);
        free(client);
    }
    TAILQ_REMOVE(&intake->bodies, body, link);
}

/* ---- growing and shedding -------------------------------------------------------------------- */

int
intake_append(struct intake *intake, struct intake_body *body, const void *bytes, size_t len,
              int64_t now_us)
{
    size_t size;
    int error;

    intake_ask(intake, &body->client->key);
    intake->growing = body;
    error = page_append(&body->builder, bytes, len);
    intake->growing = NULL;
    if (error)
        return error;
    count(intake, body, page_builder_size(&body->builder));
    size = body->builder.page->body_len;
    if (size - body->moved_at <= body->moved_at / LEAST_GROWTH)
        return 0;
    body->moved_at = size;
    body->moved_us = now_us;
    TAILQ_REMOVE(&intake->bodies, body, link);
    TAILQ_INSERT_TAIL(&intake->bodies, body, link);
    return 0;
}

/* The largest of the stalled bodies; NULL if none is stalled. */
static struct intake_body *
find_stalled(struct intake *intake, int64_t now_us)
{
    struct intake_body *body, *largest = NULL;
    size_t most = 0;

    TAILQ_FOREACH(body, &intake->bodies, link)
    {
        size_t size = page_builder_size(&body->builder);

        if (now_us - body->moved_us <= INTAKE_STALL_US)
            break;
        if (body != intake->growing && size > most) {
            largest = body;
            most = size;
        }
    }
    return largest;
}

/*
 * The largest body of the client that holds most; NULL if the client that asks for `bytes` would
 * hold as much with them, so that no two clients end each other's bodies in turn.
 */
static struct intake_body *
find_greedy(struct intake *intake, size_t bytes)
{
    const struct intake_client *asking = find_client(intake, &intake->asking), *client;
    const struct intake_client *most = NULL;
    struct intake_body *body, *largest = NULL;
    size_t own = asking ? asking->bytes : 0;

    LIST_FOREACH(client, &intake->clients, link)
    {
        if (client != asking && (!most || client->bytes > most->bytes))
            most = client;
    }
    if (!most || most->bytes <= own || most->bytes - own <= bytes)
        return NULL;
    TAILQ_FOREACH(body, &intake->bodies, link)
    {
        if (body->client == most && (!largest || body->counted > largest->counted))
            largest = body;
    }
    return largest;
}

size_t
intake_shed(struct intake *intake, size_t bytes, int64_t now_us)
{
    struct intake_body *body;
    size_t freed = 0;

    while (freed < bytes &&
           ((body = find_stalled(intake, now_us)) || (body = find_greedy(intake, bytes)))) {
        freed += page_builder_size(&body->builder);
        intake_remove(intake, body);
        page_abandon(&body->builder);
        body->give_up(body);
    }
    return freed;
}
