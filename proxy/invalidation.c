#include "proxy/invalidation.h"

#include <stdlib.h>

#include "base/word_list.h"
#include "http/field.h"
#include "http/reference.h"
#include "proxy/proxy_rules.h"
#include "rules/rules.h"
#include "rules/tag_rules.h"

/* Most bytes of tags of one write: those of all variants of a few URLs. Beyond that they count as
 * not known. */
#define MOST_TAGS ((size_t)16 << 20)

/* Scheme and authority, and the slash behind them; everything if there is none. */
static struct span
origin_of(struct span url)
{
    struct span path, origin = origin_route_client(url, &path);

    return path.len ? span_of(origin.ptr, origin.len + (path.ptr[0] == '/')) : url;
}

/* ---- tags of rules --------------------------------------------------------------------------- */

static bool
append_tag(void *context, struct span tag)
{
    struct buf *found = context;

    return (!found->len || buf_append_char(found, ' ')) && buf_append(found, tag.ptr, tag.len);
}

/* Appends the tags that rules give to the write's URL. */
static bool
add_rules(const struct invalidation *inv, struct buf *found)
{
    const struct proxy_rules *rules = proxy_rules_of(inv->proxy, inv->request);

    return (!rules->tag_rules || tag_rules_visit(rules->tag_rules, inv->url, append_tag, found)) &&
           (!rules->write_rules ||
            tag_rules_visit(rules->write_rules, inv->url, append_tag, found));
}

/* ---- purging by tag -------------------------------------------------------------------------- */

static int
compare_tags(const void *a, const void *b)
{
    return span_compare(*(const struct span *)a, *(const struct span *)b);
}

/* Leaves each word once. Without memory they stay as they are. */
static void
make_unique(struct buf *words)
{
    struct span rest = buf_span(words), tag, *tags;
    size_t count = words_count(rest), i = 0;
    struct buf unique;

    tags = count > 1 ? malloc(count * sizeof(*tags)) : NULL;
    if (!tags)
        return;
    while (words_next(&rest, &tag))
        tags[i++] = tag;
    qsort(tags, count, sizeof(*tags), compare_tags);
    buf_init(&unique, words->len);
    for (i = 0; i < count; i++)
        if (i == 0 || !span_equal(tags[i], tags[i - 1]))
            append_tag(&unique, tags[i]);
    free(tags);
    if (!buf_failed(&unique)) {
        buf_reset(words);
        buf_append(words, unique.data, unique.len);
    }
    buf_free(&unique);
}

/* Removes URLs in the scope. Those of objects of RPC are spelt as their clients have spelt them. */
static enum cache_fate
decide(struct object *object, const void *context)
{
    const struct span url = object_url(object), *scope = context;

    return span_starts_with(url, *scope) || http_have_same_origin(*scope, url) ? CACHE_REMOVED
                                                                               : CACHE_SPARED;
}

static void
tell(const struct invalidation *inv, enum cache_by by, struct span name)
{
    const struct proxy_config *config = &inv->proxy->config;

    if (config->purged)
        config->purged(config->purged_context,
                       &(struct proxy_purged){.by = by, .name = name, .scope = inv->scope});
}

static void
purge_tag(struct proxy *proxy, struct span tag, struct span scope, const struct purging *more)
{
    struct purging purging = *more;

    purging.by = CACHE_BY_TAG;
    purging.name = tag;
    purging.scope = &(struct cache_scope){.decide = decide, .context = &scope};
    purging.origin = scope;
    purging_apply(proxy, &purging);
}

void
invalidation_purge_tag(struct proxy *proxy, struct span tag, struct span scope,
                       const struct source *told_by)
{
    purge_tag(proxy, tag, scope, &(struct purging){.told_by = told_by});
}

static void
purge_words(struct invalidation *inv, struct span words)
{
    struct span tag;

    while (words_next(&words, &tag)) {
        purge_tag(inv->proxy, tag, inv->scope,
                  &(struct purging){.change = &inv->change, .marks = &inv->marks});
        tell(inv, CACHE_BY_TAG, tag);
    }
}

void
invalidation_purge_url(struct proxy *proxy, struct span url, struct span scope, struct buf *found)
{
    struct span words, tag;

    purging_apply(proxy, &(struct purging){.by = CACHE_BY_URL, .name = url, .tags = found});
    make_unique(found);
    words = buf_span(found);
    while (words_next(&words, &tag))
        purge_tag(proxy, tag, scope, &(struct purging){0});
    if (buf_failed(found))
        purging_apply(proxy, &(struct purging){.by = CACHE_BY_PREFIX, .name = scope});
}

