#include "server/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "server/answered.h"
#include "server/log.h"

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Charges `charge` and allocates `size` bytes, zeroed. For the client `beside` is counted too,
 * which is charged elsewhere. NULL with errno EDQUOT, ENOBUFS or ENOMEM.
 */
static void *
make_charged(struct service *service, const struct client_key *client, size_t size, size_t charge,
             size_t beside)
{
    void *memory;

    if (!client_tally_take(service->waiting, client, charge + beside))
        return NULL;
    if (!memory_charge(&service->memory, MEMORY_REQUESTS, charge)) {
        client_tally_give_back(service->waiting, client, charge + beside);
        errno = ENOBUFS;
        return NULL;
    }
    memory = memory_calloc(&service->memory, size);
    if (!memory) {
        memory_uncharge(&service->memory, MEMORY_REQUESTS, charge);
        client_tally_give_back(service->waiting, client, charge + beside);
        errno = ENOMEM;
    }
    return memory;
}

static void
free_charged(struct service *service, const struct client_key *client, void *memory, size_t charge,
             size_t beside)
{
    memory_uncharge(&service->memory, MEMORY_REQUESTS, charge);
    client_tally_give_back(service->waiting, client, charge + beside);
    free(memory);
}

const char *
job_refusal(int error, proxy_status *status)
{
    *status = error == ENOMEM ? PROXY_INTERNAL : PROXY_OVERLOADED;
    switch (error) {
    case EDQUOT:
        return "too many requests of this client wait already; try again";
    case ENOBUFS:
        return "too many requests wait already; try again";
    default:
        return strerror(ENOMEM);
    }
}

/* ---- answering later ----------------------------------------------------------------------- */

static struct pending *
pending_of_task(struct net_task *task)
{
    return container_of(task, struct pending, task);
}

void
job_free(struct job *job)
{
    if (!job)
        return;
    if (job->outcome)
        outcome_release(job->outcome);
    free_charged(job->service, &job->client, job, job->charged, job->beside);
}

void
pending_free(struct pending *pending)
{
    if (pending)
        free_charged(pending->service, &pending->client, pending, sizeof(*pending),
                     pending->beside);
}

/* On the request's worker: the fetch that it waited for has ended. */
static void
answer_pending(struct net_task *task)
{
    struct pending *pending = pending_of_task(task);
    struct outcome *outcome = pending->outcome;
    struct service *service = pending->service;
    bool leader = pending->waiter.leader;
    struct serve_late_answer answer = {
        .rpc = pending->rpc,
        .outcome = outcome,
        .status = pending->sentence ? pending->status : outcome->status,
        .sentence = pending->sentence ? pending->sentence : outcome->sentence,
        .source = pending->bypass ? PROXY_BYPASS
                  : leader        ? PROXY_MISS
                                  : PROXY_COALESCED,
        .show_victims = pending->show_victims && leader,
    };

    if (answer.status == PROXY_OK) {
        answered_page(service, pending->rpc, outcome->url, answer.source, outcome->page,
                      leader ? &outcome->victims : NULL);
    } else {
        answered_failure(service, pending->rpc, outcome->url, answer.status);
    }
    /* Here, since the entry of a client stands still on its worker's thread only. */
    if (pending->fetched_late && rpc_request_client(pending->rpc))
        client_entry_charge_fetch(rpc_request_client(pending->rpc), clock_monotonic_us());
    pending->reply_late(&answer);
    pending_free(pending);
}

/* Hands the outcome to one who waited; on the fetcher's thread. */
static void
post_outcome(struct pending *pending, struct outcome *outcome)
{
    pending->outcome = outcome_retain(outcome);
    pending->task.run = answer_pending;
    net_worker_post(rpc_request_worker(pending->rpc), &pending->task);
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
    if (!outcome->stored && service_follows_http(job->service))
        cache_purge_expired(cache, outcome->url, outcome->page->fetched_us);
}

