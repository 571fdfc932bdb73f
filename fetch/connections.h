/*
 * The open connections of a fetcher, to see before a kept one is used again whether bytes have come
 * that belong to no request (RFC 9112 section 9.2). libcurl before 8.0 does not look, and what an
 * origin sent unasked would pass for the answer to the next request, and so on with all after it.
 * They are divided among pools (pool.h), and the pools are kept up to date.
 *
 * One thread. libcurl calls connections_on_close() when it closes a socket, up to
 * connections_free().
 */
#ifndef SUNPROXY_FETCH_CONNECTIONS_H
#define SUNPROXY_FETCH_CONNECTIONS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "fetch/pool.h"

struct connection;

LIST_HEAD(connection_list, connection);

#define CONNECTION_BUCKETS 4096u

struct connections {
    struct pools pools;
    struct connection_list fresh[CONNECTION_BUCKETS];   /* by opener: no addresses are known yet */
    struct connection_list buckets[CONNECTION_BUCKETS]; /* by local port */
    struct connection **by_fd;                          /* owned: the array */
    size_t fd_count;                                    /* of its places */
};

/* For `most` connections, of which an origin may have `kept` idle (pools_init()). */
void connections_init(struct connections *connections, unsigned most, unsigned kept);

/* Calls pools_close_unused(). */
void connections_close_unused(struct connections *connections, int64_t now_us);

/* Closes them all. After curl_multi_cleanup(), with all leases ended. */
void connections_free(struct connections *connections);

/*
 * Remembers a socket that the transfer of `opener` is about to connect, in place of an earlier one
 * with this descriptor: libcurl 7.88 closes a socket that has not been connected without telling.
 * False without memory.
 */
bool connections_add(struct connections *connections, const struct pool_lease *opener, int fd);

/* For CURLOPT_CLOSESOCKETFUNCTION, with the connections as its data: forgets and closes. */
int connections_on_close(void *connections, curl_socket_t fd);

/*
 * Asked in CURLOPT_PREREQFUNCTION, with its arguments: may the connection that `easy` has got serve
 * its request? A new one may. A kept one may if no byte waits in it and it was not closed. HTTP/2
 * attributes answers to requests itself. If it may, the lease of the transfer uses it from then on.
 */
bool connections_may_serve(struct connections *connections, CURL *easy, struct pool_lease *lease,
                           const char *to, const char *from, int to_port, int from_port);

/* Was HTTP/2 negotiated (ALPN, RFC 9113 section 3.2) for the connection that `easy` has got? */
bool connections_speak_http_2(CURL *easy);

#endif
