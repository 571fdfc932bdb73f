#include "server/rpc/front_way.h"

#include <stdlib.h>
#include <string.h>

bool
front_way_begin(struct front_exchange *front)
{
    struct memory_account *account = front->exchange.proxy->config.account;
    struct front_way *way;

    if (!memory_charge(account, MEMORY_REQUESTS, sizeof(*way)))
        return false;
    way = memory_realloc(account, NULL, sizeof(*way));
    if (!way) {
        memory_uncharge(account, MEMORY_REQUESTS, sizeof(*way));
        return false;
    }
    memset(way, 0, sizeof(*way));
    way->fetch_us = -1;
    buf_init(&way->first, OBJECT_MAX_META);
    buf_init(&way->url, PROXY_MAX_URL);
    buf_init(&way->fields, FRONT_FIELDS);
    front->way = way;
    return buf_append(&way->first, front->exchange.url.ptr, front->exchange.url.len);
}

void
front_way_count_fetch(struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;
    struct front_way *way = front->way;
    int64_t fetch_us = exchange_fetch_us(exchange, 0);

    if (fetch_us < 0 && exchange->led)
        fetch_us = proxy_now_us(exchange->proxy) - exchange->as_of_us;
    if (fetch_us >= 0)
        way->fetch_us = fetch_us + (way->fetch_us < 0 ? 0 : way->fetch_us);
}

void
front_way_free(struct front_exchange *front)
{
    struct front_way *way = front->way;

    if (!way)
        return;
    memory_uncharge(front->exchange.proxy->config.account, MEMORY_REQUESTS, sizeof(*way));
    buf_free(&way->first);
    buf_free(&way->url);
    buf_free(&way->fields);
    free(way);
    front->way = NULL;
}

struct span
front_url(const struct front_exchange *front)
{
    return front->way ? buf_span(&front->way->first) : front->exchange.url;
}

struct span
front_final_url(const struct exchange *exchange)
{
    const struct front_way *way = ((const struct front_exchange *)exchange)->way;

    return way ? buf_span(&way->url) : exchange->url;
}

int64_t
front_fetch_us(const struct front_exchange *front, int64_t since_us)
{
    int64_t earlier_us = front->way ? front->way->fetch_us : -1;
    int64_t fetch_us = exchange_fetch_us(&front->exchange, since_us);

    if (earlier_us < 0 || fetch_us < 0)
        return fetch_us < 0 ? earlier_us : fetch_us;
    return earlier_us + fetch_us < since_us ? earlier_us + fetch_us : since_us;
}
