/*
 * The servers of the members of origins (origin_route.h): what is known of one scheme, host and
 * port. Rows whose members lead to the same server, with the same probes, share its state, so that
 * it is probed once, and a failure that one row has seen concerns the others. A reload keeps the
 * state.
 *
 * A server is counted by references and safe on any thread. A set of servers is made by one thread,
 * and constant from then on.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_SERVER_H
#define SUNPROXY_ORIGINS_ORIGIN_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/shared.h"
#include "base/span.h"
#include "origins/origin_latency.h"

/* A server's left_until_us while it is down, by its probes (origin_probe.h). */
#define ORIGIN_SERVER_DOWN (INT64_MAX - 1)

/* A sentence, cut if it is too long. */
struct origin_reason {
    char text[96]; /* read and written by the functions below */
};

/* How a server is probed. */
struct origin_probes {
    struct span path; /* and query, from the root of the host; empty: it is not probed */
    int64_t interval_us;
    unsigned status; /* of a probe that passes; 0: any 2xx */
    unsigned fall;   /* probes that fail one behind the other before a server is down, */
    unsigned rise;   /* and that pass before it is used again */
};

struct origin_server {
    struct shared shared;
    struct span key;       /* owned: what it is found by */
    struct span authority; /* "https://example.com:8443", the beginning of the key */
    _Atomic int64_t left_until_us; /* of the monotonic clock; 0: it is in use */
    _Atomic unsigned failures;     /* one behind the other, while it is left */
    _Atomic unsigned streak;       /* failures one behind the other, while it is in use */
    _Atomic int64_t used_again_us; /* when it was used again after that; 0: never */
    _Atomic bool drained;          /* by an administrator: it gets no requests */
    _Atomic unsigned limit;        /* of what is in flight; 0: none */
    _Atomic unsigned in_flight;    /* attempts of fetches, also those that wait, and tunnels */
    _Atomic unsigned tunnels;      /* of those */
    _Atomic uint64_t requests;     /* all of them, */
    _Atomic uint64_t failed;       /* and those that have failed, */
    _Atomic int64_t failed_us;     /* the last one at this time; 0: never */
    _Atomic unsigned slow;         /* responses one behind the other that took too long */
    _Atomic unsigned errors;       /* responses one behind the other with status 5xx */
    struct origin_latency latency; /* of heads of responses */
    struct origin_reason reason;   /* why it failed, was left or down last */
    _Atomic bool looked_up;        /* its name was, or is being looked up */
    _Atomic int64_t probe_due_us;  /* INT64_MAX: a probe is under way, */
    _Atomic int64_t probed_us;     /* which has begun at this time */
    _Atomic int probed;            /* probes passed one behind the other, or below 0 failed */
};

/* Has it as much in flight as it takes? */
bool origin_server_is_full(const struct origin_server *server);

/* The limit of fetches, beside the tunnels: at least 1; 0: none. */
unsigned origin_server_fetch_limit(const struct origin_server *server);

/* Something is sent to it, or has ended. */
void origin_server_enter(struct origin_server *server);
void origin_server_exit(struct origin_server *server);

struct origin_server *origin_server_retain(struct origin_server *server);

/* Releases and clears *server, which may be NULL. */
void origin_server_release(struct origin_server **server);

/* Why it failed, was left or down last; "" if it never did. */
void origin_reason_set(struct origin_reason *reason, const char *sentence);
void origin_reason_get(const struct origin_reason *reason, char *text, size_t size);

/* ---- sets ------------------------------------------------------------------------------------ */

/* All zero: empty. */
struct origin_servers {
    struct origin_server **slots; /* owned, with a reference to each; NULL: free */
    size_t size;                  /* a power of two, or 0 */
    size_t count;
};

/* The server, added if the set has none. The set has the reference. NULL without memory. */
struct origin_server *origin_servers_add(struct origin_servers *servers, struct span authority,
                                         const struct origin_probes *probes);

/* The server of the set with the key of `like`, or NULL. */
struct origin_server *origin_servers_find(const struct origin_servers *servers,
                                          const struct origin_server *like);

/*
 * Puts the servers of `from` in the place of those of `to` with the same key, with the limits of
 * those. One that has other probes is drained where that of the same authority is.
 */
void origin_servers_inherit(struct origin_servers *to, const struct origin_servers *from);

void origin_servers_free(struct origin_servers *servers);

#endif
