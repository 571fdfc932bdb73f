/*
 * A fetch in which a call fails. The countdowns of torture.h and faults.h belong to a thread, so
 * they are set in a call-back on the fetcher's thread, after a first fetch that is refused.
 */
#ifndef SUNPROXY_TESTS_FETCH_ARMED_H
#define SUNPROXY_TESTS_FETCH_ARMED_H

#include "tests/unit/fetch/outcome.h"

/* Both work on the calling thread. */
struct armed_calls {
    void (*fail_at)(unsigned n); /* 0: none any more */
    bool (*failed)(void);
};

/* What a body that is REQUEST_BODY_SUPPLIED consists of; its source waits once in between. */
#define ARMED_BODY "hello world"

/*
 * Fetches with the n-th such call of the fetcher's thread failing, and asserts what holds for every
 * outcome, which the caller frees. False if fewer were made. With REQUEST_STREAMS the head and
 * each piece of the body pause the fetch for a moment.
 */
bool armed_fetch(struct fetcher *fetcher, const struct armed_calls *calls, unsigned n,
                 const struct request *request, struct outcome *o);

/*
 * Fetches with n = 1, 2, 3, ... until an n is not reached, which must be a page with this body.
 * Every other fetch is that page, too, or ends with an error of the proxy's own: FETCH_INTERNAL or
 * FETCH_OVERLOADED. Returns the number of calls walked.
 */
unsigned armed_walk(struct fetcher *fetcher, const struct armed_calls *calls,
                    const struct request *request, const char *body);

#endif
