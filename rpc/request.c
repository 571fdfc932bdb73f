#include "rpc/request.h"

#include "base/clock.h"
#include "rpc/transport.h"

struct rpc_request *
rpc_request_of(SVCXPRT *transport)
{
    return (struct rpc_request *)transport;
}

void *
rpc_request_context(const struct rpc_request *request)
{
    return request->connection->worker->service->context;
}

struct net_worker *
rpc_request_worker(const struct rpc_request *request)
{
    return request->connection->net.set->worker;
}

struct client *
rpc_request_client(const struct rpc_request *request)
{
    return request->connection->net.client;
}

bool
rpc_request_is_bounded(const struct rpc_request *request)
{
    return request->connection->net.bounded;
}

size_t
rpc_request_bytes(const struct rpc_request *request)
{
    return rpc_service_request_bytes(request->connection->worker->service);
}

void *
rpc_request_data(struct rpc_request *request)
{
    return request->data;
}

struct rpc_request *
rpc_request_of_data(void *data)
{
    return (struct rpc_request *)((char *)data - offsetof(struct rpc_request, data));
}

const struct net_peer *
rpc_request_peer(const struct rpc_request *request)
{
    return &request->connection->net.peer;
}

struct span
rpc_request_arguments(const struct rpc_request *request)
{
    return request->arguments;
}

int64_t
rpc_request_arrived_us(const struct rpc_request *request)
{
    return request->arrived_us;
}

void
rpc_request_hold(struct rpc_request *request, void (*release)(void *held), void *held)
{
    request->release = release;
    request->held = held;
}

void
rpc_request_defer(struct rpc_request *request)
{
    if (request->deferred || request->answered)
        return;
    request->deferred = true;
    request->references++;
    net_connection_defer_request(&request->connection->net);
    LIST_INSERT_HEAD(&request->connection->waiting, request, link);
}

/* Ends the wait of a deferred request; false when its connection has gone. */
static bool
take_up(struct rpc_request *request)
{
    struct net_connection *connection = &request->connection->net;

    LIST_REMOVE(request, link);
    request->deferred = false;
    net_connection_resume_request(connection);
    return net_connection_is_open(connection);
}

void
rpc_request_reply(struct rpc_request *request, xdrproc_t encode, void *result)
{
    if (take_up(request) && !svc_sendreply(&request->transport, encode, result))
        svcerr_systemerr(&request->transport);
    if (!request->answered)
        rpc_request_note_written(request);
    rpc_request_unref(request);
}

void
rpc_request_keep(struct rpc_request *request, const struct rpc_keeper *keeper)
{
    struct rpc_connection *connection = request->connection;

    request->keeper = keeper;
    request->references++;
    LIST_INSERT_HEAD(&connection->kept, request, kept);
    net_connection_keep_request(&connection->net);
}

void
rpc_request_unkeep(struct rpc_request *request)
{
    LIST_REMOVE(request, kept);
    request->keeper = NULL;
    net_connection_unkeep_request(&request->connection->net);
    rpc_request_unref(request);
}

struct rpc_request *
rpc_request_next_kept(const struct rpc_request *request, const struct rpc_request *previous)
{
    return previous ? LIST_NEXT(previous, kept) : LIST_FIRST(&request->connection->kept);
}

void
rpc_request_close_unread(struct rpc_request *request, int64_t us)
{
    struct net_connection *connection = &request->connection->net;
    int64_t since_us = net_output_queue_since(&connection->out);

    if (since_us != INT64_MAX && clock_monotonic_us() - since_us >= us)
        net_connection_time_out(connection);
}

bool
rpc_request_is_open(const struct rpc_request *request)
{
    return net_connection_is_open(&request->connection->net);
}

void
rpc_request_error(struct rpc_request *request, enum rpc_error error)
{
    bool deferred = request->deferred;

    if (!deferred || take_up(request)) {
        if (error == RPC_ERROR_GARBAGE_ARGS)
            svcerr_decode(&request->transport);
        else
            svcerr_systemerr(&request->transport);
    }
    if (deferred)
        rpc_request_unref(request);
}
