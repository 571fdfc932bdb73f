#include "fetch/connections.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_AT 16 /* idle connections, whose pools may be full */

struct pool {
    CURLSH *share; /* NULL: it has no connection */
    unsigned leases;
    unsigned idle;     /* connections; a claimed one belongs to its claimer's lease */
    int64_t unused_us; /* monotonic: no lease was seen from then on; 0: there may have been one */
    LIST_HEAD(, connection) connections;
};

/* It stays while a lease or a connection refers to it. */
struct pool_origin {
    RB_ENTRY(pool_origin) node;
    unsigned references;
    unsigned kept;                /* connections that are */
    LIST_HEAD(, connection) idle; /* the one used last comes first */
    struct connection *shared;    /* over HTTP/2: the one that a transfer was given last */
    char key[];
};

TREE_GENERATE_BY_STRING(pool_origin_tree, pool_origin, node, key)

/* ---- origins ------------------------------------------------------------------------- */

static void
release_origin(struct connections *connections, struct pool_origin *origin)
{
    if (origin->references)
        return;
    RB_REMOVE(pool_origin_tree, &connections->origins, origin);
    free(origin);
}

/* ---- states -------------------------------------------------------------------------- */

static void
set_kept(struct connection *connection, bool kept)
{
    if (kept && !connection->kept)
        connection->origin->kept++;
    else if (!kept && connection->kept)
        connection->origin->kept--;
    connection->kept = kept;
}

static void
make_idle(struct connection *connection)
{
    set_kept(connection, true);
    connection->state = CONNECTION_IDLE;
    connection->claimer = NULL;
    connection->pool->idle++;
    LIST_INSERT_HEAD(&connection->origin->idle, connection, link);
}

/* It is about to become something else. */
static void
end_idleness(struct connection *connection)
{
    if (connection->state != CONNECTION_IDLE)
        return;
    connection->pool->idle--;
    LIST_REMOVE(connection, link);
}

static void
claim(struct connection *connection, struct pool_lease *lease)
{
    end_idleness(connection);
    connection->state = CONNECTION_CLAIMED;
    connection->claimer = lease;
    lease->claimed = connection;
}

static void
end_use(struct pool_lease *lease)
{
    struct connection *connection = lease->used;

    if (!connection)
        return;
    LIST_REMOVE(lease, link);
    lease->used = NULL;
    if (LIST_EMPTY(&connection->users))
        make_idle(connection);
}

void
connections_use(struct connection *connection, struct pool_lease *lease, bool shared)
{
    struct pool_lease *claimer = connection->claimer;
    struct connection *left = lease->claimed;

    end_use(lease);
    end_idleness(connection);
    /* It has no claimer from here on; what the lease had claimed is left for another. */
    lease->claimed = NULL;
    if (claimer)
        claimer->claimed = NULL;
    connection->claimer = NULL;
    if (left && left != connection) {
        make_idle(left);
        if (claimer)
            claim(left, claimer);
    }
    set_kept(connection, false);
    connection->state = CONNECTION_USED;
    connection->shareable = shared;
    LIST_INSERT_HEAD(&connection->users, lease, link);
    lease->used = connection;
    if (shared)
        connection->origin->shared = connection;
}

bool
connections_may_keep(const struct connections *connections, const struct pool_lease *lease)
{
    struct connection *connection = lease->used;

    if (!connection || connection->shareable || connection->kept)
        return true;
    if (connection->origin->kept >= connections->kept)
        return false;
    set_kept(connection, true);
    return true;
}

/* ---- descriptors --------------------------------------------------------------------- */

struct connection *
connections_find(const struct connections *connections, int fd)
{
    return fd >= 0 && (size_t)fd < connections->fd_count ? connections->by_fd[fd] : NULL;
}

