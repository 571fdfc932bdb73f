#include "fetch/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "fetch/method_rules.h"
#include "fetch/transfer.h"

static bool
is_chosen(const struct transfer *t, const union address *address)
{
    char chosen[INET6_ADDRSTRLEN], wanted[INET6_ADDRSTRLEN];

    address_format(address, wanted, sizeof(wanted));
    for (size_t i = 0; i < t->addresses->count; i++)
        if (strcmp(address_format(&t->addresses->list[i], chosen, sizeof(chosen)), wanted) == 0)
            return true;
    return false;
}

static curl_socket_t give_none(struct transfer *t, enum fetch_error why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static curl_socket_t
give_none(struct transfer *t, enum fetch_error why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    sentence_format(t->sentence, sizeof(t->sentence), format, args);
    va_end(args);
    t->no_socket = why;
    return CURL_SOCKET_BAD;
}

/*
 * False, with a failure, if the request has been given to a connection, which did not answer, and
 * must not be sent again, as libcurl would.
 */
static bool
may_begin(struct transfer *t)
{
    if (!t->sent || method_may_repeat(t->request))
        return true;
    transfer_fail(t, FETCH_ORIGIN_BROKE,
                  "%s closed the connection before it answered; the request is not sent again",
                  t->target->host);
    return false;
}

/* The last check of an address, just before it is connected to. */
curl_socket_t
connect_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct transfer *t = context;
    union address address = {0};
    char why[SENTENCE_MAX];
    bool permitted = false;
    int fd;

    if (purpose != CURLSOCKTYPE_IPCXN || to->addrlen > sizeof(address))
        return CURL_SOCKET_BAD;
    if (!may_begin(t))
        return CURL_SOCKET_BAD;
    /* A kept connection turned out to be dead, and libcurl tries again with a new one. */
    if (t->stage == TRANSFER_ASKED || t->stage == TRANSFER_SENDING)
        transfer_enter(t, TRANSFER_CONNECTING);
    memcpy(&address, &to->addr, to->addrlen);
    if (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6)
        permitted = address_policy_permits(t->settings->config.addresses, &address.any) ||
                    (t->by_operator && is_chosen(t, &address));
    if (!permitted)
        return give_none(t, FETCH_DENIED, "%s",
                         sentence_refuse(why, sizeof(why), t->settings->config.addresses,
                                         t->target->host, &address));
    fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd >= 0 && descriptors_is_reserved(fd, t->settings->config.reserved_descriptors)) {
        close(fd);
        fd = -1;
        errno = EMFILE;
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return give_none(t, FETCH_OVERLOADED, "no descriptor is left for a connection; try again");
    if (fd >= 0 && !connections_add(t->owner.connections, &t->lease, fd)) {
        close(fd);
        return give_none(t, FETCH_INTERNAL, "out of memory");
    }
    if (fd >= 0 && t->owner.poller)
        poller_add(t->owner.poller, fd);
    return fd;
}

int
connect_begin_request(void *context, char *to, char *from, int to_port, int from_port)
{
    struct transfer *t = context;

    if (!may_begin(t))
        return CURL_PREREQFUNC_ABORT;
    /* libcurl rewinds only after a part of the body was written, and may have read more than that.
     */
    upload_rewind(&t->upload);
    t->unclean = !connections_may_serve(t->owner.connections, t->easy, &t->lease, to, from, to_port,
                                        from_port);
    if (t->unclean)
        return CURL_PREREQFUNC_ABORT; /* which closes the connection */
    t->sent = true;
    transfer_enter(t, t->upload.ended ? TRANSFER_ASKED : TRANSFER_SENDING);
    t->asked_us = t->last_byte_us;
    return CURL_PREREQFUNC_OK;
}

/* No name is to be resolved by libcurl, where it could stall others: all are pinned. */
int
connect_begin_lookup(void *resolver, void *reserved, void *context)
{
    const struct transfer *t = context;

    (void)resolver;
    (void)reserved;
    return !t->literal_route;
}

int
transfer_take_socket(struct transfer *t)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    int own;

    if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
        fd == CURL_SOCKET_BAD) {
        errno = ENOTCONN;
        return -1;
    }
    if (t->owner.poller)
        poller_remove(t->owner.poller, fd);
    /* libcurl closes its own descriptor, and the connection stays. */
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 && descriptors_is_reserved(own, t->settings->config.reserved_descriptors)) {
        close(own);
        errno = EMFILE;
        return -1;
    }
    return own;
}
