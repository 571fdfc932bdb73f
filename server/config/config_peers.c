#include "server/config/config_peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
refuse(struct buf *why, const struct options *options, const char *name, const char *sentence)
{
    buf_end_line(why);
    buf_printf(why, "%s%s: %s", options_place(options, name), name, sentence);
    return false;
}

/* As a row for all paths, in which the order of the hash decides. */
static bool
read_row(struct config_peers *peers, const struct options *options, struct buf *why)
{
    char place[256], *places[] = {place, NULL}, *items[] = {NULL, NULL};
    const struct option_list list = {.items = items, .places = places, .count = 1};

    snprintf(place, sizeof(place), "%speers, as a row of ", options_place(options, "peers"));
    if (asprintf(&peers->text, "/=%s", options->peers) < 0) {
        peers->text = NULL;
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    items[0] = peers->text;
    return http_origins_init(&peers->rows, &list, why);
}

/* Each is a whole daemon, which is reached without TLS. */
static bool
check_members(const struct origin_route *route, const struct options *options, struct buf *why)
{
    for (unsigned i = 0; i < route->count; i++) {
        struct span rest, url = route->members[i].url;

        (void)origin_route_client(url, &rest);
        if (!span_starts_with(url, span_str("http://")) || rest.len)
            return refuse(why, options, "peers", "a peer is http://HOST:PORT, without a path");
        for (unsigned n = 0; n < i; n++)
            if (span_equal(url, route->members[n].url))
                return refuse(why, options, "peers", "a URL is in the list twice");
    }
    return true;
}

/* The member whose host and port are the address of a listener; route->count: there is none. */
static unsigned
find_listener(const struct origin_route *route, const struct option_list *listeners)
{
    for (unsigned i = 0; i < route->count; i++)
        for (size_t n = 0; n < listeners->count; n++)
            if (span_equal(origin_route_authority(route->members[i].url),
                           span_str(listeners->items[n])))
                return i;
    return route->count;
}

static bool
find_self(struct config_peers *peers, const struct options *options, struct buf *why)
{
    struct origin_peers *group = &peers->group;
    struct span self = span_str(options->peer_self ? options->peer_self : "");

    if (self.len && self.ptr[self.len - 1] == '/')
        self.len--;
    group->self =
        self.len ? origin_peers_find(group, self) : find_listener(group->route, &options->http);
    if (group->self < group->route->count)
        return true;
    return self.len
               ? refuse(why, options, "peer-self",
                        "it is none of the URLs of peers, as they are written there")
               : refuse(why, options, "peers",
                        "none of the URLs has the address of a listener of http: peer-self has "
                        "to state which is this daemon's");
}

bool
config_peers_read(struct config_peers *peers, const struct options *options, struct buf *why)
{
    struct origin_route *route;

    if (!options->peers)
        return true;
    if (!options->http.count)
        return refuse(why, options, "peers", "it needs http, by which peers ask this daemon");
    if (!options->peer_key_file)
        return refuse(why, options, "peers", "it needs peer-key-file, the key that peers share");
    if (options->freshness != FRESHNESS_ON)
        return refuse(why, options, "peers", "it needs freshness on");
    if (strpbrk(options->peers, " \t|"))
        return refuse(why, options, "peers", "it has URLs alone, with commas between them");
    buf_end_line(why);
    if (!read_row(peers, options, why))
        return false;
    route = &peers->rows.rows[0].route;
    route->balance = ORIGIN_BALANCE_HASH;
    route->at_once = true; /* or peers would not agree about owners */
    route->probes.fall = route->probes.rise = 1;
    route->budget.percent = (unsigned)options->retry_budget;
    peers->group.route = route;
    return check_members(route, options, why) && find_self(peers, options, why);
}

void
config_peers_free(struct config_peers *peers)
{
    http_origins_free(&peers->rows);
    free(peers->text);
    *peers = (struct config_peers){0};
}
