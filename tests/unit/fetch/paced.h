/*
 * A consumer that pauses, and a source of a request's body that has nothing for a while; both wait
 * until the test lets them go on.
 */
#ifndef SUNPROXY_TESTS_FETCH_PACED_H
#define SUNPROXY_TESTS_FETCH_PACED_H

#include "tests/unit/fetch/outcome.h"

struct paced {
    struct outcome outcome; /* first; its lock protects what follows */
    struct fetcher *fetcher;
    uint64_t id;
    /* set before paced_submit() */
    bool pause_at_head;
    bool cancel_at_head;
    bool resume_at_head; /* without a pause there */
    size_t pause_at;     /* pauses at the piece that reaches this many bytes; 0: never */
    size_t pause_step;   /* and again after as many more; 0: once */
    const char *source;
    size_t source_len;
    size_t source_piece;          /* supplied at once; 0: all */
    size_t source_dry_at;         /* "later" from here on, until paced_go_on(); 0: never */
    bool dry_at_once;             /* "later" before the first byte */
    unsigned source_us;           /* a call of the source takes at least this long */
    enum fetch_supply source_end; /* FETCH_SUPPLIED: FETCH_SUPPLY_END */
    /* what came of it */
    unsigned pauses;
    bool paused;
    bool dry;
    size_t supplied;
    unsigned calls_after_cancel;
    bool cancelled;
};

/* All zero, with nothing paused and no source. */
void paced_init(struct paced *paced, struct fetcher *fetcher);
void paced_free(struct paced *paced);

/* Submits a request with this consumer. */
void paced_submit(struct paced *paced, const struct request *request);

/* A request to a path of an origin on 127.0.0.1, in a buffer of the caller's. */
struct request paced_request(char *url, size_t size, uint16_t port, const char *method,
                             const char *path, unsigned flags);

/* Until its next pause (of the response, or of the source); fails if the fetch ends first. */
void paced_wait_paused(struct paced *paced);
void paced_wait_dry(struct paced *paced);

/* Bytes of the response's body until now. */
size_t paced_len(struct paced *paced);

/* Ends pauses: the source has all from now on. */
void paced_go_on(struct paced *paced);

/* Until the end, which must be this one. */
void paced_expect(struct paced *paced, enum fetch_error error);

#endif
