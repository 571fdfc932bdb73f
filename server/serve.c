#include "server/serve.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/units.h"
#include "server/log.h"
#include "server/sharing.h"

/* A request that waits for a fetch. Lives on its worker, but for the time on the flight's list. */
struct pending {
    struct flight_waiter waiter; /* first: the flight hands these back */
    struct rpc_task task;
    struct service *service;
    struct rpc_request *rpc;
    struct outcome *outcome; /* set when the fetch ends */
    struct job *spare;       /* for one that waits and may have to fetch for itself; or NULL */
    unsigned version;
    bool bypass;
    bool fetched_alone; /* after it had waited, so that no token was taken for its fetch */
    bool show_victims;
};

/* A fetch under way. Belongs to the fetcher's thread once submitted. */
struct job {
    struct service *service;
    struct flight *flight;    /* NULL for a bypass, */
    struct pending *pending;  /* which has one request only */
    struct client_key client; /* that it is fetched for */
    struct sharing sharing;
    struct outcome *outcome; /* made beforehand, so that a failure needs no memory to be told */
    struct intake_body body;
    size_t charged; /* for this and what the fetcher remembers of it */
    int error;      /* why we ended the fetch ourselves: ENOMEM, EFBIG, ENOBUFS or 0 */
    bool no_store;  /* the fetch says so */
};

static bool
follows_http(const struct service *service)
{
    return service->options->freshness == FRESHNESS_ON;
}

static void
count_page(struct service *service, unsigned worker, proxy_source source, size_t body_len)
{
    static const enum counter counter_of[] = {
        [PROXY_HIT] = COUNT_HITS,
        [PROXY_MISS] = COUNT_MISSES,
        [PROXY_COALESCED] = COUNT_COALESCED,
        [PROXY_BYPASS] = COUNT_BYPASSES,
    };

    counters_add(service->counters, worker, COUNT_REQUESTS, 1);
    counters_add(service->counters, worker, counter_of[source], 1);
    counters_add(service->counters, worker, COUNT_BYTES_SERVED, body_len);
    if (source == PROXY_HIT)
        counters_add(service->counters, worker, COUNT_BYTES_HIT, body_len);
}

static void
count_failure(struct service *service, unsigned worker)
{
    counters_add(service->counters, worker, COUNT_REQUESTS, 1);
    counters_add(service->counters, worker, COUNT_FAILURES, 1);
}

static unsigned
worker_of(const struct rpc_request *rpc)
{
    return rpc_worker_number(rpc_request_worker(rpc));
}

static void
log_request(struct service *service, const struct rpc_request *rpc, struct span url,
            const char *word, const struct page *page, const struct cache_victims *victims)
{
    if (!service->access_log)
        return;
    access_log_add(service->access_log,
                   &(struct access_entry){
                       .peer = rpc_request_peer(rpc),
                       .url = url,
                       .outcome = word,
                       .status = page ? page->status : 0,
                       .bytes = page ? page->body_len : 0,
                       .us = clock_monotonic_us() - rpc_request_arrived_us(rpc),
                       .victims = victims,
                   });
}

/* ---- answering at once ------------------------------------------------------------------- */

static void
release_page(void *held)
{
    struct page *page = held;

    page_release(&page);
}

static enum serve_result
answer_hit(struct service *service, const struct serve_request *request, struct page *page,
           struct serve_answer *answer)
{
    rpc_request_hold(request->rpc, release_page, page);
    count_page(service, worker_of(request->rpc), PROXY_HIT, page->body_len);
    log_request(service, request->rpc, request->url, outcome_source_word(PROXY_HIT), page, NULL);
    answer->page = page;
    return SERVE_PAGE;
}

static enum serve_result
answer_failure(struct service *service, const struct serve_request *request, proxy_status status,
               const char *sentence, struct serve_answer *answer)
{
    count_failure(service, worker_of(request->rpc));
    log_request(service, request->rpc, request->url, outcome_status_word(status), NULL, NULL);
    answer->status = status;
    answer->sentence = sentence;
    return SERVE_FAILURE;
}

