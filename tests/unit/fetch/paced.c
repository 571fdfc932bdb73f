#include "tests/unit/fetch/paced.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

void
paced_init(struct paced *paced, struct fetcher *fetcher)
{
    memset(paced, 0, sizeof(*paced));
    outcome_init(&paced->outcome);
    paced->fetcher = fetcher;
}

void
paced_free(struct paced *paced)
{
    outcome_free(&paced->outcome);
}

static enum fetch_flow
begin_pause(struct paced *paced)
{
    paced->paused = true;
    paced->pauses++;
    pthread_cond_broadcast(&paced->outcome.changed);
    return FETCH_PAUSE;
}

static enum fetch_flow
paced_head(void *context, const struct fetch_head *head)
{
    struct paced *paced = context;
    enum fetch_flow flow = outcome_head(&paced->outcome, head);

    pthread_mutex_lock(&paced->outcome.lock);
    paced->calls_after_cancel += paced->cancelled;
    if (paced->pause_at_head)
        flow = begin_pause(paced);
    if (paced->resume_at_head)
        fetcher_resume(paced->fetcher, paced->id);
    if (paced->cancel_at_head) {
        paced->cancelled = true;
        fetcher_cancel(paced->fetcher, paced->id);
    }
    pthread_mutex_unlock(&paced->outcome.lock);
    return flow;
}

static enum fetch_flow
paced_body(void *context, const void *bytes, size_t len)
{
    struct paced *paced = context;
    enum fetch_flow flow;

    pthread_mutex_lock(&paced->outcome.lock);
    paced->calls_after_cancel += paced->cancelled;
    ck_assert_uint_gt(len, 0);
    ck_assert(!paced->paused);
    flow = outcome_body(&paced->outcome, bytes, len);
    if (paced->pause_at && paced->outcome.body_len >= paced->pause_at) {
        paced->pause_at = paced->pause_step ? paced->outcome.body_len + paced->pause_step : 0;
        flow = begin_pause(paced);
    }
    pthread_mutex_unlock(&paced->outcome.lock);
    return flow;
}

static enum fetch_supply
supply(struct paced *paced, void *buffer, size_t size, size_t *len)
{
    size_t left = paced->source_len - paced->supplied;

    if (paced->dry_at_once || (paced->source_dry_at && paced->supplied >= paced->source_dry_at)) {
        paced->dry = true;
        pthread_cond_broadcast(&paced->outcome.changed);
        return FETCH_SUPPLY_LATER;
    }
    if (left == 0)
        return paced->source_end ? paced->source_end : FETCH_SUPPLY_END;
    if (paced->source_piece && left > paced->source_piece)
        left = paced->source_piece;
    if (paced->source_dry_at && left > paced->source_dry_at - paced->supplied)
        left = paced->source_dry_at - paced->supplied;
    *len = left < size ? left : size;
    memcpy(buffer, paced->source + paced->supplied, *len);
    paced->supplied += *len;
    return FETCH_SUPPLIED;
}

static enum fetch_supply
paced_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct paced *paced = context;
    enum fetch_supply supplied;

    if (paced->source_us)
        usleep(paced->source_us);
    pthread_mutex_lock(&paced->outcome.lock);
    paced->calls_after_cancel += paced->cancelled;
    ck_assert_uint_gt(size, 0);
    supplied = supply(paced, buffer, size, len);
    pthread_mutex_unlock(&paced->outcome.lock);
    return supplied;
}

void
paced_submit(struct paced *paced, const struct request *request)
{
    static const struct fetch_sink sink = {
        .response = outcome_response,
        .head = paced_head,
        .body = paced_body,
        .supply = paced_supply,
        .done = outcome_done,
    };

    snprintf(paced->outcome.url, sizeof(paced->outcome.url), "%.*s", (int)request->url.len,
             request->url.ptr);
    ck_assert(submit_request(paced->fetcher, request, &sink, paced, &paced->id));
    ck_assert_uint_gt(paced->id, 0);
}

struct request
paced_request(char *url, size_t size, uint16_t port, const char *method, const char *path,
              unsigned flags)
{
    snprintf(url, size, "http://127.0.0.1:%u%s", port, path);
    return (struct request){.client = OUTCOME_CLIENT,
                            .method_name = span_str(method),
                            .url = span_str(url),
                            .flags = flags};
}

static void
wait_for(struct paced *paced, const bool *what)
{
    pthread_mutex_lock(&paced->outcome.lock);
    while (!*what && !paced->outcome.over)
        pthread_cond_wait(&paced->outcome.changed, &paced->outcome.lock);
    ck_assert_msg(*what, "%s: over with %d: %s", paced->outcome.url, paced->outcome.error,
                  paced->outcome.sentence);
    pthread_mutex_unlock(&paced->outcome.lock);
}

void
paced_wait_paused(struct paced *paced)
{
    wait_for(paced, &paced->paused);
}

void
paced_wait_dry(struct paced *paced)
{
    wait_for(paced, &paced->dry);
}

size_t
paced_len(struct paced *paced)
{
    size_t len;

    pthread_mutex_lock(&paced->outcome.lock);
    len = paced->outcome.body_len;
    pthread_mutex_unlock(&paced->outcome.lock);
    return len;
}

void
paced_go_on(struct paced *paced)
{
    pthread_mutex_lock(&paced->outcome.lock);
    paced->paused = paced->dry = false;
    paced->dry_at_once = false;
    paced->source_dry_at = 0;
    pthread_mutex_unlock(&paced->outcome.lock);
    fetcher_resume(paced->fetcher, paced->id);
}

void
paced_expect(struct paced *paced, enum fetch_error error)
{
    outcome_wait(&paced->outcome);
    ck_assert_uint_eq(paced->outcome.dones, 1);
    ck_assert_uint_le(paced->outcome.heads, 1);
    ck_assert_uint_eq(paced->calls_after_cancel, 0);
    ck_assert_msg(paced->outcome.error == error, "%s: %d instead of %d: %s", paced->outcome.url,
                  paced->outcome.error, error, paced->outcome.sentence);
}
