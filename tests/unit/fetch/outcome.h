/* A fetch, and what came of it: a sink that keeps everything, and shorthands that fetch and wait.
 */
#ifndef SUNPROXY_TESTS_FETCH_OUTCOME_H
#define SUNPROXY_TESTS_FETCH_OUTCOME_H

#include <pthread.h>

#include "fetch/fetch.h"
#include "origins/origin_route.h"

/* What was said of a response. */
struct outcome_response {
    unsigned status;
    unsigned heads_before; /* calls of head() until then */
    bool has_user;
    int64_t waited_us;
    char lines[256];
};

struct outcome {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool over;
    char url[9000]; /* that was asked for, if a shorthand did */
    unsigned responses, interims, heads, dones;
    struct outcome_response response[4]; /* the first ones */
    char interim[512];         /* "status lines" of all of them, one behind the other */
    unsigned status;
    int64_t content_length;
    char headers[8192];
    char *body;
    size_t body_len;
    enum fetch_error error;
    char sentence[1024];
    int64_t total_us;
};

void outcome_init(struct outcome *o);
void outcome_free(struct outcome *o);

/* The client of fetches that need no particular one. */
#define OUTCOME_CLIENT unit_client(UNIT_CLIENTS - 1)

/* A plain GET of a client, by C strings. */
#define GET(of, address, lines) \
    ((struct request){.client = (of), .url = span_str(address), .fields = span_str(lines)})

/* A row with one member, which is sent this Host. */
struct origin_route route_to(const char *member, const char *host);

/* fetcher_submit() of a copy, whose method is that of its name. */
bool submit_request(struct fetcher *fetcher, const struct request *request,
                    const struct fetch_sink *sink, void *context, uint64_t *id);

/* The sink for submit_request(), with an initialised outcome as its context, and its parts. */
extern const struct fetch_sink outcome_sink;
void outcome_response(void *context, const struct fetch_response *response);
void outcome_interim(void *context, unsigned status, struct span lines);
enum fetch_flow outcome_head(void *context, const struct fetch_head *head);
enum fetch_flow outcome_body(void *context, const void *bytes, size_t len);
void outcome_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us);

/* Until the fetch is over, and whether it is. */
void outcome_wait(struct outcome *o);
bool outcome_is_over(struct outcome *o);

/* Fetches, waits, and asserts what holds for every outcome, which the caller frees. */
void fetch_with(struct fetcher *fetcher, const char *url, const char *headers, struct outcome *o);
void fetch_one(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same with an answer of any status. */
void fetch_fine(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fetches and asserts this end, or that it is a page with this body. */
void expect_end(struct fetcher *fetcher, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void expect_page(struct fetcher *fetcher, const char *body, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
