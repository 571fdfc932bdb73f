#include "server/http/http_stream.h"

#include <arpa/inet.h>

#include "net/near_peer.h"
#include "server/http/http_connection.h"

/* A connection is tuned to a near peer before it sends that much at once, or that often. */
enum { TUNED_BYTES = 32768, TUNED_OUTPUTS = 16 };

void
http_stream_begin(struct http_stream *stream, struct http_connection *c)
{
    stream->connection = c;
    stream->worker = c->worker;
    c->current = stream;
    net_connection_begin_request(&c->net);
}

void
http_stream_free(struct http_stream *stream)
{
    struct http_connection *c = stream->connection;

    http_stream_set_waiting(stream, false);
    if (c->current == stream)
        c->current = NULL;
    net_connection_end_request(&c->net);
    http_connection_read_next(c);
    net_connection_mark(&c->net);
}

/* ---- the request ----------------------------------------------------------------------------- */

int64_t
http_stream_arrived_us(const struct http_stream *stream)
{
    return stream->connection->net.read_us;
}

bool
http_stream_awaits_body(const struct http_stream *stream)
{
    return stream->connection->in_body;
}

void
http_stream_drop_body(struct http_stream *stream)
{
    stream->connection->in_body = false;
    net_connection_set_unread(&stream->connection->net);
}

void
http_stream_read_on(struct http_stream *stream)
{
    net_connection_release_input(&stream->connection->net);
}

const struct net_peer *
http_stream_sender(const struct http_stream *stream)
{
    return http_sender(stream->connection);
}

struct span
http_peer_name(const struct net_peer *peer, char text[INET6_ADDRSTRLEN])
{
    const struct sockaddr_storage *address = &peer->address;
    const struct in6_addr *inet6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
                  INET6_ADDRSTRLEN);
    else if (address->ss_family != AF_INET6)
        memcpy(text, "unix", sizeof("unix"));
    else if (IN6_IS_ADDR_V4MAPPED(inet6))
        inet_ntop(AF_INET, &inet6->s6_addr[12], text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, inet6, text, INET6_ADDRSTRLEN);
    return span_str(text);
}

struct span
http_stream_sender_name(struct http_stream *stream)
{
    struct http_connection *c = stream->connection;

    return c->sender[0] ? span_str(c->sender) : http_peer_name(http_sender(c), c->sender);
}

bool
http_stream_is_tls(const struct http_stream *stream)
{
    return stream->connection->tls;
}

struct client *
http_stream_client(const struct http_stream *stream)
{
    return stream->connection->net.client;
}

bool
http_stream_is_bounded(const struct http_stream *stream)
{
    return stream->connection->net.bounded;
}

struct client *
http_stream_find_client(const struct http_stream *stream, const struct sockaddr_storage *address)
{
    return net_connection_find_client(&stream->connection->net, (const struct sockaddr *)address);
}

struct client *
http_stream_find_named(const struct http_stream *stream, enum client_kind kind, struct span name)
{
    const struct net_connections *set = stream->connection->net.set;

    return clients_find_named(net_admission_clients(set->admission), kind, name,
                              set->worker->now_us);
}

/* ---- the response ---------------------------------------------------------------------------- */

bool
http_stream_is_open(const struct http_stream *stream)
{
    return net_connection_is_open(&stream->connection->net);
}

bool
http_stream_is_draining(const struct http_stream *stream)
{
    const struct net_connections *set = stream->connection->net.set;

    return set->draining || set->leaving;
}

void
http_stream_set_waiting(struct http_stream *stream, bool waiting)
{
    if (stream->activity != (waiting ? HTTP_IDLE : HTTP_WAITING))
        return;
    stream->activity = waiting ? HTTP_WAITING : HTTP_IDLE;
    if (waiting)
        net_connection_defer_request(&stream->connection->net);
    else
        net_connection_resume_request(&stream->connection->net);
}

/*
 * Not when the connection is accepted: with 5,000 connections that have a few hits of 1 KiB each,
 * the calls are 1 to 2 % of the CPU per hit. The round-trip time is better known later, too.
 */
static void
tune(struct http_connection *c, size_t bytes)
{
    if (c->tuned || (bytes < TUNED_BYTES && ++c->outputs < TUNED_OUTPUTS))
        return;
    c->tuned = true;
    net_near_peer_tune(c->net.fd);
}

void
http_stream_send(struct http_stream *stream)
{
    struct http_connection *c = stream->connection;

    http_stream_set_waiting(stream, false);
    stream->activity = HTTP_SENDING;
    tune(c, stream->output.len);
    net_connection_send(&c->net, &stream->output);
}

void
http_stream_send_interim(struct http_stream *stream, struct net_output *output)
{
    net_connection_send(&stream->connection->net, output);
}

void
http_stream_end(struct http_stream *stream, bool persistent)
{
    struct http_connection *c = stream->connection;

    if (c->current != stream)
        return;
    c->current = NULL;
    if (c->in_body || !persistent)
        c->ending = true;
    if (c->in_body)
        http_stream_drop_body(stream);
    if (c->ending)
        http_connection_end(c);
    else
        net_connection_release_input(&c->net);
}

void
http_stream_set_last(struct http_stream *stream)
{
    stream->connection->ending = true;
}

void
http_stream_set_reset(struct http_stream *stream)
{
    net_connection_set_reset(&stream->connection->net);
}

void
http_stream_reset(struct http_stream *stream)
{
    net_connection_set_reset(&stream->connection->net);
    net_connection_close(&stream->connection->net);
}

/* While input is received, its result ends the connection (http_input.c). */
void
http_connection_end(struct http_connection *c)
{
    if (!c->receiving)
        net_connection_finish(&c->net);
}

void
http_connection_read_next(struct http_connection *c)
{
    if (c->net.held && http_connection_takes_request(c))
        net_connection_release_input(&c->net);
}

/* ---- the worker ------------------------------------------------------------------------------ */

void
http_stream_post(const struct http_stream *stream, struct net_task *task)
{
    net_worker_post(stream->connection->net.set->worker, task);
}

struct net_worker *
http_stream_net_worker(const struct http_stream *stream)
{
    return stream->connection->net.set->worker;
}

unsigned
http_stream_worker_number(const struct http_stream *stream)
{
    return net_worker_number(http_stream_net_worker(stream));
}
