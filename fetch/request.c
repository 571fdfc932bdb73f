#include "fetch/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "fetch/deadline.h"
#include "fetch/headers.h"
#include "fetch/method_rules.h"
#include "fetch/request_parts.h"

static const char cancelled_sentence[] = "the fetch was cancelled";

/* ---- redirects ----------------------------------------------------------------------- */

static bool
was_visited(const struct request *r, const char *url)
{
    for (unsigned i = 0; i < r->redirects; i++)
        if (strcmp(r->visited[i], url) == 0)
            return true;
    return strcmp(r->target.text, url) == 0;
}

/* Moves on to `next`, whose content it takes. False without memory. */
static bool
move_on(struct request *r, struct target *next)
{
    char **longer = realloc(r->visited, (r->redirects + 1) * sizeof(*longer));

    if (!longer)
        return false;
    r->visited = longer;
    r->visited[r->redirects++] = r->target.text;
    r->target.text = NULL;
    target_free(&r->target);
    r->target = *next;
    *next = (struct target){0};
    return true;
}

/* It has been queued: reports if it cannot begin now. */
static void
report_wait(const struct request *r)
{
    static const enum fetch_limit limits[] = {
        [QUEUE_SLOT] = FETCH_LIMIT_WAITING,
        [QUEUE_CLIENT] = FETCH_LIMIT_PER_CLIENT,
        [QUEUE_ORIGIN] = FETCH_LIMIT_PER_ORIGIN,
        [QUEUE_CLIENT_AT_ORIGIN] = FETCH_LIMIT_CLIENT_AT_ORIGIN,
    };
    const struct fetch_config *config = &r->loop->settings.config;
    enum queue_wait wait = queue_find_wait(r->loop->queue, &r->item);

    if (wait != QUEUE_TURN && config->queued)
        config->queued(config->context, &(struct fetch_queued){.limit = limits[wait],
                                                               .client = r->asked.client,
                                                               .origin = r->target.origin});
}

/* Queues a hop to r->target. False if there is no memory; the request has ended then. */
static bool
wait_for_turn(struct request *r)
{
    if (!queue_add(r->loop->queue, &r->item, &r->asked.client, r->target.origin)) {
        request_finish(r, FETCH_INTERNAL, "out of memory");
        return false;
    }
    report_wait(r);
    request_enter_stage(r, REQUEST_QUEUED);
    return true;
}

static void
redirect(struct request *r)
{
    struct fetch_loop *loop = r->loop;
    unsigned max = loop->settings.config.max_redirects;
    struct target next;
    char why[256], host[HOST_MAX + 1];
    enum fetch_error error;

    snprintf(host, sizeof(host), "%s", r->target.host);
    error = target_follow(&next, &r->target, r->transfer.head.location, why, sizeof(why));
    if (error) {
        request_finish_with(r, error == FETCH_BAD_URL ? FETCH_BAD_REDIRECT : error,
                            "%s redirects to \"%.100s\": %s", host, r->transfer.head.location, why);
        return;
    }
    if (was_visited(r, next.text)) {
        request_finish_with(r, FETCH_BAD_REDIRECT, "redirected in a circle, back to %.300s",
                            next.text);
        target_free(&next);
        return;
    }
    if (r->redirects >= max) {
        request_finish_with(r, FETCH_BAD_REDIRECT, "redirected more than %u times, last by %s", max,
                            host);
        target_free(&next);
        return;
    }
    request_leave_paused(r);
    transfer_clear(&r->transfer, loop->multi);
    /* What the client sent for one origin is no other's business (RFC 9110 section 15.4). */
    if (strcmp(next.origin, r->target.origin) != 0)
        r->left_origin = true;
    if (!move_on(r, &next)) {
        target_free(&next);
        request_finish(r, FETCH_INTERNAL, "out of memory");
        return;
    }
    /* The next hop waits for a connection and an answer again, so it needs another kind of slot. */
    queue_remove(loop->queue, &r->item);
    wait_for_turn(r);
}

/* Hands the socket over. */
static void
finish_connected(struct request *r)
{
    int fd = transfer_take_socket(&r->transfer);

    if (fd < 0) {
        request_finish_with(r, errno == EMFILE ? FETCH_OVERLOADED : FETCH_INTERNAL,
                            "a connection cannot be taken over: %s", strerror(errno));
        return;
    }
    r->sink.connected(r->context, fd);
    request_finish(r, FETCH_OK, "");
}

