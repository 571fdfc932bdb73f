/* Where the response to a request came from. */
#ifndef SUNPROXY_PROXY_OUTCOME_H
#define SUNPROXY_PROXY_OUTCOME_H

enum outcome {
    OUTCOME_HIT,         /* from the cache */
    OUTCOME_MISS,        /* from the origin; this request caused the fetch */
    OUTCOME_COALESCED,   /* from the origin; another request caused the fetch */
    OUTCOME_BYPASS,      /* from the origin, past the cache */
    OUTCOME_REVALIDATED, /* from the cache, after the origin has confirmed it to this request */
    OUTCOME_STALE,       /* from the cache, and not fresh */
};

/* The word for logs: "hit", "miss"... */
const char *outcome_word(enum outcome outcome);

#endif