/* Purges by these tags of what has been removed, and by those that are known. */
static void
purge_tags(struct invalidation *inv, struct buf *found)
{
    inv->all = inv->all || buf_failed(found);
    if (inv->all) {
        purging_apply(
            inv->proxy,
            &(struct purging){.by = CACHE_BY_PREFIX, .name = inv->scope, .marks = &inv->marks});
        tell(inv, CACHE_BY_PREFIX, inv->scope);
        return;
    }
    make_unique(found);
    purge_words(inv, buf_span(found));
    purge_words(inv, buf_span(&inv->tags));
}

/* ---- the write ------------------------------------------------------------------------------- */

void
invalidation_init(struct invalidation *inv, struct proxy *proxy, const struct request *request,
                  struct span url)
{
    *inv = (struct invalidation){
        .proxy = proxy,
        .request = request,
        .url = url,
        .scope = request_is_owned(request) ? span_of(NULL, 0) : origin_of(url),
    };
    buf_init(&inv->tags, MOST_TAGS);
    inv->all = !add_rules(inv, &inv->tags);
    inv->early = proxy_rules_of(proxy, request)->invalidates_early || inv->all || inv->tags.len;
}

void
invalidation_free(struct invalidation *inv)
{
    if (inv->charged)
        memory_uncharge(inv->proxy->config.account, MEMORY_REQUESTS, inv->charged);
    buf_free(&inv->tags);
    *inv = (struct invalidation){0};
}

#define KEY_BYTES 16384u /* of a URL that rules have spelt, which are shorter than before */

struct url_purge {
    struct invalidation *inv;
    struct buf *found; /* gets the tags of what is removed */
};

static void
purge_key(void *context, struct span key)
{
    const struct url_purge *purge = context;

    purging_apply(purge->inv->proxy, &(struct purging){.by = CACHE_BY_URL,
                                                       .name = key,
                                                       .tags = purge->found,
                                                       .change = &purge->inv->change,
                                                       .marks = &purge->inv->marks});
    tell(purge->inv, CACHE_BY_URL, key);
}

/* Purges a URL, and the keys that the operator's rules make of it. */
static void
purge_url(struct invalidation *inv, struct span url, struct buf *found)
{
    const struct rules *rules = proxy_rules_of(inv->proxy, inv->request)->table;
    struct url_purge purge = {.inv = inv, .found = found};
    char bytes[KEY_BYTES];

    purge_key(&purge, url);
    if (rules)
        rules_visit_keys(rules, url, bytes, sizeof(bytes), purge_key, &purge);
}

bool
invalidation_before(struct invalidation *inv)
{
    struct buf none;

    if (!inv->early)
        return true;
    purge_url(inv, inv->url, &inv->tags);
    inv->all = inv->all || buf_failed(&inv->tags);
    make_unique(&inv->tags);
    buf_init(&none, 0);
    purge_tags(inv, &none);
    if (!memory_charge(inv->proxy->config.account, MEMORY_REQUESTS, inv->tags.capacity))
        return false;
    inv->charged = inv->tags.capacity;
    return true;
}

/* Purges what a reference names, as the client's URL has it and as that of the member has it. */
static void
purge_reference(struct invalidation *inv, unsigned member, struct span value, struct buf *found)
{
    const struct origin_route *route = inv->request->route;
    struct buf of_client, of_member;

    buf_init(&of_client, OBJECT_MAX_META);
    buf_init(&of_member, OBJECT_MAX_META);
    if (http_resolve_same_origin(inv->url, value, &of_client))
        purge_url(inv, buf_span(&of_client), found);
    if (route && origin_route_resolve(route, member, inv->url, value, &of_member) &&
        !span_equal(buf_span(&of_client), buf_span(&of_member)))
        purge_url(inv, buf_span(&of_member), found);
    buf_free(&of_client);
    buf_free(&of_member);
}

static void
purge_references(struct invalidation *inv, unsigned member, struct span lines, struct buf *found)
{
    static const char *const references[] = {"Location", "Content-Location", NULL};
    struct span line, name, value;

    while (http_next_line(&lines, &line))
        if (http_split_field(line, &name, &value) && http_name_is_one_of(name, references))
            purge_reference(inv, member, value, found);
}

static void
purge(struct invalidation *inv, unsigned member, struct span lines)
{
    struct buf found;

    inv->change = (struct cache_change){0};
    buf_init(&found, MOST_TAGS);
    purge_url(inv, inv->url, &found);
    purge_references(inv, member, lines, &found);
    purge_tags(inv, &found);
    buf_free(&found);
    for (unsigned i = 0; i < PROXY_SOURCES; i++)
        request_note_mark(inv->request, i, inv->marks.of[i]);
}

void
invalidation_unanswered(struct invalidation *inv)
{
    purge(inv, 0, span_of(NULL, 0));
}

void
invalidation_after(struct invalidation *inv, unsigned member, unsigned status, struct span lines)
{
    bool done = status >= 200 && status < 400;

    if (!done && !inv->early)
        return;
    purge(inv, member, done ? lines : span_of(NULL, 0));
}