void
request_take_result(struct request *r, CURLcode code)
{
    enum fetch_error error;

    if (request_is_cancelled(r)) {
        request_finish(r, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (r->transfer.unclean) {
        if (transfer_restart(&r->transfer, r->loop->multi))
            request_enter_stage(r, REQUEST_TRANSFER);
        else
            request_finish(r, FETCH_INTERNAL, "out of memory");
        return;
    }
    /* The rest of a redirect's answer is of no interest, be it broken or endless. */
    if (r->transfer.redirecting) {
        redirect(r);
        return;
    }
    error = transfer_evaluate(&r->transfer, code);
    if (!error && r->asked.flags & FETCH_CONNECT_ONLY)
        finish_connected(r);
    else if (error == FETCH_DENIED)
        request_deny(r, r->transfer.sentence);
    else
        request_finish(r, error, r->transfer.sentence);
}

void
request_resume_paused(struct fetch_loop *loop)
{
    struct request_list now = TAILQ_HEAD_INITIALIZER(now);
    struct request *r;

    loop->turn++;
    TAILQ_CONCAT(&now, &loop->paused, paused_link);
    while ((r = TAILQ_FIRST(&now))) {
        CURLcode code;

        TAILQ_REMOVE(&now, r, paused_link);
        r->paused = false;
        code = transfer_next_turn(&r->transfer);
        if (code)
            request_take_result(r, code);
    }
}

/* ---- signals from other threads ------------------------------------------------------ */

void
request_take_signal(struct request *r)
{
    bool receive = atomic_exchange(&r->resume_receive, false);
    bool send = atomic_exchange(&r->resume_send, false);
    CURLcode code;

    if (request_is_cancelled(r)) {
        request_finish(r, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (!r->held || r->complete)
        return;
    code = transfer_resume(&r->transfer, receive, send);
    if (!transfer_is_held(&r->transfer)) {
        request_end_hold(r);
        request_arm_timer(r);
    }
    if (code)
        request_take_result(r, code);
}

/* ---- turns --------------------------------------------------------------------------- */

void
request_start_next(struct fetch_loop *loop)
{
    struct queue_item *item;

    while ((item = queue_next(loop->queue))) {
        struct request *r = container_of(item, struct request, item);

        if (r->redirects == 0)
            atomic_fetch_add_explicit(&loop->started, 1, memory_order_relaxed);
        request_start_hop(r);
    }
}

/* Ends the fetch with the least claim to wait: one of the client that has the most queued. */
static void
displace(struct fetch_loop *loop)
{
    struct queue_item *last = queue_last_of_longest(loop->queue);

    atomic_fetch_add_explicit(&loop->displaced, 1, memory_order_relaxed);
    request_finish(container_of(last, struct request, item), FETCH_DISPLACED,
                   "too many fetches are queued, and no client has more of them than this one; try "
                   "again");
}

void
request_begin(struct request *r)
{
    struct fetch_loop *loop = r->loop;
    char why[SENTENCE_MAX];
    enum fetch_error error;

    r->begun = true;
    if (request_is_cancelled(r)) {
        request_finish(r, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    error = target_parse(&r->target, r->asked.url, why, sizeof(why));
    if (!error)
        error = method_check(&r->asked, why, sizeof(why));
    if (!error)
        error = headers_check(&r->asked, why, sizeof(why));
    if (error) {
        request_finish(r, error, why);
        return;
    }
    if (!wait_for_turn(r))
        return;
    request_start_next(loop);
    if (queue_queued(loop->queue) > loop->settings.config.max_queued)
        displace(loop);
}

/* Does it look a name up or connect? One that waits for its turn has not begun. */
static bool
is_unconnected(const struct request *r)
{
    return r->stage == REQUEST_RESOLVING ||
           (r->stage == REQUEST_TRANSFER && r->transfer.stage == TRANSFER_CONNECTING);
}

void
request_check_time(struct request *r, int64_t now_us)
{
    const char *what;
    /* Bytes that came meanwhile have moved the deadline without touching the timer. */
    int64_t due = deadline_find(r, &what);

    if (r->complete)
        request_take_result(r, CURLE_OK);
    else if (due > now_us)
        timers_arm(&r->loop->timers, &r->timer, due);
    else if (r->stage == REQUEST_TRANSFER && r->transfer.redirecting && deadline_of_all(r) > now_us)
        redirect(r);
    else
        request_finish_with(r, is_unconnected(r) ? FETCH_CONNECT_TIMED_OUT : FETCH_TIMED_OUT,
                            "%s: %s took too long", r->target.host, what);
}