/* ---- memory -----------------------------------------------------------------------------------
 */

/* Charges and allocates, zeroed; NULL with errno ENOBUFS or ENOMEM. */
static void *
make_charged(struct service *service, size_t size, size_t charge)
{
    void *memory;

    if (!memory_charge(&service->memory, MEMORY_REQUESTS, charge)) {
        errno = ENOBUFS;
        return NULL;
    }
    memory = memory_calloc(&service->memory, size);
    if (!memory)
        memory_uncharge(&service->memory, MEMORY_REQUESTS, charge);
    return memory;
}

static void
free_charged(struct service *service, void *memory, size_t charge)
{
    if (!memory)
        return;
    memory_uncharge(&service->memory, MEMORY_REQUESTS, charge);
    free(memory);
}

/* ---- answering later ----------------------------------------------------------------------- */

static struct pending *
pending_of_task(struct rpc_task *task)
{
    return (struct pending *)((char *)task - offsetof(struct pending, task));
}

static void
free_job(struct job *job)
{
    if (!job)
        return;
    if (job->outcome)
        outcome_release(job->outcome);
    free_charged(job->service, job, job->charged);
}

/* On the request's worker: the fetch that it waited for has ended. */
static void
answer_pending(struct rpc_task *task)
{
    struct pending *pending = pending_of_task(task);
    struct outcome *outcome = pending->outcome;
    struct service *service = pending->service;
    unsigned worker = worker_of(pending->rpc);
    bool leader = pending->waiter.leader;
    struct serve_late_answer answer = {
        .rpc = pending->rpc,
        .outcome = outcome,
        .source = pending->bypass ? PROXY_BYPASS
                  : leader        ? PROXY_MISS
                                  : PROXY_COALESCED,
        .show_victims = pending->show_victims && leader,
    };

    if (outcome->status == PROXY_OK) {
        count_page(service, worker, answer.source, outcome->page->body_len);
        log_request(service, pending->rpc, outcome->url, outcome_source_word(answer.source),
                    outcome->page, leader ? &outcome->victims : NULL);
    } else {
        count_failure(service, worker);
        log_request(service, pending->rpc, outcome->url, outcome_status_word(outcome->status), NULL,
                    NULL);
    }
    /* Here, since the entry of a client stands still on its worker's thread only. */
    if (pending->fetched_alone && rpc_request_client(pending->rpc))
        client_entry_charge_fetch(rpc_request_client(pending->rpc), clock_monotonic_us());
    if (pending->version == 1)
        serve_reply_1(&answer);
    else
        serve_reply_2(&answer);
    free_job(pending->spare);
    free_charged(service, pending, sizeof(*pending));
}

/* Hands the outcome to one who waited; on the fetcher's thread. */
static void
post_outcome(struct pending *pending, struct outcome *outcome)
{
    pending->outcome = outcome_retain(outcome);
    pending->task.run = answer_pending;
    rpc_worker_post(rpc_request_worker(pending->rpc), &pending->task);
}

/* Under the flights' lock, and only if the page was not purged since the fetch began. */
static void
keep(void *context)
{
    struct job *job = context;
    struct cache *cache = job->service->cache;
    struct outcome *outcome = job->outcome;

    /* Only 200: storing answers of other status codes needs more of HTTP's rules. */
    if (outcome->page->status == 200 && !job->no_store && !job->sharing.unshared) {
        enum cache_outcome stored =
            cache_store(cache, outcome->page, &outcome->victims, &outcome->evicted);

        outcome->stored = stored == CACHE_STORED || stored == CACHE_REPLACED;
    }
    /* What has expired is not what the origin answers any more. */
    if (!outcome->stored && follows_http(job->service))
        cache_purge_expired(cache, outcome->url, outcome->page->fetched_us);
}

static void submit(struct service *service, struct job *job, struct span headers);

/*
 * The answer that a request has waited for is another client's alone: it fetches for itself, at
 * once. On the fetcher's thread.
 */
