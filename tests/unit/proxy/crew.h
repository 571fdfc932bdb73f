/*
 * Workers that start exchanges of a scene, many at once, and an origin that responds to their
 * fetches on the test's thread.
 */
#ifndef SUNPROXY_TESTS_PROXY_CREW_H
#define SUNPROXY_TESTS_PROXY_CREW_H

#include "tests/unit/net/stream.h"
#include "tests/unit/proxy/scene.h"

#define CREW_WORKERS 3

struct crew_worker {
    pthread_t thread;
    const struct crew *crew;
    unsigned number;
    uint64_t draws; /* for unit_draw() */
    unsigned under_way, started, ends;
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    STAILQ_HEAD(, crew_request) woken; /* protected by the lock */
};

/* The first member of a test's own request, which its worker alone uses. */
struct crew_request {
    struct exchange exchange; /* first */
    struct request asked;
    STAILQ_ENTRY(crew_request) woken;
    struct crew_worker *worker;
    bool busy;
};

/* What a test does. */
struct crew {
    unsigned requests; /* of each worker */
    unsigned at_once;  /* of those */
    size_t request_size;
    /* Starts a request in memory of request_size that is not in use: crew_request_init(), ... */
    void (*start)(struct crew_worker *worker, struct crew_request *request);
    /* Responds to a fetch, whole. [the test's thread] */
    void (*respond)(struct scene_fetch *fetch, uint64_t *draws);
    /* Meanwhile, on a thread of its own, until crew_is_running() is false; NULL: nothing. */
    void *(*disturb)(void *);
};

extern struct crew_worker crew_workers[CREW_WORKERS];

/* Runs it to the end of all requests. Each has ended once. */
void crew_run(const struct crew *crew);
bool crew_is_running(void);

/* An exchange of a client that the draws choose; *request is zeroed first. */
void crew_request_init(struct crew_worker *worker, struct crew_request *request,
                       const struct front *front, const char *url, uint32_t client);

/* For fronts: wake(), and the end of a request. */
void crew_wake(struct exchange *exchange);
void crew_end(struct crew_request *request);

/* Bytes of bodies, any 256 of which are in turn; the `at`-th of a body is that of (at + n) % 256.
 */
#define CREW_PATTERN 100000
extern char crew_pattern[256 + CREW_PATTERN];

#endif
