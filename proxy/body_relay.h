/*
 * A relay: what an exchange and the fetch that it leads pass to each other beside the object.
 * The body of the request goes to the origin, through at most RELAY_BYTES of memory: a full relay
 * makes the client's side stop, an empty one pauses the fetch. Interim responses (RFC 9110, section
 * 15.2) go to the client.
 *
 * There is one reference for each side. The client's side is the exchange's worker, the origin's
 * side the fetcher's thread; either may leave first.
 */
#ifndef SUNPROXY_PROXY_BODY_RELAY_H
#define SUNPROXY_PROXY_BODY_RELAY_H

#include "base/memory_account.h"
#include "proxy/proxy.h"

#define RELAY_BYTES 65536u
#define RELAY_MAX_INTERIMS 8u   /* that have not been taken; more are dropped */
#define RELAY_MAX_INTERIM 8192u /* bytes of field lines of one that is passed on */

struct relay;

struct relay_config {
    const struct origin *origin;    /* of the fetch; outlives the relay */
    struct memory_account *account; /* charged (MEMORY_REQUESTS) */
    bool has_body;
    /*
     * relay_has_space() or relay_take_interim() has something new. Called under the relay's lock:
     * must not block nor call it. [fetcher's thread]
     */
    void (*wake)(void *context);
    void *context;
};

/* NULL with errno ENOMEM, or ENOBUFS if the account is used up. Both references are the caller's.
 */
struct relay *relay_create(const struct relay_config *config);

/* ---- the client's side ----------------------------------------------------------------------- */

/*
 * Takes as many of the bytes as it has memory for, and returns how many. After fewer than `len`
 * there is a wake when half of the memory is free again. If the fetch has ended, all are taken and
 * dropped.
 */
size_t relay_write(struct relay *relay, const void *bytes, size_t len);

/* The body is complete. */
void relay_end(struct relay *relay);

/* True once for each wake that relay_write() announced. */
bool relay_has_space(struct relay *relay);

/*
 * An interim response; the struct is freed with free(). It is charged (MEMORY_REQUESTS) until it is
 * taken.
 */
struct relay_interim {
    struct relay_interim *next;
    unsigned status;
    size_t len;
    char lines[];
};

/* The earliest that has not been taken, owned by the caller; NULL: none. */
struct relay_interim *relay_take_interim(struct relay *relay);

/*
 * Releases and clears *relay; no wake is under way or comes afterwards. A body that is not complete
 * fails. *relay may be NULL.
 */
void relay_leave(struct relay **relay);

/* ---- the origin's side ----------------------------------------------------------------------- */

/* The next piece of the body for the fetch with this id, as fetch_sink.supply(). */
enum fetch_supply relay_supply(struct relay *relay, uint64_t fetch, void *buffer, size_t size,
                               size_t *len);

/* An interim response has come. Without memory, also of the account, it is dropped. */
void relay_add_interim(struct relay *relay, unsigned status, struct span lines);

/* The fetch has ended. Releases and clears *relay, which may be NULL. */
void relay_close(struct relay **relay);

#endif
