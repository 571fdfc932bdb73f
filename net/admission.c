#include "net/admission.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "net/counter.h"

/* Clients that are remembered until their buckets are full: about 9 MB. */
#define MAX_IDLE_CLIENTS 16384u

struct net_admission {
    _Atomic(const struct net_limits *) limits;
    struct clients *clients;
    net_counter refusals[NET_REFUSALS]; /* worker 0's */
    atomic_uint privileged;             /* connections open; shared */
};

struct net_admission *
net_admission_create(const struct net_limits *limits)
{
    struct net_admission *admission = calloc(1, sizeof(*admission));

    if (!admission)
        return NULL;
    atomic_init(&admission->limits, limits);
    admission->clients = clients_create(&(struct clients_config){
        .max_connections = limits->max_connections_per_client,
        .max_idle = MAX_IDLE_CLIENTS,
        .inet_bits = limits->inet_prefix,
        .inet6_bits = limits->inet6_prefix,
        .rates = limits->rates,
    });
    if (!admission->clients) {
        free(admission);
        return NULL;
    }
    return admission;
}

void
net_admission_set_limits(struct net_admission *admission, const struct net_limits *limits)
{
    atomic_store(&admission->limits, limits);
    clients_set_bounds(admission->clients, limits->max_connections_per_client, &limits->rates,
                       clock_monotonic_us());
}

void
net_admission_destroy(struct net_admission *admission)
{
    if (!admission)
        return;
    clients_destroy(admission->clients);
    free(admission);
}

struct clients *
net_admission_clients(const struct net_admission *admission)
{
    return admission->clients;
}

/* By the address, or by what the kernel knows of an AF_UNIX peer. */
struct client *
net_admission_identify(struct net_admission *admission, int fd, struct net_peer *peer)
{
    const struct net_limits *limits = admission->limits;
    struct ucred credentials;
    socklen_t len = sizeof(credentials);

    if (peer->address.ss_family == AF_UNIX &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) == 0) {
        peer->has_uid = true;
        peer->uid = credentials.uid;
        peer->pid = credentials.pid;
    }
    peer->is_privileged = limits->is_privileged && limits->is_privileged(limits->context, peer);
    return peer->has_uid ? clients_find_uid(admission->clients, peer->uid, clock_monotonic_us())
                         : clients_find(admission->clients, (const struct sockaddr *)&peer->address,
                                        clock_monotonic_us());
}

bool
net_admission_is_bounded(const struct net_peer *peer)
{
    return !peer->is_privileged && !peer->for_others;
}

static enum net_refusal
refuse(struct net_admission *admission, enum net_refusal why)
{
    net_counter_add(&admission->refusals[why], 1);
    return why;
}

static enum net_refusal
admit_privileged(struct net_admission *admission, uint64_t open)
{
    const struct net_limits *limits = admission->limits;

    if (open >= (uint64_t)limits->max_connections + limits->reserved)
        return refuse(admission, NET_REFUSED_FULL);
    atomic_fetch_add(&admission->privileged, 1);
    return NET_ADMITTED;
}

/* What is scarce for all that are not privileged. */
static enum net_refusal
find_room(const struct net_admission *admission, int fd, uint64_t open, bool scarce)
{
    const struct net_limits *limits = admission->limits;
    uint64_t privileged = atomic_load(&admission->privileged);

    if (scarce || descriptors_is_reserved(fd, limits->reserved))
        return NET_REFUSED_DESCRIPTORS;
    /* The two sums may be of different moments, by a connection that is just being closed. */
    return open >= privileged + limits->max_connections ? NET_REFUSED_FULL : NET_ADMITTED;
}

enum net_refusal
net_admission_admit(struct net_admission *admission, int fd, const struct net_peer *peer,
                    struct client *client, uint64_t open, bool scarce)
{
    const bool bounded = net_admission_is_bounded(peer);
    enum net_refusal room;

    if (!client)
        return refuse(admission, NET_REFUSED_MEMORY);
    if (peer->is_privileged)
        return admit_privileged(admission, open);
    if (bounded && !client_connect(client))
        return refuse(admission, NET_REFUSED_CLIENT);
    room = find_room(admission, fd, open, scarce);
    if (room == NET_ADMITTED)
        return room;
    if (bounded)
        client_disconnect(client);
    return refuse(admission, room);
}

bool
net_admission_is_scarce(const struct net_admission *admission, int fd, uint64_t open)
{
    const struct net_limits *limits = admission->limits;
    uint32_t eighth = limits->max_connections / 8;

    return open + 1 + eighth >= limits->max_connections ||
           descriptors_is_reserved(fd, limits->reserved + eighth);
}

void
net_admission_leave(struct net_admission *admission, const struct net_peer *peer,
                    struct client *client)
{
    if (peer->is_privileged)
        atomic_fetch_sub(&admission->privileged, 1);
    if (client)
        client_disconnect(client);
}

void
net_admission_give_up(struct net_admission *admission, const struct net_peer *peer,
                      struct client *client)
{
    net_admission_leave(admission, peer, net_admission_is_bounded(peer) ? client : NULL);
    refuse(admission, NET_REFUSED_MEMORY);
}

void
net_admission_get_stats(struct net_admission *admission, struct net_stats *stats)
{
    for (int why = 0; why < NET_REFUSALS; why++)
        stats->connections_refused[why] = net_counter_read(&admission->refusals[why]);
    clients_get_stats(admission->clients, &stats->clients);
}
