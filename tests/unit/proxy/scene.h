/*
 * What the tests of proxy/ share: a proxy with a scripted clock and a scripted origin, and a front
 * whose exchanges belong to the test's thread. Nothing happens by itself: the test lets the origin
 * respond by scene_response() to scene_done(), and the woken exchanges run by scene_run(). Another
 * attempt of a fetch is another one of the list.
 */
#ifndef SUNPROXY_TESTS_PROXY_SCENE_H
#define SUNPROXY_TESTS_PROXY_SCENE_H

#include "fetch/attempt.h"
#include "http/storing.h"
#include "proxy/exchange.h"
#include "proxy/proxy_rules.h"
#include "rules/tag_rules.h"
#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define MIB ((uint64_t)1 << 20)

/* The client of requests that need no particular one. */
#define SCENE_CLIENT unit_client(UNIT_CLIENTS - 1)

/* ---- the proxy ------------------------------------------------------------------------------- */

struct scene_options {
    const char *policy;      /* NULL: lru */
    uint64_t capacity_pages; /* 0: 100 */
    uint64_t capacity_bytes; /* 0: not bounded */
    unsigned shards;         /* 0: 1 */
    uint64_t memory;         /* of the account; 0: not bounded */
    unsigned max_waiters;    /* 0: 1000 */
    uint64_t max_body;       /* 0: 1 MiB */
    uint64_t max_page;       /* 0: the default */
    uint64_t range_fill;     /* 0: 64 MiB */
    unsigned workers;        /* 0: 1 */
    int64_t max_age_us;      /* 0: not bounded */
    bool freshness_off;
};

struct scene_fetch;

struct scene {
    struct proxy proxy;
    struct cache *cache;
    struct metrics *metrics;
    struct memory_account account;
    _Atomic int64_t now_us;                         /* workers read it while a test sets it */
    pthread_mutex_t lock;                           /* protects the next three */
    TAILQ_HEAD(scene_fetches, scene_fetch) fetches; /* submitted, and not done */
    unsigned submitted;
    int refuses; /* the error with which the origin refuses a request; 0: it does not */
    TAILQ_HEAD(scene_visits, visit) woken;
    struct proxy_fetched fetched; /* the last one */
    char fetched_sentence[FAILURE_SENTENCE];
    unsigned visits; /* under way */
    struct http_storing_rules rules;
    struct proxy_rules proxy_rules;
    struct tag_rules tag_rules, write_rules; /* of the proxy; scene_end() frees them */
};

extern struct scene scene;

void scene_begin(const struct scene_options *options);

/* Adds a rule, of --tag-rule or --write-rule. */
void scene_add_rule(struct tag_rules *rules, const char *text);

/* Nothing is under way, and nothing is charged but what is in the cache; or the test fails. */
void scene_end(void);

/* Runs the woken exchanges until there are none. */
void scene_run(void);

/* One of our own metrics. */
uint64_t scene_metric(const char *name);

/* Fails unless the metric has this value. */
void scene_expect_metric(const char *name, uint64_t value);

struct cache_stats scene_stats(void);

/* ---- the origin ------------------------------------------------------------------------------ */

/* Requests may be submitted on any thread; the test's is the fetcher's. */

struct scene_fetch {
    TAILQ_ENTRY(scene_fetch) link;
    struct client *client;
    const struct request *request;  /* a reference */
    const struct fetch_sink *given; /* with the request */
    void *given_context;
    struct attempt attempt;
    bool had_turn, supplied;
    const struct fetch_sink *sink; /* what a test calls, with the context, as the fetcher would */
    void *context;
    uint64_t id;
    bool cancelled;
    unsigned resumes;
    unsigned flags;
    struct request_body body;
    char url[256], method[16], fields[5000], host[128];
};

#define SCENE_FETCHES 1024 /* at a time */

/*
 * Of a fetch that finds all members of its row down, the URL is "down", and the test ends it with
 * FETCH_DOWN.
 *
 * The fetch that was submitted first of those that are not done; of this URL unless NULL.
 * scene_find(): NULL if there is none.
 */
struct scene_fetch *scene_fetch(const char *url);
struct scene_fetch *scene_find(const char *url);
size_t scene_fetches(void);

/* What was asked of a fetch on any thread so far. */
unsigned scene_resumes(const struct scene_fetch *fetch);
bool scene_is_cancelled(const struct scene_fetch *fetch);

/* The response's parts. `lines` are field lines as C strings. scene_response() is that of status
 * 200. */
