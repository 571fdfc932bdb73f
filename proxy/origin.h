/*
 * Where objects are fetched from: the fetcher (fetch/fetch.h), or a script in tests. The contract
 * of the functions is that of the fetcher's functions of the same names; call-backs of all fetches
 * come on one thread, here called the fetcher's.
 */
#ifndef SUNPROXY_PROXY_ORIGIN_H
#define SUNPROXY_PROXY_ORIGIN_H

#include "fetch/fetch.h"

struct origin_ops {
    bool (*submit)(struct fetcher *fetcher, const struct request *request,
                   const struct fetch_sink *sink, void *context, uint64_t *id);
    void (*resume)(struct fetcher *fetcher, uint64_t id);
    void (*cancel)(struct fetcher *fetcher, uint64_t id);
};

struct origin {
    const struct origin_ops *ops;
    struct fetcher *context; /* of a script any address */
};

/* The fetcher's functions. */
extern const struct origin_ops origin_fetcher;

#endif
