/* What the beginning of a fill, its fetch and the rules of raw responses all use. */
#include "proxy/origin_fill_parts.h"

const char origin_fill_out_of_memory[] = "Cannot allocate memory";
const char origin_fill_stopping[] = "the server is shutting down";

void
origin_fill_isolate(struct origin_fill *fill)
{
    atomic_store(&fill->may_keep, false);
    /* What the request forbids says nothing about responses to others. */
    if (!fill->bypass)
        cache_fill_isolate(&fill->base, fill->sharing.by_request
                                            ? 0
                                            : proxy_now_us(fill->proxy) + ORIGIN_FILL_MARKER_US);
}

void
origin_fill_free(struct origin_fill *fill)
{
    struct proxy *proxy = fill->proxy;

    relay_close(&fill->relay);
    invalidation_free(&fill->write);
    buf_free(&fill->lines);
    if (fill->counted) {
        memory_uncharge(proxy->config.account, MEMORY_REQUESTS, fill->charged);
        client_tally_give_back(proxy->waiting, &fill->client, fill->counted);
    }
    cache_fill_free(&fill->base);
}

struct fetch_request
origin_fill_fetch_request(const struct origin_fill *fill, struct span lines)
{
    return (struct fetch_request){
        .client = fill->client,
        .url = object_url(fill->base.object),
        .headers = lines,
        .flags = (fill->raw ? FETCH_UNDECODED | FETCH_NO_REDIRECTS : 0u) |
                 (fill->streams ? FETCH_MAY_PAUSE | FETCH_ANY_LENGTH : 0u),
    };
}