void scene_response_of(struct scene_fetch *fetch, unsigned status, const char *lines);
void scene_response(struct scene_fetch *fetch, const char *lines, bool has_user);
enum fetch_flow scene_head(struct scene_fetch *fetch, unsigned status, const char *lines,
                           int64_t length);
enum fetch_flow scene_body(struct scene_fetch *fetch, size_t len);
void scene_done(struct scene_fetch *fetch, enum fetch_error error, const char *sentence);

/*
 * All of a response to the first fetch of this URL, and then scene_run(). 204 and 304 have no body.
 */
void scene_answer(const char *url, unsigned status, const char *lines, size_t len);

/* What the fetch gets of the request's body, at most `size` bytes. */
enum fetch_supply scene_supply(struct scene_fetch *fetch, void *buffer, size_t size, size_t *len);

/* All of a response with status 200 and `len` bytes, and then scene_run(). */
void scene_respond(const char *url, const char *lines, size_t len);

/* The bytes that scene_body() sends: position by position the same for all bodies. */
char scene_byte(uint64_t position);

/* Writes those from a position on. */
void scene_bytes(char *bytes, uint64_t position, size_t len);

/* Are these the bytes from that position on? */
bool scene_has_bytes(const char *bytes, uint64_t position, size_t len);

/* ---- the front ------------------------------------------------------------------------------- */

/* The fields that a request over RPC has beside its client's own. */
#define SCENE_RPC_FIELDS "Accept: */*\r\nAccept-Encoding: identity\r\n"

/*
 * A request: over RPC, as that front makes it, with its client's own fields if any, or over HTTP.
 * Set the first part, all else zero; then visit().
 */
struct visit {
    const char *url;
    const char *method, *fields; /* an exchange that streams asks for them when it needs them */
    const char *target;          /* what is fetched instead; NULL: the URL */
    uint32_t lacks;              /* over HTTP */
    bool http, owned, no_store, streams;
    enum outcome before; /* of the exchange that has led to this one */
    struct origin_route *route;
    bool has_body;
    int64_t body_length;
    struct client *client; /* NULL: SCENE_CLIENT */
    bool bounded;          /* by the client's rate of fetches */
    size_t waiting_bytes;
    bool cancels_in_head; /* of a visit that streams */
    bool paces;           /* likewise: it reads up to `reads_to` at most */
    size_t reads_to;

    struct request request;   /* of the exchange */
    struct exchange exchange; /* poisoned when it has ended */
    TAILQ_ENTRY(visit) link;
    bool listed;
    struct object_place place;
    /* What came. */
    unsigned heads, mores, fails, wakes, spaces, interims, makes;
    bool ended;
    enum failure why;
    char sentence[FAILURE_SENTENCE];
    enum outcome outcome;
    unsigned status;
    char lines[512]; /* of the response */
    char tags[512];
    int64_t age_us, as_of_us;
    bool stored, as_is;
    enum exchange_evaluated evaluated;
    unsigned origin_status;
    size_t evicted, victims, got; /* got: bytes of the body, as it should be */
    char ended_url[256];
    char redirect[256]; /* exchange_redirect() */
};

/* The result of exchange_start(). */
bool visit(struct visit *visit);

/* visit() of the GET of a URL over HTTP with these fields, that streams. Returns as visit() does. */
bool visit_http(struct visit *visit, const char *url, const char *fields);

/* visit() of a URL, by a client of its own number, that is answered later. */
void visit_url(struct visit *visit, const char *url, unsigned client);

/* Reads on, of a visit that paces. It ends when it has read a body that is complete. */
void visit_read_to(struct visit *visit, size_t offset);

/* exchange_cancel(). */
bool visit_cancel(struct visit *visit);

/* What came, in full: one call of each kind at most, and nothing after the end. */
void expect_body(const struct visit *visit, enum outcome outcome, size_t len);
void expect_failure(const struct visit *visit, enum failure why, const char *part_of_sentence);
void expect_waiting(const struct visit *visit);

/* visit_http() that is fetched, gets a 200 with these lines and a body, and is stored. */
void expect_http_miss(const char *url, const char *fields, const char *lines, size_t len);

/* visit_http() that gets what is stored, a body of `len` bytes, at once. */
void expect_http_hit(const char *url, const char *fields, size_t len);

/* Puts an object into the cache by a visit of its own. */
void scene_store(const char *url, const char *lines, size_t len);

/* A request that must hit, or that must not; true: it has hit. A fetch that it causes fails. */
bool scene_has(const char *url);

#endif
