/*
 * A tier: small objects in memcached servers that several daemons share, as a source of versions
 * (store/source.h). It outlives the daemons. Of those that miss a page at the same time one fetches
 * it, by memcached's leases; the others wait for it, for a bounded time. What one of them purges is
 * purged by all. docs/SCALE.md has the design.
 *
 * A thread talks to the servers. A server that does not answer in time is down: it is not used
 * until it does, and is asked now and then. Values that do not verify (tier_value.h) are as if they
 * were not there.
 *
 * Purges have epochs, which are times: that of a purge is later than all that were seen before, and
 * than this daemon's clock by the skew of clocks. A record has the latest epoch that was known when
 * it was asked for, and one; it is outdated by a purge with that epoch or a later one
 * (store/disk_marks.h). The journals of the servers have them (tier_journal.h).
 *
 * Every function is safe on any thread, and none but opening and closing blocks.
 */
#ifndef SUNPROXY_TIER_TIER_H
#define SUNPROXY_TIER_TIER_H

#include "fetch/resolver.h"
#include "origins/peer_auth.h"
#include "store/source.h"

#define TIER_SERVERS 32u
#define TIER_MOST_BYTES ((uint64_t)1000000) /* of a value, which memcached holds as it is set up \
                                             */

struct tier;

struct tier_address {
    char name[272]; /* HOST:PORT, by which keys are spread over the servers */
    char host[256]; /* IPv6 without brackets */
    uint16_t port;
    bool is_name;          /* the host is no address */
    union address address; /* with the port, */
    socklen_t len;         /* and its length; 0: not known yet */
};

struct tier_servers {
    unsigned count;
    struct tier_address of[TIER_SERVERS];
};

/* Reads "memcached://HOST:PORT,...". Names are resolved by the tier. False with a sentence. */
bool tier_servers_read(struct span text, struct tier_servers *servers, struct buf *why);

/* Takes this address for its host. */
void tier_address_set(struct tier_address *server, const union address *address);

enum tier_log {
    TIER_LOG_INFO,
    TIER_LOG_WARNING,
    TIER_LOG_AGAIN, /* a warning that comes each half second while its cause lasts */
};

struct tier_config {
    const struct tier_servers *servers; /* copied */
    const struct peer_keys *keys;       /* copied */
    uint64_t terms;  /* a hash of what decides about keys, tags and storing: daemons with others
                        have other pages */
    uint64_t most;   /* bytes of the largest body that is written */
    int64_t poll_us; /* between two looks at each server's journal */
    int64_t skew_us; /* how far the daemons' clocks may differ */
    int64_t wait_us; /* how long a request waits for what another daemon fetches */
    int64_t late_us; /* a server that has not answered then is down */
    bool unsaved;    /* what is read is to be offered to the source before this one */
    struct cache *cache;
    struct memory_account *account; /* of the objects that are filled */
    unsigned
        failure; /* the number of a failure for waiters that have begun to read (cache/fill.h) */
    /* Purges what another daemon has purged, as `from` has noted already. [a thread
     * of the tier's, which does nothing else] */
    void (*purged)(void *context, const struct source *from, const struct source_purge *purge);
    /* What an operator is told. [any thread] */
    void (*log)(void *context, enum tier_log kind, const char *sentence);
    /* How names are resolved; NULL: by the system's functions. For tests. */
    int (*getaddrinfo)(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **result);
    void (*freeaddrinfo)(struct addrinfo *result);
    void *context;
};

/* What is counted since the start. */
enum tier_count {
    TIER_HITS,
    TIER_MISSES,   /* this daemon is to fetch */
    TIER_SHARED,   /* of the hits, those that another daemon has fetched meanwhile */
    TIER_GIVEN_UP, /* another daemon has not fetched in time */
    TIER_OUTDATED, /* values that were purged */
    TIER_INVALID,  /* that did not verify */
    TIER_LATE,     /* requests whose server has not answered */
    TIER_PASSED,   /* that have passed a server whose answers are slow */
    TIER_REFUSED,  /* that were not begun: too many wait */
    TIER_STORED,
    TIER_NOT_STORED,   /* by the server, or since too many waited */
    TIER_PURGES,       /* entries written to journals */
    TIER_PURGES_TAKEN, /* of other daemons */
    TIER_LOST, /* times that all was purged since a journal was lost, or too much was in it */
    TIER_COUNTS
};

struct tier_stats {
    uint64_t counts[TIER_COUNTS];
    uint64_t servers, up;
    uint64_t left; /* 1: it is not used, since the clock differs from the servers' */
};

/* NULL without memory. */
struct tier *tier_open(const struct tier_config *config);

/* Starts its threads, before which nothing is found. 0 or an errno. */
int tier_start(struct tier *tier);

/* Ends what waits; it finds nothing and notes nothing from now on. */
void tier_leave(struct tier *tier);

/* Has a server each purge of this daemon, so that others learn of it? */
bool tier_has_told(struct tier *tier);

/* Visits the purges that no server has, in their order, or one of everything (an empty prefix)
 * where some were forgotten. After tier_leave(). */
void tier_visit_untold(struct tier *tier,
                       void (*visit)(void *context, const struct source_purge *purge),
                       void *context);

/* tier_leave(), and frees it; no other function is being called. NULL is harmless. */
void tier_close(struct tier *tier);

/* Other keys, and terms. */
void tier_configure(struct tier *tier, const struct peer_keys *keys, uint64_t terms);

void tier_get_stats(struct tier *tier, struct tier_stats *stats);

/* NULL: NULL. */
struct source *tier_source(struct tier *tier);

/* cache_request.fill_size for its fills, at least. */
size_t tier_fill_size(void);

#endif
