#include "rpc/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/protocol.h"
#include "rpc/transport.h"

struct rpc_server {
    struct net_server *net;
    struct rpc_service service;
    unsigned worker_count;
};

static bool
copy_programs(struct rpc_service *service, const struct rpc_program *programs, size_t count)
{
    service->programs = malloc((count ? count : 1) * sizeof(*programs));
    if (!service->programs)
        return false;
    if (count)
        memcpy(service->programs, programs, count * sizeof(*programs));
    service->program_count = count;
    return true;
}

static bool
set_up_workers(struct rpc_server *server, unsigned workers)
{
    struct rpc_worker *all = calloc(workers, sizeof(*all));

    if (!all)
        return false;
    for (unsigned i = 0; i < workers; i++) {
        all[i].service = &server->service;
        SLIST_INIT(&all[i].pool);
    }
    server->service.workers = all;
    server->worker_count = workers;
    return true;
}

struct rpc_server *
rpc_server_create(const struct rpc_limits *limits, unsigned workers,
                  const struct rpc_program *programs, size_t program_count, void *context)
{
    struct rpc_server *server;

    if (!limits->max_record) {
        errno = EINVAL;
        return NULL;
    }
    server = calloc(1, sizeof(*server));
    if (!server)
        return NULL;
    server->service.limits = *limits;
    server->service.limits.net.context = context;
    server->service.context = context;
    server->net = net_server_create(&server->service.limits.net, workers);
    if (!server->net || !copy_programs(&server->service, programs, program_count) ||
        !set_up_workers(server, workers)) {
        int error = errno;

        rpc_server_destroy(server);
        errno = error;
        return NULL;
    }
    return server;
}

int
rpc_server_listen(struct rpc_server *server, int fd)
{
    return net_server_listen(server->net, fd, &rpc_protocol, &server->service);
}

int
rpc_server_start(struct rpc_server *server)
{
    return net_server_start(server->net);
}

void
rpc_server_stop_accepting(struct rpc_server *server)
{
    net_server_stop_accepting(server->net);
}

void
rpc_server_set_limits(struct rpc_server *server, const struct net_limits *limits)
{
    struct net_limits with_context = *limits;

    with_context.context = server->service.context;
    net_server_set_limits(server->net, &with_context);
}

void
rpc_server_leave(struct rpc_server *server)
{
    net_server_leave(server->net);
}

unsigned
rpc_server_stop(struct rpc_server *server, int64_t timeout_us)
{
    return net_server_stop(server->net, timeout_us);
}

void
rpc_server_destroy(struct rpc_server *server)
{
    if (!server)
        return;
    /* First: it releases what is left of requests. */
    net_server_destroy(server->net);
    for (unsigned i = 0; i < server->worker_count; i++)
        rpc_worker_free_pool(&server->service.workers[i]);
    free(server->service.workers);
    free(server->service.programs);
    free(server);
}

void
rpc_server_relieve(struct rpc_server *server)
{
    net_server_relieve(server->net);
}

void
rpc_server_get_stats(struct rpc_server *server, struct rpc_stats *stats)
{
    *stats = (struct rpc_stats){.calls = 0};
    net_server_get_stats(server->net, &stats->net);
    for (unsigned i = 0; i < server->worker_count; i++) {
        stats->calls += net_counter_read(&server->service.workers[i].calls);
        stats->calls_bad += net_counter_read(&server->service.workers[i].calls_bad);
    }
}

struct net_server *
rpc_server_net(struct rpc_server *server)
{
    return server->net;
}

struct rpc_service *
rpc_server_service(struct rpc_server *server)
{
    return &server->service;
}
