#include "proxy/invalidation.h"

#include "base/hash.h"
#include "cache/tags.h"
#include "http/field.h"
#include "http/reference.h"
#include "proxy/tag_rules.h"

/* Scheme and authority, and the slash behind them; everything if there is none. */
static struct span
origin_of(struct span url)
{
    const char *after = memmem(url.ptr, url.len, "://", 3), *slash = NULL;

    if (after)
        slash = memchr(after + 3, '/', (size_t)(url.ptr + url.len - after - 3));
    return slash ? span_of(url.ptr, (size_t)(slash + 1 - url.ptr)) : url;
}

void
invalidation_init(struct invalidation *inv, struct proxy *proxy, const struct invalidation_row *row,
                  struct span url, bool owned)
{
    const struct proxy_config *config = &proxy->config;

    *inv = (struct invalidation){
        .proxy = proxy,
        .row = *row,
        .url = url,
        .scope = owned ? span_of(NULL, 0) : origin_of(url),
    };
    buf_init(&inv->tags, OBJECT_MAX_TAG_BYTES);
    inv->all = (config->tag_rules && !tag_rules_apply(config->tag_rules, url, &inv->tags)) ||
               (config->write_rules && !tag_rules_apply(config->write_rules, url, &inv->tags));
    inv->early = config->invalidates_early || inv->all || inv->tags.len;
}

/* ---- holding --------------------------------------------------------------------------------- */

static void
hold_tags(struct invalidation *inv)
{
    struct span rest = buf_span(&inv->tags), tag;
    unsigned count = 0;

    while (inv->holds && tags_next(&rest, &tag))
        if (count++ == inv->held_tags && cache_hold(inv->proxy->config.cache, hash64_bytes(tag)))
            inv->held_tags++;
}

static void
release(struct invalidation *inv)
{
    struct span rest = buf_span(&inv->tags), tag;

    for (; inv->held_tags && tags_next(&rest, &tag); inv->held_tags--)
        cache_release(inv->proxy->config.cache, hash64_bytes(tag));
    if (inv->holds)
        cache_release(inv->proxy->config.cache, inv->url_hash);
    inv->holds = false;
}

void
invalidation_free(struct invalidation *inv)
{
    release(inv);
    if (inv->charged)
        memory_uncharge(inv->proxy->config.account, MEMORY_REQUESTS, inv->charged);
    buf_free(&inv->tags);
    *inv = (struct invalidation){0};
}

/* ---- URLs ------------------------------------------------------------------------------------ */

/* Is there nothing behind the authority of the URL? */
static bool
is_authority(struct span url)
{
    const char *after = memmem(url.ptr, url.len, "://", 3);

    return after && !memchr(after + 3, '/', (size_t)(url.ptr + url.len - after - 3));
}

static void
purge_below(struct invalidation *inv, struct span base, struct span rest)
{
    struct cache *cache = inv->proxy->config.cache;
    struct buf url;

    buf_init(&url, OBJECT_MAX_META);
    /* Without memory more is removed than has to be. */
    if (buf_append(&url, base.ptr, base.len) && buf_append(&url, rest.ptr, rest.len))
        cache_purge_tagged(cache, buf_span(&url), &inv->tags, inv);
    else
        cache_purge_prefix(cache, base);
    buf_free(&url);
}

/* Purges a URL, and what it is below the other bases. */
static void
purge_url(struct invalidation *inv, struct span url)
{
    const struct invalidation_row *row = &inv->row;
    struct span rest;

    cache_purge_tagged(inv->proxy->config.cache, url, &inv->tags, inv);
    if (row->count < 2 || !span_starts_with(url, row->bases[row->used]))
        return;
    rest = span_of(url.ptr + row->bases[row->used].len, url.len - row->bases[row->used].len);
    for (unsigned i = 0; i < row->count; i++) {
        struct span base = row->bases[i];
        bool slash = rest.len && rest.ptr[0] == '/';

        if (i == row->used)
            continue;
        purge_below(inv, base, rest);
        /* An authority is followed by a slash where a path need not be (server/http_origins.c). */
        if (!slash && is_authority(base)) {
            purge_below(inv, base, span_str("/"));
        } else if (slash && is_authority(row->bases[row->used]) &&
                   (rest.len == 1 || rest.ptr[1] == '?')) {
            purge_below(inv, base, span_of(rest.ptr + 1, rest.len - 1));
        }
    }
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* The tags are kept until the fetch ends, which counts as memory of the request. */
static bool
charge(struct invalidation *inv)
{
    size_t more = inv->tags.capacity - inv->charged;

    if (!more)
        return true;
    if (!memory_charge(inv->proxy->config.account, MEMORY_REQUESTS, more))
        return false;
    inv->charged += more;
    return true;
}

static void
purge_tags(struct invalidation *inv)
{
    struct cache *cache = inv->proxy->config.cache;
    struct span rest = buf_span(&inv->tags), tag;

    inv->all = inv->all || buf_failed(&inv->tags) || !charge(inv);
    if (inv->all) {
        cache_purge_prefix(cache, inv->scope);
        return;
    }
    while (tags_next(&rest, &tag))
        cache_purge_tag_below(cache, inv->scope, tag, inv);
}

/* ---- the write ------------------------------------------------------------------------------- */

static void
purge(struct invalidation *inv)
{
    purge_url(inv, inv->url);
    purge_tags(inv);
}

void
invalidation_before(struct invalidation *inv)
{
    if (!inv->early)
        return;
    inv->url_hash = hash64_bytes(inv->url);
    inv->holds = cache_hold(inv->proxy->config.cache, inv->url_hash);
    purge_url(inv, inv->url);
    hold_tags(inv);
    purge_tags(inv);
}

void
invalidation_unanswered(struct invalidation *inv)
{
    purge(inv);
    release(inv);
}

void
invalidation_after(struct invalidation *inv, unsigned status, struct span lines)
{
    static const char *const references[] = {"Location", "Content-Location", NULL};
    struct span line, name, value;
    bool done = status >= 200 && status < 400;
    struct buf other;

    if (!done && !inv->early)
        return;
    purge(inv);
    release(inv);
    if (!done)
        return;
    buf_init(&other, OBJECT_MAX_META);
    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, references))
            continue;
        buf_reset(&other);
        if (http_resolve_same_origin(inv->url, value, &other))
            purge_url(inv, buf_span(&other));
    }
    buf_free(&other);
}
