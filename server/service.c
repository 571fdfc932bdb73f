#include "server/service.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proxy.h"

struct service *
service_of(const struct rpc_request *request)
{
    struct service *service = rpc_request_context(request);

    assert(service->magic == SERVICE_MAGIC);
    return service;
}

bool
service_is_client(const struct service *service, const struct net_peer *peer)
{
    return peer->has_uid ||
           networks_have_address(&service_config(service)->clients,
                                 (const struct sockaddr *)&peer->address);
}

void
service_log(const struct service *service, const struct access_entry *entry)
{
    if (service->access_log)
        access_log_add(service->access_log, entry, &service_config(service)->log_format);
    if (service->request_db)
        request_db_add(service->request_db, entry);
}

bool
service_is_admin(const struct service *service, const struct net_peer *peer)
{
    const struct config *config;

    if (!peer->has_uid)
        return false;
    if (peer->uid == 0 || peer->uid == geteuid())
        return true;
    config = service_config(service);
    for (size_t i = 0; i < config->admin_count; i++)
        if (config->admins[i] == peer->uid)
            return true;
    return false;
}

const char *
service_uncounted(const struct service *service, bool counts_disk)
{
    if (service->tier)
        return ", and those of the shared tier";
    return service->store && !counts_disk ? ", and those on disk" : "";
}

bool
service_shows_victims(const struct service *service, const struct net_peer *peer)
{
    switch (service_config(service)->options->show_victims) {
    case VICTIMS_ALL:
        return true;
    case VICTIMS_ADMIN:
        return service_is_admin(service, peer);
    default:
        return false;
    }
}

char *
service_name_file(const char *path)
{
    char *name = realpath(path, NULL);

    if (name && strlen(name) > PROXY_MAX_NAME) {
        free(name);
        return NULL;
    }
    return name;
}
