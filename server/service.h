/*
 * The service itself: what the procedures of both protocol versions work on. One per process, made
 * before the workers start and taken apart after they have ended; the parts are safe on any thread
 * by their own contracts.
 */
#ifndef SUNPROXY_SERVER_SERVICE_H
#define SUNPROXY_SERVER_SERVICE_H

#include <stdint.h>

#include "fetch/fetch.h"
#include "proxy/proxy.h"
#include "rpc/server.h"
#include "server/logs/access_log.h"
#include "server/config/config.h"
#include "server/limits/memory.h"
#include "server/logs/log_limit.h"
#include "server/config/options.h"
#include "server/logs/request_db.h"
#include "server/config/reload_desk.h"
#include "server/users/users.h"

#define SERVICE_MAGIC 0x73756e70u /* "sunp" */

struct service {
    unsigned magic;

    /* read-only while workers run */
    const struct options *options; /* of the start: those that a reload does not change */
    struct rpc_server *rpc;
    struct cache *cache;
    struct store *store; /* owned; NULL: none */
    struct tier *tier;   /* owned; NULL: none */
    struct log_limit tier_log; /* what the tier says */
    char *store_path;    /* absolute; NULL: none, or too long to be sent */
    struct fetcher *fetcher;
    struct metrics *metrics;
    struct origin_report *report;  /* owned */
    struct access_log *access_log; /* NULL: none */
    struct request_db *request_db; /* NULL: none */
    char *request_db_path;         /* absolute; NULL: none, or too long to be sent */
    bool logs;                     /* there is one of them: service_log() is called */
    struct users *users;           /* owned; checks of users */
    struct peer_auth *peer_auth;   /* owned */
    struct peer_news *news;        /* owned: what peers are told */
    struct http_service *http;     /* not owned; NULL: none */
    struct cursors *cursors;       /* owned; what clients of version 2 read on (rpc/cursor.h) */
    unsigned workers;
    int64_t started_us;

    struct memory_account memory; /* everything that is not in the cache; any thread */
    struct memory_reclaimed reclaimed;
    _Atomic(struct config *) config; /* in force: a reference */
    struct reload_desk desk;         /* of calls that have it read again; any thread */
    struct proxy proxy; /* over cache, fetcher, metrics and memory; any thread */
    bool has_proxy;     /* it has been initialised */
};

/*
 * The configuration in force: for a worker until its callback returns, for longer with a reference
 * of one's own. Fronts take it when a request begins.
 */
static inline struct config *
service_config(const struct service *service)
{
    return atomic_load_explicit(&service->config, memory_order_acquire);
}

/*
 * May this client use the forward proxy, and RPC? Over AF_UNIX the permissions of the socket
 * decide.
 */
bool service_is_client(const struct service *service, const struct net_peer *peer);

/*
 * Makes metrics and proxy (service_proxy.c). False without memory; what was made is to be freed.
 */
bool service_make_proxy(struct service *service);

/* The absolute name of a file, owned by the caller; NULL if it cannot be sent to clients. */
char *service_name_file(const char *path);

/* The service behind a request. */
struct service *service_of(const struct rpc_request *request);

/* A request has ended: for the access log and the request database. [the entry's worker] */
void service_log(const struct service *service, const struct access_entry *entry);

/* May this caller change the server, over the socket only (AUTH_SYS over TCP proves nothing)? */
bool service_is_admin(const struct service *service, const struct net_peer *peer);

/*
 * What is behind memory, concerned by a purge, and not in its number: words to follow the number,
 * or "". `counts_disk`: pages on disk are in the number.
 */
const char *service_uncounted(const struct service *service, bool counts_disk);

/* May this caller know the URLs of pages that were evicted (--show-victims)? */
bool service_shows_victims(const struct service *service, const struct net_peer *peer);

#endif