static void
fetch_alone(struct pending *pending)
{
    struct service *service = pending->service;
    struct job *job = pending->spare;

    pending->spare = NULL;
    pending->fetched_alone = true;
    pending->waiter.leader = true;
    /* Without memory for a flight it is fetched all the same, and never stored. */
    if (!flights_board_alone(service->flights, job->outcome->url, &pending->waiter, &job->flight))
        job->pending = pending;
    submit(service, job, span_of(NULL, 0));
}

/* The fetch is over: no request joins any more, and all that waited are answered, or fetch for
 * themselves. Frees the job. */
static void
land(struct job *job)
{
    if (job->flight) {
        const struct page *page = job->outcome->page;
        bool answered = page && follows_http(job->service);
        struct flight_waiter *waiter;

        /* Before the flight ends: whoever comes afterwards sees the mark, or does not need it. */
        if (answered && job->sharing.unshared)
            marks_set(job->service->marks, job->outcome->url, page->fetched_us);
        else if (answered)
            marks_clear(job->service->marks, job->outcome->url);
        waiter = flights_land(job->service->flights, job->flight, page ? keep : NULL, job);
        while (waiter) {
            struct flight_waiter *next = waiter->next;
            struct pending *pending = (struct pending *)waiter;

            if (waiter->leader || !page || !job->sharing.unshared)
                post_outcome(pending, job->outcome);
            else
                fetch_alone(pending);
            waiter = next;
        }
    } else {
        post_outcome(job->pending, job->outcome);
    }
    intake_remove(&job->service->intake, &job->body);
    page_abandon(&job->body.builder);
    outcome_release(job->outcome);
    free_charged(job->service, job, job->charged);
}

static const char no_room[] =
    "too many bytes are being fetched, or wait for clients to read them; try again";
static const char too_many_wait[] = "too many requests wait already; try again";

/* The body has stalled while memory was short. */
static void
give_up(struct intake_body *body)
{
    struct job *job = (struct job *)((char *)body - offsetof(struct job, body));

    job->error = ENOBUFS;
    fetcher_end(job->service->fetcher, job);
}

/* ---- the fetch's call-backs, on the fetcher's thread ----------------------------------------- */

static void
job_hop(void *context, const struct fetch_hop *hop)
{
    struct job *job = context;

    sharing_take(&job->sharing, hop);
}

static bool
job_head(void *context, const struct fetch_head *head)
{
    struct job *job = context;
    struct span url = job->outcome->url;
    size_t hint = head->content_length > 0 ? (size_t)head->content_length : 0;

    job->no_store = head->no_store;
    if (!page_begin(&job->body.builder, &job->service->memory, url,
                    span_equal(head->final_url, url) ? span_of(NULL, 0) : head->final_url,
                    head->headers, (uint16_t)head->status, hint, job->service->options->max_page)) {
        job->error = job->body.builder.error;
        return false;
    }
    job->body.give_up = give_up;
    intake_add(&job->service->intake, &job->body, clock_monotonic_us());
    return true;
}

static bool
job_body(void *context, const void *bytes, size_t len)
{
    struct job *job = context;

    if (!job->error)
        job->error =
            intake_append(&job->service->intake, &job->body, bytes, len, clock_monotonic_us());
    if (!job->error)
        return true;
    /* At once: what it held may be what the next one needs. */
    intake_remove(&job->service->intake, &job->body);
    page_abandon(&job->body.builder);
    return false;
}

