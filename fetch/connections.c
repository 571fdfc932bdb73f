#include "fetch/connections.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/container_of.h"
#include "base/hash.h"
#include "fetch/url.h"

struct connection {
    LIST_ENTRY(connection) link;     /* in fresh, or in its bucket */
    const struct pool_lease *opener; /* while it is in fresh */
    struct pool_member member;
    int fd;
    union address local, peer;
};

void
connections_init(struct connections *connections, unsigned most, unsigned kept)
{
    pools_init(&connections->pools, most, kept);
    for (unsigned i = 0; i < CONNECTION_BUCKETS; i++) {
        LIST_INIT(&connections->fresh[i]);
        LIST_INIT(&connections->buckets[i]);
    }
    connections->by_fd = NULL;
    connections->fd_count = 0;
}

/* Forgets what is known of a descriptor, if anything. */
static void
forget(struct connections *connections, int fd)
{
    struct connection *connection = NULL;

    if (fd >= 0 && (size_t)fd < connections->fd_count) {
        connection = connections->by_fd[fd];
        connections->by_fd[fd] = NULL;
    }
    if (connection) {
        pool_remove_member(&connections->pools, &connection->member);
        LIST_REMOVE(connection, link);
        free(connection);
    }
}

void
connections_free(struct connections *connections)
{
    pools_close(&connections->pools);
    for (size_t fd = 0; fd < connections->fd_count; fd++)
        forget(connections, (int)fd);
    pools_free(&connections->pools);
    free(connections->by_fd);
    connections->by_fd = NULL;
    connections->fd_count = 0;
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

static struct connection_list *
fresh_of(struct connections *connections, const struct pool_lease *opener)
{
    return &connections->fresh[hash64_uint((uintptr_t)opener) % CONNECTION_BUCKETS];
}

bool
connections_add(struct connections *connections, const struct pool_lease *opener, int fd)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection || !make_place(connections, (size_t)fd)) {
        free(connection);
        return false;
    }
    forget(connections, fd);
    connection->opener = opener;
    connection->fd = fd;
    pool_add_member(&connection->member, opener);
    connections->by_fd[fd] = connection;
    LIST_INSERT_HEAD(fresh_of(connections, opener), connection, link);
    return true;
}

/* ---- finding ------------------------------------------------------------------------- */

static struct connection_list *
bucket_of(struct connections *connections, uint16_t local_port)
{
    return &connections->buckets[local_port % CONNECTION_BUCKETS];
}

static uint16_t
port_of(const union address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->in.sin_port : address->in6.sin6_port);
}

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

/* The addresses of a socket, once it is connected. */
static bool
read_addresses(struct connection *connection)
{
    socklen_t local_len = sizeof(connection->local), peer_len = sizeof(connection->peer);

    return getsockname(connection->fd, &connection->local.any, &local_len) == 0 &&
           getpeername(connection->fd, &connection->peer.any, &peer_len) == 0;
}

/* Puts what a transfer has opened, now that it is connected, where find() looks. */
static void
sort_fresh(struct connections *connections, const struct pool_lease *opener)
{
    struct connection *connection = LIST_FIRST(fresh_of(connections, opener));

    while (connection) {
        struct connection *next = LIST_NEXT(connection, link);

        if (connection->opener == opener && read_addresses(connection)) {
            LIST_REMOVE(connection, link);
            LIST_INSERT_HEAD(bucket_of(connections, port_of(&connection->local)), connection, link);
        }
        connection = next;
    }
}

static struct connection *
find(struct connections *connections, const union address *local, const union address *peer)
{
    struct connection *connection;

    LIST_FOREACH(connection, bucket_of(connections, port_of(local)), link)
    if (same_address(&connection->local, local) && same_address(&connection->peer, peer))
        return connection;
    return NULL;
}

int
connections_on_close(void *context, curl_socket_t fd)
{
    forget(context, fd);
    return close(fd);
}

/* ---- checking ------------------------------------------------------------------------ */

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

static bool
is_open(struct pool_member *member)
{
    struct connection *connection = container_of(member, struct connection, member);
    struct pollfd pollfd = {.fd = connection->fd, .events = POLLRDHUP};

    /* Not recv(): TLS ends with a record. */
    return poll(&pollfd, 1, 0) <= 0;
}

void
connections_close_unused(struct connections *connections, int64_t now_us)
{
    pools_close_unused(&connections->pools, now_us, is_open);
}

bool
connections_may_serve(struct connections *connections, CURL *easy, struct pool_lease *lease,
                      const char *to, const char *from, int to_port, int from_port)
{
    struct connection *connection = NULL;
    bool http_2 = connections_speak_http_2(easy);
    union address local, peer;
    long fresh = 0;

    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &fresh);
    if (fresh > 0)
        sort_fresh(connections, lease);
    if (address_parse(to, (uint16_t)to_port, &peer) &&
        address_parse(from, (uint16_t)from_port, &local))
        connection = find(connections, &local, &peer);
    if (fresh == 0 && !http_2 && (!connection || !is_quiet(easy, connection->fd)))
        return false;
    if (connection)
        pool_take_member(&connection->member, lease, http_2);
    return true;
}
