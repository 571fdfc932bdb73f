#include "server/outcome.h"

#include <errno.h>
#include <stdlib.h>

size_t
outcome_bytes(struct span url)
{
    return sizeof(struct outcome) + url.len;
}

struct outcome *
outcome_create(struct memory_account *account, struct span url)
{
    struct outcome *outcome;

    if (!memory_charge(account, MEMORY_REQUESTS, outcome_bytes(url))) {
        errno = ENOBUFS;
        return NULL;
    }
    outcome = memory_calloc(account, outcome_bytes(url));
    if (!outcome) {
        memory_uncharge(account, MEMORY_REQUESTS, outcome_bytes(url));
        return NULL;
    }
    outcome->account = account;
    atomic_init(&outcome->references, 1);
    outcome->status = PROXY_INTERNAL;
    memcpy(outcome->bytes, url.ptr, url.len);
    outcome->url = span_of(outcome->bytes, url.len);
    return outcome;
}

struct outcome *
outcome_retain(struct outcome *outcome)
{
    atomic_fetch_add_explicit(&outcome->references, 1, memory_order_relaxed);
    return outcome;
}

void
outcome_release(void *held)
{
    struct outcome *outcome = held;

    if (atomic_fetch_sub_explicit(&outcome->references, 1, memory_order_acq_rel) != 1)
        return;
    page_release(&outcome->page);
    cache_victims_free(&outcome->victims);
    memory_uncharge(outcome->account, MEMORY_REQUESTS, outcome_bytes(outcome->url));
    free(outcome);
}

proxy_status
outcome_status(enum fetch_error error)
{
    switch (error) {
    case FETCH_OK:
        return PROXY_OK;
    case FETCH_BAD_URL:
        return PROXY_BAD_URL;
    case FETCH_BAD_HEADERS:
        return PROXY_BAD_HEADERS;
    case FETCH_DENIED:
        return PROXY_DENIED;
    case FETCH_RESOLVE_FAILED:
        return PROXY_RESOLVE_FAILED;
    case FETCH_CONNECT_FAILED:
        return PROXY_CONNECT_FAILED;
    case FETCH_TLS_FAILED:
        return PROXY_TLS_FAILED;
    case FETCH_TIMED_OUT:
        return PROXY_TIMED_OUT;
    case FETCH_ORIGIN_BROKE:
        return PROXY_ORIGIN_BROKE;
    case FETCH_TOO_LARGE:
        return PROXY_TOO_LARGE;
    case FETCH_BAD_REDIRECT:
        return PROXY_BAD_REDIRECT;
    case FETCH_OVERLOADED:
    case FETCH_DISPLACED:
        return PROXY_OVERLOADED;
    case FETCH_STOPPING:
        return PROXY_STOPPING;
    /* What a plain GET cannot end with, and a cancellation, for which the canceller has a reason.
     */
    case FETCH_BAD_METHOD:
    case FETCH_BODY_FAILED:
    case FETCH_CANCELLED:
    case FETCH_INTERNAL:
        break;
    }
    return PROXY_INTERNAL;
}

const char *
outcome_status_word(proxy_status status)
{
    static const char *const words[] = {
        [PROXY_OK] = "ok",
        [PROXY_BAD_URL] = "bad_url",
        [PROXY_BAD_HEADERS] = "bad_headers",
        [PROXY_DENIED] = "denied",
        [PROXY_RESOLVE_FAILED] = "resolve_failed",
        [PROXY_CONNECT_FAILED] = "connect_failed",
        [PROXY_TLS_FAILED] = "tls_failed",
        [PROXY_TIMED_OUT] = "timed_out",
        [PROXY_ORIGIN_BROKE] = "origin_broke",
        [PROXY_TOO_LARGE] = "too_large",
        [PROXY_BAD_REDIRECT] = "bad_redirect",
        [PROXY_OVERLOADED] = "overloaded",
        [PROXY_STOPPING] = "stopping",
        [PROXY_INTERNAL] = "internal",
        [PROXY_BAD_VALUE] = "bad_value",
    };

    return words[status];
}

const char *
outcome_source_word(proxy_source source)
{
    static const char *const words[] = {
        [PROXY_HIT] = "hit",
        [PROXY_MISS] = "miss",
        [PROXY_COALESCED] = "coalesced",
        [PROXY_BYPASS] = "bypass",
        [PROXY_REVALIDATED] = "revalidated",
        [PROXY_STALE] = "stale",
    };

    return words[source];
}
