#include "rpc/admission.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/descriptors.h"

/* Clients without a connection that are remembered until their buckets are full: about 4 MB. */
#define MAX_IDLE_CLIENTS 16384u

struct rpc_admission {
    struct client_table *clients;       /* NULL: nothing bounds a client */
    rpc_counter refusals[RPC_REFUSALS]; /* worker 0's */
    atomic_uint privileged;             /* connections open; shared */
};

struct rpc_admission *
rpc_admission_create(const struct rpc_limits *limits)
{
    struct rpc_admission *admission = calloc(1, sizeof(*admission));
    struct client_table_config config = {
        .max_connections = limits->max_connections_per_client,
        .max_idle = MAX_IDLE_CLIENTS,
        .rates = limits->rates,
    };

    if (!admission || (!config.max_connections && !client_rates_any(&config.rates)))
        return admission;
    admission->clients = client_table_create(&config);
    if (!admission->clients) {
        free(admission);
        return NULL;
    }
    return admission;
}

void
rpc_admission_destroy(struct rpc_admission *admission)
{
    if (!admission)
        return;
    client_table_destroy(admission->clients);
    free(admission);
}

/* Who is it? By the address, or by what the kernel knows of an AF_UNIX peer. */
static void
identify(struct rpc_server *server, int fd, struct rpc_peer *peer)
{
    const struct rpc_limits *limits = &server->limits;
    struct ucred credentials;
    socklen_t len = sizeof(credentials);

    peer->client = client_key_of_prefix((const struct sockaddr *)&peer->address,
                                        limits->inet_prefix, limits->inet6_prefix);
    if (peer->address.ss_family == AF_UNIX &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0) {
        peer->has_uid = true;
        peer->uid = credentials.uid;
        peer->pid = credentials.pid;
        peer->client = client_key_of_uid(peer->uid);
    }
    peer->is_privileged = limits->is_privileged && limits->is_privileged(server->context, peer);
}

static bool
refuse(struct rpc_admission *admission, enum rpc_refusal why)
{
    rpc_counter_add(&admission->refusals[why], 1);
    return false;
}

static bool
admit_privileged(struct rpc_server *server, uint64_t open)
{
    const struct rpc_limits *limits = &server->limits;

    if (open >= (uint64_t)limits->max_connections + limits->reserved)
        return refuse(server->admission, RPC_REFUSED_FULL);
    atomic_fetch_add(&server->admission->privileged, 1);
    return true;
}

bool
rpc_admission_judge(struct rpc_server *server, int fd, struct rpc_peer *peer, uint64_t open,
                    bool scarce, struct client_entry **client)
{
    struct rpc_admission *admission = server->admission;
    uint64_t privileged = atomic_load(&admission->privileged);

    *client = NULL;
    identify(server, fd, peer);
    if (peer->is_privileged)
        return admit_privileged(server, open);
    if (scarce || descriptors_is_reserved(fd, server->limits.reserved))
        return refuse(admission, RPC_REFUSED_DESCRIPTORS);
    /* The two sums may be of different moments, by a connection that is just being closed. */
    if (open >= privileged + server->limits.max_connections)
        return refuse(admission, RPC_REFUSED_FULL);
    if (!admission->clients)
        return true;
    switch (client_table_connect(admission->clients, &peer->client, clock_monotonic_us(), client)) {
    case CLIENT_TABLE_OK:
        return true;
    case CLIENT_TABLE_FULL:
        return refuse(admission, RPC_REFUSED_CLIENT);
    case CLIENT_TABLE_NO_MEMORY:
        break;
    }
    return refuse(admission, RPC_REFUSED_MEMORY);
}

static void
leave(struct rpc_admission *admission, const struct rpc_peer *peer, struct client_entry *client,
      int64_t now_us)
{
    if (peer->is_privileged)
        atomic_fetch_sub(&admission->privileged, 1);
    if (client)
        client_table_disconnect(admission->clients, client, now_us);
}

void
rpc_admission_give_up(struct rpc_server *server, const struct rpc_peer *peer,
                      struct client_entry *client)
{
    leave(server->admission, peer, client, clock_monotonic_us());
    refuse(server->admission, RPC_REFUSED_MEMORY);
}

void
rpc_admission_leave(struct rpc_connection *connection)
{
    struct rpc_worker *worker = connection->worker;

    leave(worker->server->admission, &connection->peer, connection->client, worker->now_us);
    connection->client = NULL;
}

void
rpc_admission_get_stats(struct rpc_admission *admission, struct rpc_stats *stats)
{
    for (int why = 0; why < RPC_REFUSALS; why++)
        stats->connections_refused[why] =
            atomic_load_explicit(&admission->refusals[why], memory_order_relaxed);
    if (admission->clients)
        client_table_get_stats(admission->clients, &stats->clients);
}
