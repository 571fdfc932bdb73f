/*
 * What the results of PROXY_GET and PROXY_READ have in common: XDR's types from an exchange. A
 * result refers to its object, which the request holds, or to static text.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_V2_RESULT_H
#define SUNPROXY_SERVER_RPC_FRONT_V2_RESULT_H

#include "proxy.h"
#include "server/rpc/front.h"

/* Lets a field of XDR's types refer to a span. */
#define FRONT_REFER(field, name, what)           \
    do {                                         \
        struct span span_ = (what);              \
        (field).name##_val = front_bytes(span_); \
        (field).name##_len = (u_int)span_.len;   \
    } while (0)

proxy_status front_status_of(enum failure why);

/* Of an exchange that is complete. The URLs are in `victims`, of PROXY_MAX_VICTIMS. */
void front_set_ending(proxy_ending *ending, struct front_exchange *front, proxy_url *victims);

#endif
