/*
 * A client: the uid of an AF_UNIX peer, or the address of a TCP peer cut to a prefix, or a user of
 * the forward proxy. An IPv4 address counts whole by default; an IPv6 address counts by its /64,
 * since one host owns all of it (RFC 6177, RFC 8981). An IPv4-mapped IPv6 address is the IPv4
 * address.
 *
 * There is one struct client for each, with all that the server counts for it. A connection finds
 * it when it is accepted, in a table that is a balanced tree, so that no choice of addresses makes
 * a search long. Everything that is done for the client refers to it.
 *
 * A client lives as long as there is a reference to it. With rates (token_bucket.h) it stays after
 * the last one until its buckets are full again, since a client that reconnects would otherwise
 * begin with full buckets. At most `max_idle` clients stay that way; over it, the one that would be
 * full first goes first, which forgets the least.
 *
 * Threads: every function is safe on any thread. The table has a lock, taken to find a client and
 * to release its last reference; a client has one of its own, taken only where there are rates.
 */
#ifndef SUNPROXY_BASE_CLIENTS_H
#define SUNPROXY_BASE_CLIENTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/span.h"
#include "base/token_bucket.h"
#include "base/tree.h"

struct clients;
struct queue_flow;
struct queue_item;

enum client_kind {
    CLIENT_UNKNOWN, /* all peers that have neither address nor uid are one client */
    CLIENT_INET,
    CLIENT_INET6,
    CLIENT_UID,
    CLIENT_USER,
    CLIENT_PEER, /* of another daemon, which names it (origins/peer_auth.h) */
};

/* No padding, so that keys can be compared and hashed as bytes. Zero is CLIENT_UNKNOWN. */
struct client_key {
    uint32_t kind;
    uint8_t bytes[16]; /* in network order; what the kind does not use is zero. Of CLIENT_USER and
                          CLIENT_PEER the name, or its first 8 bytes and a hash of it if it is
                          longer */
};

/* What clients share (client_share.h). */
enum client_shared {
    CLIENT_WAITING, /* bytes of waiting requests */
    CLIENT_TUNNELS,
    CLIENT_CURSORS,
    CLIENT_SHARED
};

/* Queues in which clients take turns (base/fair_queue.h). */
enum client_queue {
    CLIENT_FETCHES, /* of the fetcher's thread */
    CLIENT_LOOKUPS, /* under the resolver's lock */
    CLIENT_CHECKS,  /* of users, under the lock of the checks */
    CLIENT_QUEUES
};

RB_HEAD(flow_tree, queue_flow);
TAILQ_HEAD(flow_list, queue_flow);
TAILQ_HEAD(item_list, queue_item);

/* A client in a queue: the queue's, and meaningless while it has no flow there. */
struct client_turns {
    RB_ENTRY(client_turns) turn;   /* in ready */
    RB_ENTRY(client_turns) length; /* in lengths */
    struct client *client;         /* a reference; NULL: it has no flow */
    bool in_ready;
    bool in_lengths;
    struct flow_tree flows;
    struct flow_list ready;
    struct item_list queued; /* of all flows, in order of arrival */
    size_t queued_count;
    unsigned opening;   /* slots of that kind */
    unsigned streaming; /* slots of that kind */
    uint64_t served;    /* queue->stamp when an item was started last, or the client came */
    uint64_t queued_at; /* queue->stamp when an item was queued last */
};

/* How fast one client may go; per_second 0 is no bound. */
struct client_rates {
    struct token_rate calls;
    struct token_rate fetches;
    struct token_rate bytes; /* of answers */
};

struct client {
    /* constant */
    struct clients *table;
    struct client_key key;

    /* shared */
    _Atomic uint32_t references;
    _Atomic uint32_t connections;
    _Atomic uint32_t lingering;        /* connections */
    _Atomic size_t has[CLIENT_SHARED]; /* of what clients share */

    /* protected by the table's lock */
    RB_ENTRY(client) by_key;
    RB_ENTRY(client) by_full; /* without a reference only */
    int64_t full_us;          /* without a reference: when all buckets are full */

    /* protected by its own lock */
    pthread_mutex_t lock;
    struct client_rates rates;
    struct token_bucket calls;
    struct token_bucket fetches;
    struct token_bucket bytes;
    uint64_t mean; /* bytes of an answer, the latest counting most */