static void
job_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct job *job = context;
    struct outcome *outcome = job->outcome;

    if (job->error == EFBIG)
        error = FETCH_TOO_LARGE;
    else if (job->error == ENOBUFS)
        error = FETCH_OVERLOADED;
    if (job->error)
        sentence = job->error == ENOBUFS ? no_room : strerror(job->error);
    outcome->status = outcome_status(error);
    snprintf(outcome->sentence, sizeof(outcome->sentence), "%s", sentence);
    intake_remove(&job->service->intake, &job->body);
    if (error == FETCH_OK) {
        outcome->page = page_finish(&job->body.builder, (uint64_t)total_us, clock_monotonic_us());
        sharing_limit(&job->sharing, outcome->page);
    }
    log_debug("fetched %.*s in %lld us: %s%s%s%s%s", (int)outcome->url.len, outcome->url.ptr,
              (long long)total_us, outcome_status_word(outcome->status), error ? ", " : "",
              outcome->sentence, job->sharing.unshared ? ", not shared: " : "",
              job->sharing.unshared ? job->sharing.unshared : "");
    land(job);
}

static const struct fetch_sink job_sink = {
    .hop = job_hop,
    .head = job_head,
    .body = job_body,
    .done = job_done,
};

/* ---- a miss ---------------------------------------------------------------------------------- */

/*
 * Is the page there by now, and may the client have it fetched if it is not? Asked while no flight
 * can land, and only of a request that would begin one: one that joins costs no fetch.
 */
struct second_look {
    struct cache *cache;
    struct span url;
    int64_t now_us;
    struct client_entry *client; /* NULL: no rate bounds it */
    struct page *page;
    int64_t wait_us; /* over the client's rate of fetches: until the next one */
};

static bool
look_again(void *context)
{
    struct second_look *look = context;

    look->page = cache_lookup(look->cache, look->url, look->now_us);
    if (!look->page && look->client)
        look->wait_us = client_entry_take_fetch(look->client, clock_monotonic_us());
    return look->page || look->wait_us;
}

static enum serve_result
answer_too_fast(struct service *service, const struct serve_request *request, int64_t wait_us,
                struct serve_answer *answer)
{
    static _Thread_local char sentence[SENTENCE_SIZE];
    char wait[32];

    snprintf(sentence, sizeof(sentence),
             "the rate of fetches for this client is used up; try again in %s",
             units_format_duration(wait_us, wait, sizeof(wait)));
    return answer_failure(service, request, PROXY_OVERLOADED, sentence, answer);
}

/* NULL with errno ENOBUFS or ENOMEM. */
static struct job *
make_job(struct service *service, const struct serve_request *request)
{
    /* The flight has a copy of the URL. */
    size_t charge = sizeof(struct job) + request->url.len +
                    fetcher_request_bytes(request->url, request->headers);
    struct job *job = make_charged(service, sizeof(*job), charge);

    if (!job)
        return NULL;
    job->service = service;
    job->charged = charge;
    job->client = rpc_request_peer(request->rpc)->client;
    sharing_init(&job->sharing, !follows_http(service));
    job->outcome = outcome_create(&service->memory, request->url);
    if (!job->outcome) {
        int error = errno;

        free_job(job);
        errno = error;
        return NULL;
    }
    return job;
}

/* Sends a job on its way; from here on it answers whoever waits, whatever happens. */
static void
submit(struct service *service, struct job *job, struct span headers)
{
    if (fetcher_submit(service->fetcher, &job->client, job->outcome->url, headers, &job_sink, job))
        return;
    snprintf(job->outcome->sentence, sizeof(job->outcome->sentence), "%s", strerror(ENOMEM));
    land(job);
}

/* For whom a request is fetched that the cache does not answer. */
enum audience {
    SHARED, /* all that ask meanwhile, and the cache */
    ALONE,  /* its client; the answer is stored if it turns out that it may be */
    BYPASS, /* its client; the answer is not stored */
};

static enum serve_result
serve_miss(struct service *service, const struct serve_request *request, enum audience audience,
           struct serve_answer *answer)
{
    struct second_look look = {
        .cache = service->cache,
        .url = request->url,
        .now_us = rpc_request_arrived_us(request->rpc),
        .client = rpc_request_client(request->rpc),
    };
    struct pending *pending = make_charged(service, sizeof(*pending), sizeof(*pending));
    struct job *job = pending ? make_job(service, request) : NULL;
    enum flight_role role = FLIGHT_NO_MEMORY;
    int error = job ? ENOMEM : errno;

