#include "proxy/invalidation.h"

#include "http/field.h"
#include "http/reference.h"

void
invalidation_before(struct proxy *proxy, struct span url)
{
    if (proxy->config.invalidates_early)
        cache_purge(proxy->config.cache, url);
}

void
invalidation_unanswered(struct proxy *proxy, struct span url)
{
    cache_purge(proxy->config.cache, url);
}

void
invalidation_after(struct proxy *proxy, struct span url, unsigned status, struct span lines)
{
    static const char *const references[] = {"Location", "Content-Location", NULL};
    struct span rest = lines, line, name, value;
    struct buf other;

    if (status < 200 || status >= 400)
        return;
    cache_purge(proxy->config.cache, url);
    buf_init(&other, OBJECT_MAX_META);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, references))
            continue;
        buf_reset(&other);
        if (http_resolve_same_origin(url, value, &other))
            cache_purge(proxy->config.cache, buf_span(&other));
    }
    buf_free(&other);
}