/* A job for a request that has waited for another's; NULL: the request has been refused. */
static struct job *
make_own_job(struct pending *pending, struct outcome *outcome)
{
    struct job *job =
        job_create(pending->service, &pending->client, outcome->url, span_of(NULL, 0));

    if (!job) {
        pending->sentence = job_refusal(errno, &pending->status);
        post_outcome(pending, outcome);
    }
    return job;
}

/*
 * The answer that a request has waited for is another client's alone: it fetches for itself, at
 * once. On the fetcher's thread.
 */
static void
fetch_alone(struct pending *pending, struct outcome *outcome)
{
    struct service *service = pending->service;
    struct job *job = make_own_job(pending, outcome);

    if (!job)
        return;
    pending->fetched_late = true;
    pending->waiter.leader = true;
    /* Without memory for a flight it is fetched all the same, and never stored. */
    if (!flights_board_alone(service->flights, job->outcome->url, &pending->waiter, &job->flight))
        job->pending = pending;
    job_submit(job, span_of(NULL, 0));
}

/*
 * The fetch that a request has waited for was given up, which concerns its client only: the first
 * such request of another client fetches, and the others wait for it. On the fetcher's thread.
 */
static void
board_again(struct pending *pending, struct outcome *outcome)
{
    struct job *job = make_own_job(pending, outcome);

    if (!job)
        return;
    switch (flights_board(pending->service->flights, outcome->url, &pending->waiter, NULL, NULL,
                          &job->flight)) {
    case FLIGHT_LED:
        pending->fetched_late = true;
        job_submit(job, span_of(NULL, 0));
        break;
    case FLIGHT_JOINED:
        job_free(job);
        break;
    default:
        job_free(job);
        post_outcome(pending, outcome);
        break;
    }
}

/* A request that has waited for another's fetch: it is answered, or fetches for itself. */
static void
hand_over(struct job *job, struct pending *pending)
{
    struct outcome *outcome = job->outcome;
    bool own = client_key_compare(&pending->client, &job->client) == 0;

    if (outcome->page && job->sharing.unshared) {
        fetch_alone(pending, outcome);
    } else if (job->displaced && !own) {
        board_again(pending, outcome);
    } else {
        /* The sentence may quote a response that is for the first client alone. */
        if (job->sharing.unshared) {
            pending->status = outcome->status;
            pending->sentence = "the fetch failed after a response that is for one client only";
        }
        post_outcome(pending, outcome);
    }
}

/* The fetch is over: no request joins any more, and all that waited are answered, or fetch for
 * themselves. Frees the job. */
static void
land(struct job *job)
{
    if (job->flight) {
        const struct page *page = job->outcome->page;
        bool answered = page && service_follows_http(job->service);
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

            if (waiter->leader)
                post_outcome(pending, job->outcome);
            else
                hand_over(job, pending);
            waiter = next;
        }
    } else {
        post_outcome(job->pending, job->outcome);
    }
    intake_remove(&job->service->intake, &job->body);
    page_abandon(&job->body.builder);
    job_free(job);
}

static const char no_room[] =
    "too many bytes are being fetched, or wait for clients to read them; try again";

/* The body has stalled while memory was short, or it was the largest of a client with most. */
static void
give_up(struct intake_body *body)
{
    struct job *job = container_of(body, struct job, body);

    job->error = ENOBUFS;
    fetcher_cancel(job->service->fetcher, job->fetch);
}

/* ---- the fetch's call-backs, on the fetcher's thread ----------------------------------------- */

static void
job_begin(void *context)
{
    struct job *job = context;

    intake_ask(&job->service->intake, &job->client);
}

static void
job_hop(void *context, const struct fetch_hop *hop)
{
    struct job *job = context;

    sharing_take(&job->sharing, hop);
    metrics_observe(job->service->metrics, metrics_fetcher_slot(job->service->metrics),
                    HISTOGRAM_ORIGIN_FIRST_BYTE, hop->waited_us);
}