    if (pending && job) {
        pending->service = service;
        pending->rpc = request->rpc;
        pending->version = request->version;
        pending->bypass = audience == BYPASS;
        pending->waiter.leader = audience == BYPASS;
        /* Before it boards, since from then on the fetcher's thread may look for it. */
        pending->spare = follows_http(service) ? job : NULL;
        pending->show_victims = (request->flags & PROXY_FLAG_WANT_VICTIMS) &&
                                (service->options->show_victims == VICTIMS_ALL ||
                                 (service->options->show_victims == VICTIMS_ADMIN &&
                                  service_is_admin(service, rpc_request_peer(request->rpc))));
        if (audience == BYPASS) {
            job->pending = pending;
            if (look.client)
                look.wait_us = client_entry_take_fetch(look.client, clock_monotonic_us());
            role = look.wait_us ? FLIGHT_FOUND : FLIGHT_LED;
        } else if (audience == ALONE) {
            if (look_again(&look))
                role = FLIGHT_FOUND;
            else if (flights_board_alone(service->flights, request->url, &pending->waiter,
                                         &job->flight))
                role = FLIGHT_LED;
        } else {
            role = flights_board(service->flights, request->url, &pending->waiter, look_again,
                                 &look, &job->flight);
            if (role == FLIGHT_NO_MEMORY && memory_reclaim(&service->memory, request->url.len))
                role = flights_board(service->flights, request->url, &pending->waiter, look_again,
                                     &look, &job->flight);
        }
    }
    switch (role) {
    case FLIGHT_LED:
        /* Answers are posted to this very thread, so none can come before the deferral. */
        pending->spare = NULL;
        rpc_request_defer(request->rpc);
        submit(service, job, request->headers);
        return SERVE_DEFERRED;
    case FLIGHT_JOINED:
        rpc_request_defer(request->rpc);
        if (!follows_http(service))
            free_job(job);
        return SERVE_DEFERRED;
    case FLIGHT_FOUND:
    case FLIGHT_FULL:
    case FLIGHT_NO_MEMORY:
        break;
    }
    free_job(job);
    free_charged(service, pending, sizeof(*pending));
    if (look.wait_us)
        return answer_too_fast(service, request, look.wait_us, answer);
    if (role == FLIGHT_FOUND)
        return answer_hit(service, request, look.page, answer);
    if (role == FLIGHT_FULL)
        return answer_failure(service, request, PROXY_OVERLOADED,
                              "too many requests wait for this URL already; try again", answer);
    if (error == ENOBUFS)
        return answer_failure(service, request, PROXY_OVERLOADED, too_many_wait, answer);
    return answer_failure(service, request, PROXY_INTERNAL, strerror(ENOMEM), answer);
}

enum serve_result
serve(struct service *service, const struct serve_request *request, struct serve_answer *answer)
{
    static _Thread_local char sentence[SENTENCE_SIZE];
    bool bypass = request->headers.len != 0 || (request->flags & PROXY_FLAG_NO_STORE);
    enum audience audience = bypass ? BYPASS : SHARED;
    enum fetch_error error;
    bool has_user = false;

    *answer = (struct serve_answer){.status = PROXY_OK};
    /* What is in the cache was judged before it was fetched. */
    if (!bypass) {
        struct page *page =
            cache_lookup(service->cache, request->url, rpc_request_arrived_us(request->rpc));

        if (page)
            return answer_hit(service, request, page, answer);
    }
    error = fetch_check_url(request->url, &has_user, sentence, sizeof(sentence));
    if (error == FETCH_OK && request->headers.len)
        error = fetch_check_headers(request->headers, sentence, sizeof(sentence));
    if (error != FETCH_OK)
        return answer_failure(service, request, outcome_status(error), sentence, answer);
    if (!bypass && follows_http(service) &&
        (has_user || marks_has(service->marks, request->url, rpc_request_arrived_us(request->rpc))))
        audience = ALONE;
    return serve_miss(service, request, audience, answer);
}
