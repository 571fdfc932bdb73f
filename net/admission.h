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

/* All connections must have been closed. NULL is harmless. */
void net_admission_destroy(struct net_admission *admission);

/* Completes the peer of a new connection on `fd`, which has its address, but for `for_others`. */
void net_admission_identify(const struct net_admission *admission, int fd, struct net_peer *peer);

/*
 * Admits or refuses a new connection on `fd`, whose peer is complete: true if it is admitted beside
 * `open` connections. If so, it counts until net_admission_leave(), and *client is its client's
 * entry (NULL: nothing bounds the client); otherwise the refusal is counted, and the descriptor is
 * the caller's. `scarce`: no descriptor was left for it. [worker 0]
 */
bool net_admission_admit(struct net_admission *admission, int fd, struct net_peer *peer,
                         uint64_t open, bool scarce, struct client_entry **client);

/* There was no memory for a connection that was admitted: it counts as refused. [worker 0] */
void net_admission_give_up(struct net_admission *admission, const struct net_peer *peer,
                           struct client_entry *client);

/*
 * A client has one more connection, or a request on another's: true with *client, its entry (NULL:
 * nothing bounds the client), until net_admission_part(). False if the client has as many as it
 * may, or without memory. [any worker]
 */
bool net_admission_join(struct net_admission *admission, const struct client_key *key,
                        int64_t now_us, struct client_entry **client);

/* NULL is harmless. [any worker] */
void net_admission_part(struct net_admission *admission, struct client_entry *client,
                        int64_t now_us);

/* A connection ends. [its worker] */
void net_admission_leave(struct net_admission *admission, const struct net_peer *peer,
                         struct client_entry *client, int64_t now_us);

/* Fills in the fields that are counted here. [any] */
void net_admission_get_stats(struct net_admission *admission, struct net_stats *stats);

#endif