    struct client_turns turns[CLIENT_QUEUES];

    /* the fetcher's thread's: bodies that are received for it (proxy/shedding.h) */
    LIST_ENTRY(client) with_bodies;
    unsigned bodies;
    size_t body_bytes;
};

/* Bits of an address that identify a client, by default. */
#define CLIENT_INET_BITS 32u
#define CLIENT_INET6_BITS 64u

struct clients_config {
    uint32_t max_connections; /* of one client at a time; 0: no bound */
    uint32_t max_idle;        /* clients without a reference */
    uint8_t inet_bits;        /* of an IPv4 address that identify a client, at most 32 */
    uint8_t inet6_bits;       /* of an IPv6 address, at most 128 */
    struct client_rates rates;
};

struct clients_stats {
    uint64_t clients;         /* with a connection, or remembered */
    uint64_t calls_delayed;   /* booked for later */
    uint64_t fetches_refused; /* for want of a token */
};

/* NULL without memory. */
struct clients *clients_create(const struct clients_config *config);

/* Clients to which there is a reference stay until it is released. NULL is harmless. */
void clients_destroy(struct clients *table);

/* Bounds connections that begin from now on, and changes the rates of all clients. */
void clients_set_bounds(struct clients *table, uint32_t max_connections,
                        const struct client_rates *rates, int64_t now_us);

void clients_get_stats(struct clients *table, struct clients_stats *stats);

/* ---- references ------------------------------------------------------------------------------ */

/*
 * The client with this address, of a peer or as stated by a proxy: a reference. CLIENT_UNKNOWN for
 * another family than AF_INET and AF_INET6. NULL without memory.
 */
struct client *clients_find(struct clients *table, const struct sockaddr *address, int64_t now_us);

/* The client of an AF_UNIX peer, by the uid that the kernel states (SO_PEERCRED). Likewise. */
struct client *clients_find_uid(struct clients *table, uid_t uid, int64_t now_us);

/* The client of this name, CLIENT_USER or CLIENT_PEER, over whatever connections. Likewise. */
struct client *clients_find_named(struct clients *table, enum client_kind kind, struct span name,
                                  int64_t now_us);

/* One more reference, of a caller that has one. Returns the client. */
struct client *client_retain(struct client *client);

/* Drops the reference in *client and clears it. *client may be NULL. */
void client_release(struct client **client);

/* ---- connections ----------------------------------------------------------------------------- */

/* A connection begins. False: the client has max_connections already. */
bool client_connect(struct client *client);

/* A connection ends. Its booking must have been cancelled or redeemed. */
void client_disconnect(struct client *client);

/*
 * A connection that only waits for its last output to arrive does not count as one of
 * max_connections any more, up to max_connections of them: true, and client_end_lingering() stands
 * for client_disconnect(). False: the client has as many that linger, and it counts as before.
 */
bool client_linger(struct client *client);

/* A connection ends for which client_linger() was true. */
void client_end_lingering(struct client *client);

/* ---- rates ----------------------------------------------------------------------------------- */

/* A connection's place in the line of its client. All zero: none. */
struct client_booking {
    bool waiting;
    uint64_t bytes; /* held back for the call until its answer is charged */
};

/*
 * May a connection take its next call? 0: yes, and the call is counted. Otherwise the call is
 * booked for that many microseconds from now: it may be taken then without asking again, after
 * client_redeem(). Connections of one client that wait are served in the order of booking, each at
 * a time of its own.
 */
int64_t client_book_call(struct client *client, struct client_booking *booking, int64_t now_us);
void client_redeem(struct client *client, struct client_booking *booking, int64_t now_us);

/* Gives a booking up; harmless without one. */
void client_cancel(struct client *client, struct client_booking *booking, int64_t now_us);

/* An answer of `bytes` is on its way, which is charged whatever it costs: into debt if need be. */
void client_charge(struct client *client, uint64_t bytes, int64_t now_us);

/* Takes a token for a fetch: 0, or in how many microseconds there will be one. */
int64_t client_take_fetch(struct client *client, int64_t now_us);

/* Takes the token of a fetch that has been made already: into debt if need be. */
void client_charge_fetch(struct client *client, int64_t now_us);

#endif
