#include "rpc/protocol.h"

#include "rpc/dispatch.h"
#include "rpc/record.h"
#include "rpc/request.h"
#include "rpc/transport.h"

static struct rpc_connection *
connection_of(struct net_connection *connection)
{
    return (struct rpc_connection *)connection;
}

static void
opened(struct net_connection *net)
{
    const struct rpc_service *service = net->context;
    struct rpc_connection *c = connection_of(net);

    c->worker = &service->workers[net_worker_number(net->set->worker)];
    LIST_INIT(&c->waiting);
    LIST_INIT(&c->kept);
    c->may_call =
        !service->limits.may_call || service->limits.may_call(service->context, &net->peer);
}

static enum net_input
received(struct net_connection *net, struct span *input)
{
    struct rpc_connection *c = connection_of(net);
    struct span record;
    bool dispatched;

    switch (rpc_record_feed(&c->record, &c->worker->service->limits, input, &record)) {
    case RPC_RECORD_MORE:
        return NET_INPUT_PARTIAL;
    case RPC_RECORD_NO_SPACE:
        return NET_INPUT_NO_MEMORY;
    case RPC_RECORD_COMPLETE:
        dispatched = rpc_dispatch(c, record);
        rpc_record_reset(&c->record);
        return dispatched ? NET_INPUT_MESSAGE : NET_INPUT_END;
    case RPC_RECORD_BAD:
        net_counter_add(&c->worker->calls_bad, 1);
        return NET_INPUT_END;
    default:
        return NET_INPUT_END;
    }
}

static void
stopped(struct net_connection *net)
{
    struct rpc_connection *c = connection_of(net);
    struct rpc_request *request, *next;

    rpc_record_reset(&c->record);
    for (request = LIST_FIRST(&c->kept); request; request = next) {
        next = LIST_NEXT(request, kept);
        request->keeper->stopped(request);
    }
}

/* Requests that are still deferred or kept have been abandoned. */
static void
closed(struct net_connection *net)
{
    struct rpc_connection *c = connection_of(net);
    struct rpc_request *request;

    while ((request = LIST_FIRST(&c->waiting))) {
        LIST_REMOVE(request, link);
        rpc_request_unref(request);
    }
    while ((request = LIST_FIRST(&c->kept))) {
        LIST_REMOVE(request, kept);
        request->keeper = NULL;
        rpc_request_unref(request);
    }
}

const struct net_protocol rpc_protocol = {
    .connection_size = sizeof(struct rpc_connection),
    .answers_all = true,
    .opened = opened,
    .received = received,
    .stopped = stopped,
    .closed = closed,
};
