/*
 * What came of a fetch: a page or a failure, shared by everybody who waited for it and freed by the
 * last of them.
 */
#ifndef SUNPROXY_SERVER_OUTCOME_H
#define SUNPROXY_SERVER_OUTCOME_H

#include <stdatomic.h>

#include "cache/cache.h"
#include "fetch/fetch.h"
#include "proxy.h"

/* Sentences are short enough to be copied into an answer's first bytes, never sent in place. */
#define SENTENCE_SIZE 384

struct outcome {
    struct memory_account *account; /* charged for it (MEMORY_REQUESTS) */
    _Atomic unsigned references;
    proxy_status status; /* PROXY_OK: there is a page */
    char sentence[SENTENCE_SIZE];
    struct page *page;            /* a reference of ours, or NULL */
    struct cache_victims victims; /* who had to leave for it */
    size_t evicted;
    bool stored;
    struct span url; /* in the bytes behind */
    char bytes[];
};

/*
 * With one reference, PROXY_INTERNAL until something better is known. NULL with errno: ENOMEM, or
 * ENOBUFS if the account is used up.
 */
struct outcome *outcome_create(struct memory_account *account, struct span url);

/* What is charged for the outcome of a fetch of this URL. */
size_t outcome_bytes(struct span url);

/* One more reference; any thread that holds one may take another. */
struct outcome *outcome_retain(struct outcome *outcome);

/* Drops one; the signature is rpc_request_hold()'s. */
void outcome_release(void *outcome);

/* The wire's word for a fetch's error. */
proxy_status outcome_status(enum fetch_error error);

/* The access log's word for a status ("denied", "timed_out"), as in the client's JSON. */
const char *outcome_status_word(proxy_status status);

/* The access log's word for where a page came from ("hit", "miss"...). */
const char *outcome_source_word(proxy_source source);

#endif
