#include "net/admission.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "net/counter.h"

/* Clients without a connection that are remembered until their buckets are full: about 4 MB. */
#define MAX_IDLE_CLIENTS 16384u

struct net_admission {
    const struct net_limits *limits;
    struct client_table *clients;       /* NULL: nothing bounds a client */
    net_counter refusals[NET_REFUSALS]; /* worker 0's */
    atomic_uint privileged;             /* connections open; shared */
};

struct net_admission *
net_admission_create(const struct net_limits *limits)
{
    struct net_admission *admission = calloc(1, sizeof(*admission));
    struct client_table_config config = {
        .max_connections = limits->max_connections_per_client,
        .max_idle = MAX_IDLE_CLIENTS,
        .rates = limits->rates,
    };

    if (!admission)
        return NULL;
    admission->limits = limits;
    if (!config.max_connections && !client_rates_any(&config.rates))
        return admission;
    admission->clients = client_table_create(&config);
    if (!admission->clients) {
        free(admission);
        return NULL;
    }
    return admission;
}

void
net_admission_destroy(struct net_admission *admission)
{
    if (!admission)
        return;
    client_table_destroy(admission->clients);
    free(admission);
}

/* By the address, or by what the kernel knows of an AF_UNIX peer. */
void
net_admission_identify(const struct net_admission *admission, int fd, struct net_peer *peer)
{
    const struct net_limits *limits = admission->limits;
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
    peer->is_privileged = limits->is_privileged && limits->is_privileged(limits->context, peer);
}

static bool
refuse(struct net_admission *admission, enum net_refusal why)
{
    net_counter_add(&admission->refusals[why], 1);
    return false;
}

static bool
admit_privileged(struct net_admission *admission, uint64_t open)
{
    const struct net_limits *limits = admission->limits;

    if (open >= (uint64_t)limits->max_connections + limits->reserved)
        return refuse(admission, NET_REFUSED_FULL);
    atomic_fetch_add(&admission->privileged, 1);
    return true;
}

static enum client_table_status
join(struct net_admission *admission, const struct client_key *key, int64_t now_us,
     struct client_entry **client)
{
    *client = NULL;
    return admission->clients ? client_table_connect(admission->clients, key, now_us, client)
                              : CLIENT_TABLE_OK;
}

bool
net_admission_admit(struct net_admission *admission, int fd, struct net_peer *peer, uint64_t open,
                    bool scarce, struct client_entry **client)
{
    const struct net_limits *limits = admission->limits;
    uint64_t privileged = atomic_load(&admission->privileged);

    *client = NULL;
    if (peer->is_privileged)
        return admit_privileged(admission, open);
    if (scarce || descriptors_is_reserved(fd, limits->reserved))
        return refuse(admission, NET_REFUSED_DESCRIPTORS);
    /* The two sums may be of different moments, by a connection that is just being closed. */
    if (open >= privileged + limits->max_connections)
        return refuse(admission, NET_REFUSED_FULL);
    if (peer->for_others)
        return true;
    switch (join(admission, &peer->client, clock_monotonic_us(), client)) {
    case CLIENT_TABLE_OK:
        return true;
    case CLIENT_TABLE_FULL:
        return refuse(admission, NET_REFUSED_CLIENT);
    case CLIENT_TABLE_NO_MEMORY:
        break;
    }
    return refuse(admission, NET_REFUSED_MEMORY);
}

bool
net_admission_join(struct net_admission *admission, const struct client_key *key, int64_t now_us,
                   struct client_entry **client)
{
    return join(admission, key, now_us, client) == CLIENT_TABLE_OK;
}

void
net_admission_part(struct net_admission *admission, struct client_entry *client, int64_t now_us)
{
    if (client)
        client_table_disconnect(admission->clients, client, now_us);
}

void
net_admission_leave(struct net_admission *admission, const struct net_peer *peer,
                    struct client_entry *client, int64_t now_us)
{
    if (peer->is_privileged)
        atomic_fetch_sub(&admission->privileged, 1);
    net_admission_part(admission, client, now_us);
}

void
net_admission_give_up(struct net_admission *admission, const struct net_peer *peer,
                      struct client_entry *client)
{
    net_admission_leave(admission, peer, client, clock_monotonic_us());
    refuse(admission, NET_REFUSED_MEMORY);
}

void
net_admission_get_stats(struct net_admission *admission, struct net_stats *stats)
{
    for (int why = 0; why < NET_REFUSALS; why++)
        stats->connections_refused[why] = net_counter_read(&admission->refusals[why]);
    if (admission->clients)
        client_table_get_stats(admission->clients, &stats->clients);
}
