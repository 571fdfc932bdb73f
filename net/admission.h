/*
 * Admission: which new connection is accepted. Bounds on all connections and on those of one
 * client, and a reserve of connections and descriptors that only privileged peers may use
 * (limits.h), so that no client keeps an administrator out.
 */
#ifndef SUNPROXY_NET_ADMISSION_H
#define SUNPROXY_NET_ADMISSION_H

#include "net/limits.h"
#include "net/stats.h"

struct net_admission;

/* `limits` must stay. NULL without memory. */
struct net_admission *net_admission_create(const struct net_limits *limits);

/* Other limits, which must stay, and the earlier ones until worker 0 has ended the callback that it
 * is in. [any] */
void net_admission_set_limits(struct net_admission *admission, const struct net_limits *limits);

/* All connections must have been closed. NULL is harmless. */
void net_admission_destroy(struct net_admission *admission);

/* The table of clients. [any] */
struct clients *net_admission_clients(const struct net_admission *admission);

/*
 * Completes the peer of a new connection on `fd`, which has its address, but for `for_others`.
 * Returns its client: a reference. NULL without memory. [worker 0]
 */
struct client *net_admission_identify(struct net_admission *admission, int fd,
                                      struct net_peer *peer);

/* Do the bounds and rates of its client hold for the peer's connection? */
bool net_admission_is_bounded(const struct net_peer *peer);

/*
 * Admits or refuses a new connection on `fd`, whose peer is complete, of this client (NULL: there
 * was no memory for it), beside `open` connections. If it is admitted, it counts until
 * net_admission_leave(), also for its client if that bounds it. Otherwise the refusal is counted,
 * and the descriptor is the caller's; NET_REFUSED_CLIENT comes before what is scarce for all.
 * `scarce`: no descriptor was left for it. [worker 0]
 */
enum net_refusal net_admission_admit(struct net_admission *admission, int fd,
                                     const struct net_peer *peer, struct client *client,
                                     uint64_t open, bool scarce);

/* With a new connection on `fd` beside `open` ones, is no more than an eighth left of the
 * connections or of as many descriptors? [worker 0] */
bool net_admission_is_scarce(const struct net_admission *admission, int fd, uint64_t open);

/* There was no memory for a connection that was admitted: it counts as refused. [worker 0] */
void net_admission_give_up(struct net_admission *admission, const struct net_peer *peer,
                           struct client *client);

/* A connection ends, which is counted for the client; NULL: for none. [its worker] */
void net_admission_leave(struct net_admission *admission, const struct net_peer *peer,
                         struct client *client);

/* Fills in the fields that are counted here. [any] */
void net_admission_get_stats(struct net_admission *admission, struct net_stats *stats);

#endif
