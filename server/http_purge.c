/*
 * The method PURGE, for clients of --purge-net and administrators. The field Purge has the members
 * "prefix" (all URLs that begin with the target) and "soft" (what is stored stays, and has
 * expired). With a field of tags (--tag-field) the words in it are purged by, and not the URL.
 */
#include <inttypes.h>
#include <stdio.h>

#include "http/field.h"
#include "proxy/control.h"
#include "proxy/tags.h"
#include "server/http_front.h"

#define MOST_TAGS 64u /* in one request */

struct purge {
    struct proxy *proxy;
    bool soft;
    bool prefix;
    unsigned tags;
    uint64_t count; /* of objects that were removed, or have expired */
};

bool
http_purge_is_allowed(const struct http_connection *c)
{
    const struct http_service *http = c->worker->http;
    const struct net_peer *peer = &c->net.peer;

    return service_is_admin(http->service, peer) ||
           networks_have_address(&http->purgers, (const struct sockaddr *)&peer->address);
}

static void
purge(struct purge *purge, enum control_purge kind, struct span what)
{
    purge->count += purge->soft ? control_expire(purge->proxy, kind, what)
                                : control_purge(purge->proxy, kind, what);
}

/* False for a member that is not known. */
static bool
read_members(struct purge *purge, struct span value)
{
    struct span member;

    while (http_next_member(&value, &member)) {
        if (http_name_is(member, "soft"))
            purge->soft = true;
        else if (http_name_is(member, "prefix"))
            purge->prefix = true;
        else
            return false;
    }
    return true;
}

/* Words, separated by blanks or commas. */
static void
purge_tags(struct purge *p, struct span value)
{
    const char *end = value.ptr + value.len;

    for (const char *at = value.ptr; at < end && p->tags < MOST_TAGS;) {
        const char *begin;

        while (at < end && (http_is_blank(*at) || *at == ','))
            at++;
        for (begin = at; at < end && !http_is_blank(*at) && *at != ','; at++)
            ;
        if (at > begin) {
            purge(p, CONTROL_PURGE_TAG, span_of(begin, (size_t)(at - begin)));
            p->tags++;
        }
    }
}

/* All URLs of a reverse proxy's origin that the path may be stored under. */
static void
purge_origin(struct purge *p, struct http_exchange *x, struct http_origin *origin)
{
    struct http_worker *worker = x->connection->worker;

    for (unsigned i = 0; i < origin->url_count; i++) {
        size_t len =
            http_origin_write_url(origin, i, x->request.path, worker->url, sizeof(worker->url));

        purge(p, p->prefix ? CONTROL_PURGE_PREFIX : CONTROL_PURGE_URL, span_of(worker->url, len));
    }
}

static void
respond(struct http_exchange *x, const struct purge *purge)
{
    char sentence[64];

    snprintf(sentence, sizeof(sentence), "%" PRIu64 " stored response%s %s", purge->count,
             purge->count == 1 ? "" : "s", purge->soft ? "expired" : "removed");
    http_page_make(
        x, &(struct http_page){.status = purge->count ? 200 : 404, .reason = span_str(sentence)});
}

void
http_purge(struct http_exchange *x, const struct http_route *route)
{
    struct purge p = {.proxy = &http_service_of(x)->service->proxy};
    const char *const *tag_fields = p.proxy->config.tag_fields;
    struct span rest = x->request.fields, line, name, value;
    bool known = true;

    while (known && http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Purge"))
            known = read_members(&p, value);
    if (!known) {
        http_page_make(x, &(struct http_page){
                              .status = 400,
                              .reason = span_str("the field Purge has other members than "
                                                 "\"soft\" and \"prefix\""),
                          });
        return;
    }
    for (rest = x->request.fields; http_next_line(&rest, &line);)
        if (http_split_field(line, &name, &value) &&
            http_name_is_one_of(name, tag_fields ? tag_fields : tags_default_fields))
            purge_tags(&p, value);
    if (!p.tags && route->origin)
        purge_origin(&p, x, route->origin);
    else if (!p.tags)
        purge(&p, p.prefix ? CONTROL_PURGE_PREFIX : CONTROL_PURGE_URL, route->url);
    respond(x, &p);
}
