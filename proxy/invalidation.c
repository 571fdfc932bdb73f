#include "proxy/invalidation.h"

#include "http/field.h"
#include "http/reference.h"

/* Is there nothing behind the authority of the URL? */
static bool
is_authority(struct span url)
{
    const char *after = memmem(url.ptr, url.len, "://", 3);

    return after && !memchr(after + 3, '/', (size_t)(url.ptr + url.len - after - 3));
}

static void
purge_below(struct proxy *proxy, struct span base, struct span rest)
{
    struct buf url;

    buf_init(&url, OBJECT_MAX_META);
    /* Without memory more is removed than has to be. */
    if (buf_append(&url, base.ptr, base.len) && buf_append(&url, rest.ptr, rest.len))
        cache_purge(proxy->config.cache, buf_span(&url));
    else
        cache_purge_prefix(proxy->config.cache, base);
    buf_free(&url);
}

/* Purges a URL, and what it is below the other bases. */
static void
purge(struct proxy *proxy, const struct invalidation_row *row, struct span url)
{
    struct span rest;

    cache_purge(proxy->config.cache, url);
    if (row->count < 2 || !span_starts_with(url, row->bases[row->used]))
        return;
    rest = span_of(url.ptr + row->bases[row->used].len, url.len - row->bases[row->used].len);
    for (unsigned i = 0; i < row->count; i++) {
        struct span base = row->bases[i];
        bool slash = rest.len && rest.ptr[0] == '/';

        if (i == row->used)
            continue;
        purge_below(proxy, base, rest);
        /* An authority is followed by a slash where a path need not be (server/http_origins.c). */
        if (!slash && is_authority(base)) {
            purge_below(proxy, base, span_str("/"));
        } else if (slash && is_authority(row->bases[row->used]) &&
                   (rest.len == 1 || rest.ptr[1] == '?')) {
            purge_below(proxy, base, span_of(rest.ptr + 1, rest.len - 1));
        }
    }
}

void
invalidation_before(struct proxy *proxy, const struct invalidation_row *row, struct span url)
{
    if (proxy->config.invalidates_early)
        purge(proxy, row, url);
}

void
invalidation_unanswered(struct proxy *proxy, const struct invalidation_row *row, struct span url)
{
    purge(proxy, row, url);
}

void
invalidation_after(struct proxy *proxy, const struct invalidation_row *row, struct span url,
                   unsigned status, struct span lines)
{
    static const char *const references[] = {"Location", "Content-Location", NULL};
    struct span rest = lines, line, name, value;
    struct buf other;

    if (status < 200 || status >= 400)
        return;
    purge(proxy, row, url);
    buf_init(&other, OBJECT_MAX_META);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, references))
            continue;
        buf_reset(&other);
        if (http_resolve_same_origin(url, value, &other))
            purge(proxy, row, buf_span(&other));
    }
    buf_free(&other);
}
