#include "server/rpc/front_follow.h"

#include <string.h>

#include "base/container_of.h"
#include "server/rpc/front_redirect.h"
#include "server/rpc/front_target.h"
#include "server/rpc/front_way.h"

/* Starts an exchange. True: it has ended. */
static bool
start(struct front_exchange *front)
{
    const char *why = "";
    enum failure failure = front_target_set(front, &why);

    front->stage = FRONT_PASSES;
    if (!failure)
        return exchange_start(&front->exchange);
    exchange_refuse(&front->exchange, failure, why);
    return true;
}

/* Has the request had the time of a fetch already, as the next exchange has it? */
static bool
is_late(struct front_exchange *front)
{
    const struct config *config = service_config(service_of(front_request(front)));
    const int64_t most_us = config->options->fetch_timeout;

    return most_us && proxy_now_us(front->exchange.proxy) - front->request.arrived_us > most_us;
}

/* The exchange has ended without an answer to the client: begins the next one, or fails. */
static bool
go_on(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;
    const struct exchange ended = *exchange;

    if (!front->why && is_late(front)) {
        front->why = FAILURE_TIMEOUT;
        front->sentence = "the redirects took too long";
    }
    if (front->why) {
        front->stage = FRONT_PASSES;
        exchange_refuse(exchange, front->why, front->sentence);
        return true;
    }
    front_way_count_fetch(front);
    exchange_end(exchange);
    memset(exchange, 0, sizeof(*exchange));
    exchange->proxy = ended.proxy;
    exchange->front = ended.front;
    exchange->worker = ended.worker;
    /* Unless the client bypasses the cache the front has, to find where it is. */
    exchange->before =
        ended.outcome == OUTCOME_BYPASS && front->way->restarts ? OUTCOME_COALESCED : ended.outcome;
    exchange->request = &front->request;
    exchange->as_of_us = proxy_now_us(ended.proxy);
    return start(front);
}

/*
 * Runs exchanges until one waits, or one that is answered has ended, by the first of these
 * functions and then by go_on(). True: it has ended, and the request may be gone unless the
 * procedure runs.
 */
static bool
run_exchanges(struct front_exchange *front, bool (*begin)(struct front_exchange *front))
{
    bool redirected, ended;

    do {
        redirected = false;
        front->redirected = &redirected;
        ended = begin(front);
        begin = go_on;
    } while (ended && redirected);
    if (!ended)
        front->redirected = NULL;
    return ended;
}

bool_t
front_start(struct front_exchange *front, void *result)
{
    bool ended;

    front->result = result;
    ended = run_exchanges(front, start);
    front->result = NULL;
    if (ended)
        return front->has_result;
    /* Wake-ups are posted to this very thread, so none can come before the deferral. */
    rpc_request_defer(front_request(front));
    return FALSE;
}

/* The exchange has ended: run_exchanges() goes on, if it has called this. */
static void
end_leaving(struct front_exchange *front)
{
    front->stage = FRONT_STARTS;
    if (front->redirected)
        *front->redirected = true;
    else
        (void)run_exchanges(front, go_on);
}

/* The response is not the one that the client gets. */
static void
leave(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;

    front->stage = FRONT_LEAVES;
    if (exchange_is_complete(exchange) || exchange_cancel(exchange))
        end_leaving(front);
}

static void
run_exchange(struct net_task *task)
{
    exchange_run(&container_of(task, struct front_exchange, task)->exchange);
}

void
front_wake(struct exchange *exchange)
{
    struct front_exchange *front = front_of(exchange);

    front->task.run = run_exchange;
    net_worker_post(rpc_request_worker(front_request(front)), &front->task);
}

bool
front_is_bounded(struct exchange *exchange)
{
    return rpc_request_is_bounded(front_request(front_of(exchange)));
}

/* ---- the front's calls ----------------------------------------------------------------------- */

void
front_head(struct exchange *exchange)
{
    struct front_exchange *front = front_of(exchange);
    struct span location = exchange_redirect(exchange);

    if (location.len) {
        front_redirect(front, location);
        leave(front);
    } else if (exchange_is_unasked(exchange)) {
        front->why = FAILURE_ORIGIN;
        front->sentence = exchange->object->status == 206
                              ? "the origin sent a part of the page (status 206) unasked"
                              : "the origin sent \"not modified\" (status 304) unasked";
        leave(front);
    } else {
        front->redirected = NULL;
        front_begin_content(front);
        front_version_of(front)->answer(front);
    }
}

void
front_more(struct exchange *exchange)
{
    front_version_of(front_of(exchange))->more(exchange);
}

void
front_fail(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct front_exchange *front = front_of(exchange);

    if (front->stage == FRONT_LEAVES) {
        end_leaving(front);
        return;
    }
    if (front->way && (why == FAILURE_DENIED || why == FAILURE_BAD_URL))
        why = FAILURE_REDIRECT;
    if (front->way || front->why)
        sentence = failure_for_client(why, sentence);
    front->redirected = NULL;
    front_version_of(front)->fail(exchange, why, sentence);
}
