#include "server/rpc/front_v2_result.h"

proxy_status
front_status_of(enum failure why)
{
    switch (why) {
    case FAILURE_BAD_URL:
        return PROXY_BAD_URL;
    case FAILURE_BAD_FIELDS:
        return PROXY_BAD_HEADERS;
    case FAILURE_DENIED:
        return PROXY_DENIED;
    case FAILURE_RESOLVE:
        return PROXY_RESOLVE_FAILED;
    case FAILURE_CONNECT:
    case FAILURE_DOWN:
        return PROXY_CONNECT_FAILED;
    case FAILURE_TLS:
        return PROXY_TLS_FAILED;
    case FAILURE_TIMEOUT:
    case FAILURE_CONNECT_TIMEOUT:
        return PROXY_TIMED_OUT;
    case FAILURE_ORIGIN:
        return PROXY_ORIGIN_BROKE;
    case FAILURE_TOO_LARGE:
        return PROXY_TOO_LARGE;
    case FAILURE_REDIRECT:
        return PROXY_BAD_REDIRECT;
    case FAILURE_OVERLOADED:
        return PROXY_OVERLOADED;
    case FAILURE_STOPPING:
        return PROXY_STOPPING;
    case FAILURE_NOT_CACHED: /* no request of this protocol demands it */
    case FAILURE_INTERNAL:
    case FAILURE_CANCELLED:
        break;
    }
    return PROXY_INTERNAL;
}

void
front_set_ending(proxy_ending *ending, struct front_exchange *front, proxy_url *victims)
{
    const struct exchange *exchange = &front->exchange;

    ending->stored = exchange_is_stored(exchange);
    ending->fetch_us = exchange->object->fetch_us;
    ending->evicted = (u_int)exchange->evicted;
    for (; front->show_victims && ending->victims.victims_len < exchange->victims->count &&
           ending->victims.victims_len < PROXY_MAX_VICTIMS;
         ending->victims.victims_len++) {
        u_int i = ending->victims.victims_len;

        FRONT_REFER(victims[i], proxy_url, object_url(exchange->victims->pages[i]));
    }
    ending->victims.victims_val = victims;
}