static enum fetch_flow
job_head(void *context, const struct fetch_head *head)
{
    struct job *job = context;
    struct span url = job->outcome->url;
    size_t hint;

    intake_ask(&job->service->intake, &job->client);
    hint = head->content_length > 0 ? (size_t)head->content_length : 0;

    job->no_store = head->no_store;
    if (!page_begin(&job->body.builder, &job->service->memory, url,
                    span_equal(head->final_url, url) ? span_of(NULL, 0) : head->final_url,
                    head->headers, (uint16_t)head->status, hint, job->service->options->max_page)) {
        job->error = job->body.builder.error;
        return FETCH_ABORT;
    }
    job->body.give_up = give_up;
    if (!intake_add(&job->service->intake, &job->body, &job->client, clock_monotonic_us())) {
        job->error = ENOMEM;
        page_abandon(&job->body.builder);
        return FETCH_ABORT;
    }
    return FETCH_CONTINUE;
}

static enum fetch_flow
job_body(void *context, const void *bytes, size_t len)
{
    struct job *job = context;

    if (!job->error)
        job->error =
            intake_append(&job->service->intake, &job->body, bytes, len, clock_monotonic_us());
    if (!job->error)
        return FETCH_CONTINUE;
    /* At once: what it held may be what the next one needs. */
    intake_remove(&job->service->intake, &job->body);
    page_abandon(&job->body.builder);
    return FETCH_ABORT;
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
    job->displaced = error == FETCH_DISPLACED;
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
    .begin = job_begin,
    .hop = job_hop,
    .head = job_head,
    .body = job_body,
    .done = job_done,
};

/* ---- making and sending one --------------------------------------------------------------- */

struct pending *
pending_create(struct service *service, const struct serve_request *request)
{
    const struct client_key *client = &rpc_request_peer(request->rpc)->client;
    struct pending *pending = make_charged(service, client, sizeof(*pending), sizeof(*pending),
                                           rpc_request_bytes(request->rpc));

    if (!pending)
        return NULL;
    pending->service = service;
    pending->beside = rpc_request_bytes(request->rpc);
    pending->client = *client;
    pending->rpc = request->rpc;
    pending->reply_late = request->reply_late;
    pending->show_victims = (request->flags & PROXY_FLAG_WANT_VICTIMS) &&
                            (service->options->show_victims == VICTIMS_ALL ||
                             (service->options->show_victims == VICTIMS_ADMIN &&
                              service_is_admin(service, rpc_request_peer(request->rpc))));
    return pending;
}

struct job *
job_create(struct service *service, const struct client_key *client, struct span url,
           struct span headers)
{
    /* The flight has a copy of the URL. */
    size_t charge = sizeof(struct job) + url.len +
                    fetcher_request_bytes(&(struct fetch_request){.url = url, .headers = headers});
    size_t beside = outcome_bytes(url);
    struct job *job = make_charged(service, client, sizeof(*job), charge, beside);

    if (!job)
        return NULL;
    job->service = service;
    job->charged = charge;
    job->beside = beside;
    job->client = *client;
    sharing_init(&job->sharing, !service_follows_http(service));
    job->outcome = outcome_create(&service->memory, url);
    if (!job->outcome) {
        int error = errno;

        job_free(job);
        errno = error;
        return NULL;
    }
    return job;
}

void
job_submit(struct job *job, struct span headers)
{
    const struct fetch_request request = {
        .client = job->client, .url = job->outcome->url, .headers = headers};

    if (fetcher_submit(job->service->fetcher, &request, &job_sink, job, &job->fetch))
        return;
    if (errno == ESHUTDOWN)
        job->outcome->status = PROXY_STOPPING;
    snprintf(job->outcome->sentence, sizeof(job->outcome->sentence), "%s",
             errno == ESHUTDOWN ? "the server is shutting down" : strerror(ENOMEM));
    land(job);
}
