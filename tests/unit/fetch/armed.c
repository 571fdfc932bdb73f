#include "tests/unit/fetch/armed.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

struct armed {
    struct fetcher *fetcher;
    const struct armed_calls *calls;
    unsigned n;
    bool failed;
    const struct request *request;
    uint64_t id;
    unsigned asked; /* for the request's body */
    struct outcome *outcome;
};

static void
armed_response(void *context, const struct fetch_response *response)
{
    struct armed *armed = context;

    outcome_response(armed->outcome, response);
}

/* A pause that ends at once. */
static enum fetch_flow
pause_a_moment(struct armed *armed, enum fetch_flow flow)
{
    if (flow == FETCH_ABORT || !(armed->request->flags & REQUEST_STREAMS))
        return flow;
    fetcher_resume(armed->fetcher, armed->id);
    return FETCH_PAUSE;
}

static enum fetch_flow
armed_head(void *context, const struct fetch_head *head)
{
    struct armed *armed = context;

    return pause_a_moment(armed, outcome_head(armed->outcome, head));
}

static enum fetch_flow
armed_body(void *context, const void *bytes, size_t len)
{
    struct armed *armed = context;

    return pause_a_moment(armed, outcome_body(armed->outcome, bytes, len));
}

static enum fetch_supply
armed_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct armed *armed = context;

    ck_assert_uint_ge(size, 5);
    switch (armed->asked++) {
    case 0:
        *len = 6;
        memcpy(buffer, "hello ", 6);
        return FETCH_SUPPLIED;
    case 1:
        fetcher_resume(armed->fetcher, armed->id);
        return FETCH_SUPPLY_LATER;
    case 2:
        *len = 5;
        memcpy(buffer, "world", 5);
        return FETCH_SUPPLIED;
    default:
        return FETCH_SUPPLY_END;
    }
}

static void
armed_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct armed *armed = context;

    armed->calls->fail_at(0);
    armed->failed = armed->calls->failed();
    outcome_done(armed->outcome, error, sentence, total_us);
}

/* The first fetch has been refused; the second begins, in which a call fails. */
static void
begin(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    static const struct fetch_sink sink = {
        .response = armed_response,
        .head = armed_head,
        .body = armed_body,
        .supply = armed_supply,
        .done = armed_done,
    };
    struct armed *armed = context;

    if (submit_request(armed->fetcher, armed->request, &sink, armed, &armed->id))
        armed->calls->fail_at(armed->n);
    else
        outcome_done(armed->outcome, error, sentence, total_us);
}

bool
armed_fetch(struct fetcher *fetcher, const struct armed_calls *calls, unsigned n,
            const struct request *request, struct outcome *o)
{
    static const struct fetch_sink sink = {.done = begin};
    struct armed armed = {
        .fetcher = fetcher, .calls = calls, .n = n, .request = request, .outcome = o};

    outcome_init(o);
    snprintf(o->url, sizeof(o->url), "%.*s", (int)request->url.len, request->url.ptr);
    ck_assert(
        submit_request(fetcher, &GET(OUTCOME_CLIENT, "file:///refused", ""), &sink, &armed, NULL));
    outcome_wait(o);
    ck_assert_uint_eq(o->dones, 1);
    ck_assert_uint_le(o->heads, 1);
    ck_assert_msg((o->error == FETCH_OK) == (o->sentence[0] == '\0'), "%s", o->sentence);
    return armed.failed;
}

unsigned
armed_walk(struct fetcher *fetcher, const struct armed_calls *calls, const struct request *request,
           const char *body)
{
    for (unsigned n = 1;; n++) {
        struct outcome o;
        bool failed = armed_fetch(fetcher, calls, n, request, &o);

        if (o.error == FETCH_OK)
            ck_assert_msg(o.body && strcmp(o.body, body) == 0, "call %u of %s: %s", n, o.url,
                          o.body ? o.body : "no body");
        else
            ck_assert_msg(failed && (o.error == FETCH_INTERNAL || o.error == FETCH_OVERLOADED),
                          "call %u of %s: %d, %s", n, o.url, o.error, o.sentence);
        outcome_free(&o);
        if (!failed)
            return n - 1;
    }
}