/* Forgets what is known of a descriptor, if anything. */
static void
forget(struct connections *connections, int fd)
{
    struct connection *connection = connections_find(connections, fd);
    struct pool_lease *lease;

    if (!connection)
        return;
    connections->by_fd[fd] = NULL;
    end_idleness(connection);
    set_kept(connection, false);
    LIST_REMOVE(connection, sibling);
    if (connection->claimer)
        connection->claimer->claimed = NULL;
    while ((lease = LIST_FIRST(&connection->users))) {
        LIST_REMOVE(lease, link);
        lease->used = NULL;
    }
    if (connection->origin->shared == connection)
        connection->origin->shared = NULL;
    connection->origin->references--;
    release_origin(connections, connection->origin);
    free(connection);
}

/* Is there a place for that descriptor now? */
static bool
make_place(struct connections *connections, size_t fd)
{
    size_t count = connections->fd_count ? connections->fd_count : 64;
    struct connection **longer;

    if (fd < connections->fd_count)
        return true;
    while (count <= fd)
        count *= 2;
    longer = realloc(connections->by_fd, count * sizeof(struct connection *));
    if (!longer)
        return false;
    for (size_t i = connections->fd_count; i < count; i++)
        longer[i] = NULL;
    connections->by_fd = longer;
    connections->fd_count = count;
    return true;
}

struct connection *
connections_add(struct connections *connections, const struct pool_lease *opener, int fd)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection || !make_place(connections, (size_t)fd)) {
        free(connection);
        return NULL;
    }
    forget(connections, fd);
    connection->pool = opener->pool;
    connection->origin = opener->origin;
    connection->origin->references++;
    connection->opener = opener;
    connection->fd = fd;
    LIST_INIT(&connection->users);
    LIST_INSERT_HEAD(&connection->pool->connections, connection, sibling);
    connections->by_fd[fd] = connection;
    return connection;
}

int
connections_on_close(struct connections *connections, curl_socket_t fd)
{
    forget(connections, fd);
    return close(fd);
}

/* ---- all connections ----------------------------------------------------------------- */

void
connections_init(struct connections *connections, unsigned most, unsigned kept)
{
    *connections = (struct connections){.count = 0};
    RB_INIT(&connections->origins);
    connections_set_most(connections, most, kept);
}

void
connections_set_most(struct connections *connections, unsigned most, unsigned kept)
{
    connections->kept = kept;
    connections->most = (most - 1) / POOL_CONNECTIONS + 1;
    connections->size = (most - 1) / connections->most + 1;
}

CURLMcode
connections_set_bounds(const struct connections *connections, CURLM *multi)
{
    long size = (long)connections->size;
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, size);

    /* For each cache of libcurl's. An idle connection is closed where a new one would be too many.
     */
    return code ? code : curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, size);
}

void
connections_free(struct connections *connections)
{
    for (unsigned i = 0; i < connections->count; i++)
        curl_share_cleanup(connections->pools[i]->share);
    for (size_t fd = 0; fd < connections->fd_count; fd++)
        forget(connections, (int)fd);
    for (unsigned i = 0; i < connections->count; i++)
        free(connections->pools[i]);
    free(connections->pools);
    free(connections->by_fd);
    *connections = (struct connections){0};
}

static bool
is_open(const struct connection *connection)
{
    struct pollfd pollfd = {.fd = connection->fd, .events = POLLRDHUP};

    /* Not recv(): TLS ends with a record. */
    return poll(&pollfd, 1, 0) <= 0;
}

/* Have the origins closed all its connections? */
static bool
is_dead(const struct pool *pool)
{
    const struct connection *connection;

    LIST_FOREACH(connection, &pool->connections, sibling)
    if (is_open(connection))
        return false;
    return !LIST_EMPTY(&pool->connections);
}

