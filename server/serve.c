#include "server/serve.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/units.h"
#include "server/answered.h"
#include "server/job.h"

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
    answered_page(service, request->rpc, request->url, PROXY_HIT, page, NULL);
    answer->page = page;
    return SERVE_PAGE;
}

static enum serve_result
answer_failure(struct service *service, const struct serve_request *request, proxy_status status,
               const char *sentence, struct serve_answer *answer)
{
    answered_failure(service, request->rpc, request->url, status);
    answer->status = status;
    answer->sentence = sentence;
    return SERVE_FAILURE;
}

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
    struct pending *pending = pending_create(service, request);
    struct job *job = pending ? job_create(service, &rpc_request_peer(request->rpc)->client,
                                           request->url, request->headers)
                              : NULL;
    enum flight_role role = FLIGHT_NO_MEMORY;
    const char *sentence;
    proxy_status status;
    int error = job ? ENOMEM : errno;

    if (pending && job) {
        pending->bypass = audience == BYPASS;
        pending->waiter.leader = audience == BYPASS;
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
        rpc_request_defer(request->rpc);
        job_submit(job, request->headers);
        return SERVE_DEFERRED;
    case FLIGHT_JOINED:
        job_free(job);
        rpc_request_defer(request->rpc);
        return SERVE_DEFERRED;
    case FLIGHT_FOUND:
    case FLIGHT_FULL:
    case FLIGHT_NO_MEMORY:
        break;
    }
    job_free(job);
    pending_free(pending);
    if (look.wait_us)
        return answer_too_fast(service, request, look.wait_us, answer);
    if (role == FLIGHT_FOUND)
        return answer_hit(service, request, look.page, answer);
    if (role == FLIGHT_FULL)
        return answer_failure(service, request, PROXY_OVERLOADED,
                              "too many requests wait for this URL already; try again", answer);
    sentence = job_refusal(error, &status);
    return answer_failure(service, request, status, sentence, answer);
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
    if (!bypass && service_follows_http(service) &&
        (has_user || marks_has(service->marks, request->url, rpc_request_arrived_us(request->rpc))))
        audience = ALONE;
    return serve_miss(service, request, audience, answer);
}
