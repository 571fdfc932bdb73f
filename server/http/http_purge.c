#include "server/http/http_purge.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/container_of.h"
#include "http/field.h"
#include "proxy/control.h"
#include "rules/tag_rules.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_page.h"
#include "server/http/http_route.h"
#include "server/http/http_rules.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"
#include "server/peers/peer_news.h"

#define MOST_TAGS 64u /* in one request */

struct purge {
    struct proxy *proxy;
    struct peer_news *news;
    const char *const *tag_fields; /* of struct proxy_rules */
    bool soft;
    bool prefix;
    unsigned tags;
    uint64_t count; /* of objects that were removed, or have expired */
    struct purging_marks *marks; /* get those that sources have to note */
};

static void
purge(struct purge *purge, enum control_purge kind, struct span what)
{
    purge->count +=
        control_purge_marked(purge->proxy, kind, purge->soft, what, purge->marks);
    peer_news_tell(purge->news,
                   &(struct peer_item){.kind = kind, .soft = purge->soft, .name = what});
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

/* Words, separated by blanks or commas. False: there is none left. */
static bool
next_tag(struct span *value, struct span *tag)
{
    const char *at = value->ptr, *end = value->ptr + value->len, *begin;

    while (at < end && (http_is_blank(*at) || *at == ','))
        at++;
    for (begin = at; at < end && !http_is_blank(*at) && *at != ','; at++)
        ;
    *tag = span_of(begin, (size_t)(at - begin));
    *value = span_of(at, (size_t)(end - at));
    return tag->len > 0;
}

/* The next field of tags. */
static bool
next_tag_field(const struct purge *purge, struct span *rest, struct span *value)
{
    const char *const *names = purge->tag_fields;
    struct span line, name;

    while (http_next_line(rest, &line))
        if (http_split_field(line, &name, value) &&
            http_name_is_one_of(name, names ? names : tags_default_fields))
            return true;
    return false;
}

/* Nothing is purged before all tags have been counted. Returns why they are refused. */
static const char *
count_tags(struct purge *p, struct span fields)
{
    struct span value, tag;

    while (next_tag_field(p, &fields, &value)) {
        if (!next_tag(&value, &tag))
            return "a field of tags is empty";
        do {
            if (++p->tags > MOST_TAGS)
                return "there are more than 64 tags";
        } while (next_tag(&value, &tag));
    }
    return NULL;
}

static void
purge_tags(struct purge *p, struct span fields)
{
    struct span value, tag;

    while (next_tag_field(p, &fields, &value))
        while (next_tag(&value, &tag))
            purge(p, CONTROL_PURGE_TAG, tag);
}

static void
purge_key(void *context, struct span key)
{
    purge(context, CONTROL_PURGE_URL, key);
}

/* As it is, and by the keys that the rules make of it. */
static void
purge_url(struct http_exchange *x, struct purge *p, struct span url)
{
    purge(p, CONTROL_PURGE_URL, url);
    http_rules_visit_keys(x, url, purge_key, p);
}

static void
refuse(struct http_exchange *x, unsigned status, const char *reason)
{
    http_page_make(x, &(struct http_page){.status = status, .reason = span_str(reason)});
}

/* How many a prefix or a tag concerns on disk is not known, nor what the shared tier has. */
static void
respond(struct http_exchange *x, const struct purge *purge)
{
    const struct service *service = http_service_of(x)->service;
    const char *more = service_uncounted(service, !purge->prefix && !purge->tags);
    char sentence[96];

    snprintf(sentence, sizeof(sentence), "%" PRIu64 " stored response%s %s%s", purge->count,
             purge->count == 1 ? "" : "s", purge->soft ? "expired" : "removed", more);
    http_page_make(x, &(struct http_page){.status = purge->count || more[0] ? 200 : 404,
                                          .reason = span_str(sentence)});
}

void
http_purge(struct http_exchange *x, const struct http_route *route)
{
    struct purge p = {
        .proxy = &http_service_of(x)->service->proxy,
        .news = http_service_of(x)->service->news,
        .tag_fields = x->config->rules.tag_fields,
        .marks = &x->noted.marks,
    };
    struct span rest = x->request.fields, line, name, value;
    const char *reason;
    bool known = true;

    x->noted.marks = (struct purging_marks){0};
    while (known && http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Purge"))
            known = read_members(&p, value);
    reason = known ? count_tags(&p, x->request.fields)
                   : "the field Purge has other members than \"soft\" and \"prefix\"";
    if (reason) {
        refuse(x, 400, reason);
        return;
    }
    if (p.tags)
        purge_tags(&p, x->request.fields);
    else if (p.prefix)
        purge(&p, CONTROL_PURGE_PREFIX, route->url);
    else
        purge_url(x, &p, route->url);
    /* Once all peers have taken it, it is purged here again. */
    if (x->config->peers.rows.count)
        x->noted.marks = purging_all_marks();
    respond(x, &p);
}

/* In place of the answer that was made, which claims more than what holds. */
static void
answer_less(struct http_exchange *x)
{
    if (atomic_load(&x->noted.lost))
        refuse(x, 503, PURGED_FOR_NOW);
    else if (atomic_load(&x->noted.untold))
        refuse(x, 202, PURGED_HERE);
}

/* ---- sources --------------------------------------------------------------------------------- */

static void
run(struct net_task *task)
{
    struct http_exchange *x = container_of(task, struct http_exchange, task);

    if (!http_exchange_end_wait(x))
        return;
    answer_less(x);
    http_exchange_send_made(x);
}

static void
note(struct purging_wait *wait)
{
    struct http_exchange *x = container_of(wait, struct http_exchange, noted);

    http_stream_post(&x->stream, &x->task);
}

static bool
forget(struct http_exchange *x)
{
    return purging_forget(&http_service_of(x)->service->proxy, &x->noted);
}

bool
http_purge_is_noted(struct http_exchange *x)
{
    x->task.run = run;
    x->noted.notify = note;
    if (purging_is_noted(&http_service_of(x)->service->proxy, &x->noted)) {
        answer_less(x);
        return true;
    }
    http_exchange_await(x, forget);
    return false;
}