void
connections_close_unused(struct connections *connections, int64_t now_us)
{
    if (now_us < connections->look_us)
        return;
    connections->look_us = now_us + POOL_LOOK_US;
    for (unsigned i = 0; i < connections->count; i++) {
        struct pool *pool = connections->pools[i];

        /* Without a lease, no handle of libcurl has the share. */
        if (!pool->share || pool->leases) {
            continue;
        } else if (pool->unused_us == 0) {
            pool->unused_us = now_us;
        } else if ((now_us - pool->unused_us >= POOL_UNUSED_US || is_dead(pool)) &&
                   curl_share_cleanup(pool->share) == CURLSHE_OK) {
            pool->share = NULL;
            connections->open--;
        }
    }
}

/* ---- leases -------------------------------------------------------------------------- */

/* NULL without memory. */
static struct pool *
add_pool(struct connections *connections)
{
    size_t count = connections->count + 1;
    struct pool **longer = realloc(connections->pools, count * sizeof(struct pool *));
    struct pool *pool;

    if (!longer)
        return NULL;
    connections->pools = longer;
    pool = calloc(1, sizeof(*pool));
    if (!pool)
        return NULL;
    LIST_INIT(&pool->connections);
    connections->pools[connections->count++] = pool;
    return pool;
}

/* False without memory. */
static bool
open_share(struct connections *connections, struct pool *pool)
{
    CURLSH *share;

    if (pool->share)
        return true;
    share = curl_share_init();
    if (!share || curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT)) {
        curl_share_cleanup(share);
        return false;
    }
    pool->share = share;
    connections->open++;
    return true;
}

static bool
has_slot(const struct connections *connections, const struct pool *pool)
{
    return pool->leases < connections->size;
}

/* May it open a connection, and keep all it has? */
static bool
has_place(const struct connections *connections, const struct pool *pool)
{
    return pool->leases + pool->idle < connections->size;
}

/* libcurl gives no transfer of HTTP/1 a connection of HTTP/2. */
static struct connection *
find_idle(const struct connections *connections, const struct pool_origin *origin, bool may_share)
{
    struct connection *connection = LIST_FIRST(&origin->idle);

    for (int i = 0; connection && i < LOOK_AT; i++, connection = LIST_NEXT(connection, link))
        if (has_slot(connections, connection->pool) && (may_share || !connection->shareable))
            return connection;
    return NULL;
}

typedef bool pool_test(const struct connections *connections, const struct pool *pool);

/* The next pool that passes, in turns; NULL if none does. */
static struct pool *
find_pool(struct connections *connections, pool_test *passes)
{
    for (unsigned i = 0; i < connections->count; i++) {
        unsigned at = (connections->cursor + i) % connections->count;

        if (passes(connections, connections->pools[at])) {
            connections->cursor = at;
            return connections->pools[at];
        }
    }
    return NULL;
}

/* A pool for a new connection; NULL without memory. */
static struct pool *
choose_for_new(struct connections *connections)
{
    struct pool *pool = find_pool(connections, has_place);

    if (!pool && connections->count < connections->most)
        pool = add_pool(connections);
    if (pool || connections->count == 0)
        return pool;
    /* An idle connection is closed for the new one, not always one of the same pool. */
    connections->cursor++;
    pool = find_pool(connections, has_slot);
    return pool ? pool : connections->pools[connections->cursor % connections->count];
}

bool
connections_lease(struct connections *connections, struct pool_lease *lease, const char *key,
                  enum pool_wish wish)
{
    struct pool_origin *origin = pool_origin_tree_search(&connections->origins, key);
    struct connection *idle = NULL;
    struct pool *pool = NULL;

    if (!origin)
        origin = pool_origin_tree_add(&connections->origins, key);
    if (!origin)
        return false;
    if (wish == POOL_SHARED && origin->shared && has_slot(connections, origin->shared->pool))
        pool = origin->shared->pool;
    if (!pool && wish != POOL_NEW)
        idle = find_idle(connections, origin, wish == POOL_SHARED);
    if (idle)
        pool = idle->pool;
    if (!pool)
        pool = choose_for_new(connections);
    if (!pool || !open_share(connections, pool)) {
        release_origin(connections, origin);
        return false;
    }
    *lease = (struct pool_lease){.pool = pool, .origin = origin};
    origin->references++;
    if (idle)
        claim(idle, lease);
    pool->leases++;
    pool->unused_us = 0;
    return true;
}

