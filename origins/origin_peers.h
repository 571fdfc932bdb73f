/*
 * Peers: daemons that share what they fetch. Each has the same list of URLs, its own among them,
 * and each URL of a client has an owner among those that are in use, by rendezvous hashing
 * (origin_balance.h). A request that a daemon's cache does not answer is sent to the owner, which
 * looks it up, fetches it once for all of them and keeps it; an owner asks no other peer.
 *
 * The peers are the members of a row (origin_route.h): state, trials, latency and budget of retries
 * are those of members. The daemon's own member stands for its own fetch, and is always in use. So
 * where the owner fails, the next one in the order of the hash is asked, which may be the daemon
 * itself: then the URL's origin is asked, as without peers. At most ORIGIN_PEERS_ASKED peers are
 * asked before that.
 *
 * Load is bounded: an owner at which this daemon has more requests in flight than
 * ORIGIN_PEERS_EXCESS and ORIGIN_PEERS_BOUND percent of the mean of those in use is passed by, for
 * the next one (Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with Bounded Loads", SODA
 * 2018).
 *
 * Constant but for what its parts say; safe on any thread.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_PEERS_H
#define SUNPROXY_ORIGINS_ORIGIN_PEERS_H

#include "origins/origin_route.h"
#include "origins/peer_auth.h"

#define ORIGIN_PEERS_ASKED 2u
#define ORIGIN_PEERS_BOUND 150u
#define ORIGIN_PEERS_EXCESS 64u

/* How long a peer may be silent before another one is asked: it responds, or says at once that it
 * has the request (102). */
#define ORIGIN_PEERS_SILENCE_US ((int64_t)500000)

struct origin_peers {
    struct origin_route *route; /* a member for each daemon of the list, by hash; not owned */
    unsigned self;              /* of these, this one */
    struct peer_keys keys;
    struct peer_auth *auth; /* of the process; not owned */
};

/* The member of that URL; route->count if there is none. */
unsigned origin_peers_find(const struct origin_peers *peers, struct span url);

/*
 * Chooses the peer to ask next. False: the origin is to be asked, since the URL is this daemon's
 * own, enough peers have been asked, or none is in use. origin_route_set_key() precedes it.
 */
bool origin_peers_next(struct origin_peers *peers, struct origin_choice *choice, int64_t now_us);

/* The owner of a URL among the members that are in use now. */
unsigned origin_peers_owner(struct origin_peers *peers, struct span url, int64_t now_us);

#endif
