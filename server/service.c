#include "server/service.h"

#include <assert.h>
#include <unistd.h>

static char loopback4[] = "127.0.0.0/8", loopback6[] = "::1";
static char *loopback[] = {loopback4, loopback6, NULL};
const struct option_list service_loopback = {.items = loopback, .count = 2};

struct service *
service_of(const struct rpc_request *request)
{
    struct service *service = rpc_request_context(request);

    assert(service->magic == SERVICE_MAGIC);
    return service;
}

bool
service_add_networks(struct networks *networks, const struct option_list *list, const char *name,
                     struct buf *why)
{
    char sentence[256];
    bool added = true;

    for (size_t i = 0; i < list->count; i++) {
        if (networks_add(networks, list->items[i], sentence, sizeof(sentence)))
            continue;
        buf_end_line(why);
        buf_printf(why, "%s%s: %s", option_place(list, i), name, sentence);
        added = false;
    }
    return added;
}

bool
service_read_clients(struct service *service, struct buf *why)
{
    const struct option_list *list = &service->options->client_net;

    return service_add_networks(&service->clients, list->count ? list : &service_loopback,
                                "client-net", why);
}

bool
service_is_client(const struct service *service, const struct net_peer *peer)
{
    return peer->has_uid ||
           networks_have_address(&service->clients, (const struct sockaddr *)&peer->address);
}

void
service_log(const struct service *service, const struct access_entry *entry)
{
    if (service->access_log)
        access_log_add(service->access_log, entry);
    if (service->request_db)
        request_db_add(service->request_db, entry);
}

bool
service_is_admin(const struct service *service, const struct net_peer *peer)
{
    if (!peer->has_uid)
        return false;
    if (peer->uid == 0 || peer->uid == geteuid())
        return true;
    for (size_t i = 0; i < service->admin_count; i++)
        if (service->admins[i] == peer->uid)
            return true;
    return false;
}

bool
service_shows_victims(const struct service *service, const struct net_peer *peer)
{
    switch (service->options->show_victims) {
    case VICTIMS_ALL:
        return true;
    case VICTIMS_ADMIN:
        return service_is_admin(service, peer);
    default:
        return false;
    }
}
