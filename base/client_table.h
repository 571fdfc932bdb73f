/*
 * What a server knows of each of its clients: how many connections it has, and how fast it may call
 * (token_bucket.h). A client is a key (client_key.h): all connections with one key share one entry,
 * whatever threads they are on.
 *
 * An entry lives as long as the client has a connection. With rates it stays after the last one
 * until its buckets are full again, since a client that reconnects would otherwise begin with full
 * buckets. At most `max_idle` entries stay that way; over it, the entry that would be full first
 * goes first, which forgets the least. Entries are found in a balanced tree, so that no choice of
 * addresses makes a search long.
 *
 * Threads: every function is safe on any thread. The table has a lock, taken when a connection
 * begins and ends; an entry has one of its own, taken for each call only where there are rates.
 */
#ifndef SUNPROXY_BASE_CLIENT_TABLE_H
#define SUNPROXY_BASE_CLIENT_TABLE_H

#include "base/client_key.h"
#include "base/token_bucket.h"

struct client_table;
struct client_entry;

/* How fast one client may go; per_second 0 is no bound. */
struct client_rates {
    struct token_rate calls;
    struct token_rate fetches;
    struct token_rate bytes; /* of answers */
};

struct client_table_config {
    uint32_t max_connections; /* of one client at a time; 0: no bound */
    uint32_t max_idle;        /* entries of clients without a connection */
    struct client_rates rates;
};

struct client_table_stats {
    uint64_t clients;         /* entries now */
    uint64_t calls_delayed;   /* booked for later */
    uint64_t fetches_refused; /* for want of a token */
};

/* Is any rate bounded? */
bool client_rates_any(const struct client_rates *rates);

/* NULL without memory. */
struct client_table *client_table_create(const struct client_table_config *config);

/* All connections must have ended. NULL is harmless. */
void client_table_destroy(struct client_table *table);

void client_table_get_stats(struct client_table *table, struct client_table_stats *stats);

/* ---- connections ----------------------------------------------------------------------------- */

enum client_table_status {
    CLIENT_TABLE_OK,
    CLIENT_TABLE_FULL, /* the client has max_connections already */
    CLIENT_TABLE_NO_MEMORY
};

/*
 * A connection begins: CLIENT_TABLE_OK with *entry, which stays until client_table_disconnect() is
 * called for it, once for each success.
 */
enum client_table_status client_table_connect(struct client_table *table,
                                              const struct client_key *key, int64_t now_us,
                                              struct client_entry **entry);

/* A connection ends. Its booking must have been cancelled or redeemed. */
void client_table_disconnect(struct client_table *table, struct client_entry *entry,
                             int64_t now_us);

/* ---- rates ----------------------------------------------------------------------------------- */

/* A connection's place in the line of its client. All zero: none. */
struct client_booking {
    bool waiting;
    uint64_t bytes; /* held back for the call until its answer is charged */
};

/*
 * May a connection take its next call? 0: yes, and the call is counted. Otherwise the call is
 * booked for that many microseconds from now: it may be taken then without asking again, after
 * client_entry_redeem(). Connections of one client that wait are served in the order of booking,
 * each at a time of its own.
 */
int64_t client_entry_book_call(struct client_entry *entry, struct client_booking *booking,
                               int64_t now_us);
void client_entry_redeem(struct client_entry *entry, struct client_booking *booking,
                         int64_t now_us);

/* Gives a booking up; harmless without one. */
void client_entry_cancel(struct client_entry *entry, struct client_booking *booking,
                         int64_t now_us);

/* An answer of `bytes` is on its way, which is charged whatever it costs: into debt if need be. */
void client_entry_charge(struct client_entry *entry, uint64_t bytes, int64_t now_us);

/* Takes a token for a fetch: 0, or in how many microseconds there will be one. */
int64_t client_entry_take_fetch(struct client_entry *entry, int64_t now_us);

/* Takes the token of a fetch that has been made already: into debt if need be. */
void client_entry_charge_fetch(struct client_entry *entry, int64_t now_us);

#endif
