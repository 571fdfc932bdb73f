#include "server/service.h"

#include <assert.h>
#include <unistd.h>

struct service *
service_of(const struct rpc_request *request)
{
    struct service *service = rpc_request_context(request);

    assert(service->magic == SERVICE_MAGIC);
    return service;
}

static bool
read_rules(struct tag_rules *rules, const struct option_list *list, const char *option,
           struct buf *why)
{
    for (size_t i = 0; i < list->count; i++) {
        size_t before = why->len;

        buf_printf(why, "%s: ", option);
        if (!tag_rules_add(rules, list->items[i], why))
            return false;
        why->len = before;
    }
    return true;
}

bool
service_read_tag_rules(struct service *service, struct buf *why)
{
    const struct options *options = service->options;

    return read_rules(&service->tag_rules, &options->tag_rule, "tag-rule", why) &&
           read_rules(&service->write_rules, &options->write_rule, "write-rule", why);
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
