/*
 * Where objects are fetched from: the fetcher (fetch/fetch.h), or a script in tests. The contract
 * of the functions is that of the fetcher's functions of the same names; call-backs of all fetches
 * come on one thread, here called the fetcher's.
 */
#ifndef SUNPROXY_PROXY_ORIGIN_H
#define SUNPROXY_PROXY_ORIGIN_H

#include "fetch/fetch.h"

struct origin_ops {
    bool (*submit)(void *context, const struct fetch_request *request,
                   const struct fetch_sink *sink, void *sink_context, uint64_t *id);
    void (*resume)(void *context, uint64_t id);
    void (*cancel)(void *context, uint64_t id);
};

struct origin {
    const struct origin_ops *ops;
    void *context;
};

/* The context is a struct fetcher. */
extern const struct origin_ops origin_fetcher;

#endif
