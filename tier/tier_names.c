/* Addresses of servers that have names: one that is down is looked up again. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "tier/tier_state.h"

#define ASK_AGAIN_US ((int64_t)2000000)  /* between two look-ups of a server that is down */
#define NO_ADDRESS_US ((int64_t)3000000) /* after which a server without an address has failed */
#define INET_BITS 32
#define INET6_BITS 64

static void
wake(void *context)
{
    tier_wake(context);
}

int
tier_names_start(struct tier *tier)
{
    const struct clients_config clients = {.inet_bits = INET_BITS, .inet6_bits = INET6_BITS};
    const struct tier_config *config = &tier->config;
    struct tier_names *names = &tier->names;
    bool any = false;

    for (unsigned i = 0; i < tier->server_count; i++)
        any = any || tier->servers[i].address.is_name;
    if (!any)
        return 0;
    names->clients = clients_create(&clients);
    if (names->clients)
        names->client = clients_find_uid(names->clients, 0, clock_monotonic_us());
    if (names->client)
        names->resolver = resolver_create(&(struct resolver_config){
            .threads = TIER_SERVERS,
            .getaddrinfo = config->getaddrinfo ? config->getaddrinfo : getaddrinfo,
            .freeaddrinfo = config->getaddrinfo ? config->freeaddrinfo : freeaddrinfo,
            .notify = wake,
            .context = tier,
        });
    return names->resolver ? 0 : ENOMEM;
}

void
tier_names_free(struct tier *tier)
{
    struct tier_names *names = &tier->names;

    for (unsigned i = 0; i < tier->server_count; i++) {
        resolver_cancel(names->resolver, &tier->servers[i].query);
        resolved_release(&tier->servers[i].resolved);
    }
    resolver_destroy(names->resolver);
    client_release(&names->client);
    clients_destroy(names->clients);
}

/* ---- the thread's ---------------------------------------------------------------------------- */

static bool
is_host(const union address *a, const union address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    return a->any.sa_family == AF_INET
               ? a->in.sin_addr.s_addr == b->in.sin_addr.s_addr
               : memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr)) == 0;
}

/* The number of an address in the list; the count if it is not there. */
static size_t
find(const struct resolved *resolved, const union address *address)
{
    size_t i = 0;

    while (i < resolved->count && !is_host(&resolved->list[i], address))
        i++;
    return i;
}

bool
tier_names_next(struct tier_server *server)
{
    const struct resolved *resolved = server->resolved;
    size_t at;

    if (!resolved)
        return false;
    if (server->untried == 0) {
        server->untried = resolved->count - 1;
        return false;
    }
    server->untried--;
    /* After one that is not in the list comes the first. */
    at = find(resolved, &server->address.address) + 1;
    tier_address_set(&server->address, &resolved->list[at < resolved->count ? at : 0]);
    return true;
}

/* A server whose address is still among them stays there. A connection that is being made goes on;
 * if it cannot be made, each address of the list is tried. */
static void
take_list(struct tier_server *server, struct resolved *resolved)
{
    const bool is_listed =
        server->address.len && find(resolved, &server->address.address) < resolved->count;

    resolved_release(&server->resolved);
    server->resolved = resolved_retain(resolved);
    server->untried = resolved->count - 1;
    if (is_listed)
        return;
    if (server->state == TIER_CONNECTS) {
        server->untried = resolved->count;
        return;
    }
    tier_address_set(&server->address, &resolved->list[0]);
    server->again_us = 0;
}

static void
take(struct tier *tier, struct tier_server *server)
{
    struct resolver_query *query = &server->query;

    if (!query->error && server->state <= TIER_CONNECTS)
        take_list(server, query->resolved);
    else if (query->error && server->address.len == 0)
        tier_server_fail(tier, server, gai_strerror(query->error));
    resolved_release(&query->resolved);
}

void
tier_names_collect(struct tier *tier)
{
    struct resolver_query *query;

    while (tier->names.resolver && (query = resolver_collect(tier->names.resolver)))
        take(tier, container_of(query, struct tier_server, query));
}

static void
ask(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    server->asked_us = now_us;
    /* Without memory it is asked for later, too. */
    (void)resolver_lookup(tier->names.resolver, &server->query, tier->names.client,
                          server->address.host);
}

void
tier_names_look(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    const int64_t next_us = server->asked_us + ASK_AGAIN_US;
    const bool is_due = server->address.is_name && !server->query.pending &&
                        (!server->asked_us || now_us >= next_us);

    if (is_due)
        ask(tier, server, now_us);
    if (server->address.len)
        return;
    if (is_due)
        server->again_us = now_us + NO_ADDRESS_US;
    else if (server->query.pending)
        tier_server_fail(tier, server, "its name is not resolved in time");
    else
        server->again_us = next_us;
}