CURLSH *
pool_share(const struct pool *pool)
{
    return pool->share;
}

void
connections_end_lease(struct connections *connections, struct pool_lease *lease)
{
    if (!lease->pool)
        return;
    if (lease->claimed)
        make_idle(lease->claimed);
    end_use(lease);
    lease->pool->leases--;
    lease->origin->references--;
    release_origin(connections, lease->origin);
    *lease = (struct pool_lease){0};
}

/* ---- checking ------------------------------------------------------------------------ */

/* Without scopes and flow labels, which libcurl does not report. */
static bool
same_address(const union address *a, const union address *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->in.sin_port == b->in.sin_port && a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
    return a->in6.sin6_port == b->in6.sin6_port &&
           memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof(a->in6.sin6_addr)) == 0;
}

static bool
is_between(const struct connection *connection, const union address *local,
           const union address *peer)
{
    return same_address(&connection->local, local) && same_address(&connection->peer, peer);
}

/* The addresses of a socket, once it is connected. */
static void
read_addresses(struct connection *connection)
{
    socklen_t local_len = sizeof(connection->local), peer_len = sizeof(connection->peer);

    if (getsockname(connection->fd, &connection->local.any, &local_len) != 0 ||
        getpeername(connection->fd, &connection->peer.any, &peer_len) != 0)
        connection->local.any.sa_family = AF_UNSPEC;
}

/* The one of the pool that has these addresses: mostly the one that is claimed. */
static struct connection *
find(const struct pool_lease *lease, const union address *local, const union address *peer)
{
    struct connection *connection = lease->claimed;

    if (connection && is_between(connection, local, peer))
        return connection;
    LIST_FOREACH(connection, &lease->pool->connections, sibling)
    {
        if (connection->state == CONNECTION_OPENING && connection->opener == lease)
            read_addresses(connection);
        if (is_between(connection, local, peer))
            return connection;
    }
    return NULL;
}

/* A connection's TLS, if libcurl has it from OpenSSL. */
static SSL *
get_tls(CURL *easy)
{
    struct curl_tlssessioninfo *info = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK || !info ||
        info->backend != CURLSSLBACKEND_OPENSSL)
        return NULL;
    return info->internals;
}

bool
connections_speak_http_2(CURL *easy)
{
    SSL *tls = get_tls(easy);
    const unsigned char *protocol;
    unsigned len = 0;

    if (tls)
        SSL_get0_alpn_selected(tls, &protocol, &len);
    return len == 2 && memcmp(protocol, "h2", 2) == 0;
}

/*
 * OpenSSL is not asked to read: libcurl's BIO must not be used outside of libcurl (7.88 crashes
 * there when the socket fails). So a TLS record of any kind counts. Tickets come with the handshake
 * and are read with the first answer.
 */
static bool
is_quiet(CURL *easy, int fd)
{
    SSL *tls = get_tls(easy);
    char byte;

    return !(tls && SSL_has_pending(tls)) && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
           (errno == EAGAIN || errno == EWOULDBLOCK);
}

bool
connections_may_serve(CURL *easy, struct pool_lease *lease, const char *to, const char *from,
                      int to_port, int from_port)
{
    struct connection *connection = NULL;
    bool http_2 = connections_speak_http_2(easy);
    union address local, peer;
    long fresh = 0;

    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &fresh);
    if (address_parse(to, (uint16_t)to_port, &peer) &&
        address_parse(from, (uint16_t)from_port, &local))
        connection = find(lease, &local, &peer);
    if (fresh == 0 && !http_2 && (!connection || !is_quiet(easy, connection->fd)))
        return false;
    if (connection)
        connections_use(connection, lease, http_2);
    return true;
}
