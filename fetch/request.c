#include "fetch/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "fetch/deadline.h"
#include "fetch/headers.h"
#include "fetch/method.h"

static const char cancelled_sentence[] = "the fetch was cancelled";

void
request_update_stats(struct fetch_loop *loop)
{
    atomic_store_explicit(&loop->active, queue_active(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->waiting, queue_opening(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->queued, queue_queued(loop->queue), memory_order_relaxed);
}

static void
leave_paused(struct request *r)
{
    if (r->paused)
        TAILQ_REMOVE(&r->loop->paused, r, paused_link);
    r->paused = false;
}

void
request_finish(struct request *r, enum fetch_error error, const char *sentence)
{
    struct fetch_loop *loop = r->loop;

    pthread_mutex_lock(&loop->lock);
    registry_remove(&loop->registry, r->id);
    if (r->signalled) {
        TAILQ_REMOVE(&loop->signals, r, signal_link);
        loop->signal_count--;
    }
    pthread_mutex_unlock(&loop->lock);
    timers_disarm(&loop->timers, &r->timer);
    resolver_cancel(loop->resolver, &r->query);
    resolved_release(&r->query.resolved);
    queue_remove(loop->queue, &r->item);
    TAILQ_REMOVE(&loop->all, r, link);
    leave_paused(r);
    request_update_stats(loop);
    r->sink.done(r->context, error, error ? sentence : "", clock_monotonic_us() - r->submitted_us);
    transfer_clear(&r->transfer, loop->multi);
    target_free(&r->target);
    if (r->charged)
        memory_uncharge(loop->settings.config.memory, MEMORY_FETCHES, FETCH_BYTES);
    for (unsigned i = 0; i < r->redirects; i++)
        free(r->visited[i]);
    free(r->visited);
    free(r);
}

static void finish_with(struct request *r, enum fetch_error error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void
finish_with(struct request *r, enum fetch_error error, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    sentence_format(sentence, sizeof(sentence), format, args);
    va_end(args);
    request_finish(r, error, sentence);
}

/* A refused address is a matter of the request at first, and of the redirect later. */
static void
deny(struct request *r, const char *reason)
{
    if (r->redirects)
        finish_with(r, FETCH_BAD_REDIRECT, "the redirect was %s", reason);
    else
        request_finish(r, FETCH_DENIED, reason);
}

/* ---- time limits --------------------------------------------------------------------- */

static void
arm_timer(struct request *r)
{
    const char *what;

    timers_arm(&r->loop->timers, &r->timer, deadline_find(r, &what));
}

static void
enter_stage(struct request *r, enum request_stage stage)
{
    r->stage = stage;
    r->stage_since_us = clock_monotonic_us();
    arm_timer(r);
}

/* ---- one hop ------------------------------------------------------------------------- */

static bool
is_cancelled(const struct request *r)
{
    return atomic_load_explicit(&r->cancelled, memory_order_relaxed);
}

static void
on_hop(void *context, const struct fetch_hop *hop)
{
    struct request *r = context;

    if (r->sink.hop && !is_cancelled(r))
        r->sink.hop(r->context, hop);
}

static void
on_interim(void *context, unsigned status, struct span lines)
{
    struct request *r = context;

    if (r->sink.interim && !is_cancelled(r))
        r->sink.interim(r->context, status, lines);
}

/* A resume that came before this call-back began does not end the pause that it may begin. */
static enum fetch_flow
on_head(void *context, const struct fetch_head *head)
{
    struct request *r = context;

    if (is_cancelled(r))
        return FETCH_ABORT;
    atomic_store(&r->resume_receive, false);
    return r->sink.head(r->context, head);
}

static enum fetch_flow
on_body(void *context, const void *bytes, size_t len)
{
    struct request *r = context;

    if (is_cancelled(r))
        return FETCH_ABORT;
    atomic_store(&r->resume_receive, false);
    return r->sink.body(r->context, bytes, len);
}

static enum fetch_supply
on_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct request *r = context;

    if (is_cancelled(r))
        return FETCH_SUPPLY_FAILED;
    atomic_store(&r->resume_send, false);
    return r->sink.supply(r->context, buffer, size, len);
}

static void
on_stage(void *context, enum transfer_stage stage)
{
    struct request *r = context;

    if (stage >= TRANSFER_ANSWERING)
        queue_answered(r->loop->queue, &r->item);
    enter_stage(r, REQUEST_TRANSFER);
}

static void
on_pause(void *context)
{
    struct request *r = context;

    r->paused = true;
    TAILQ_INSERT_TAIL(&r->loop->paused, r, paused_link);
}

static void
on_hold(void *context)
{
    struct request *r = context;

    if (r->held)
        return;
    r->held = true;
    r->held_since_us = clock_monotonic_us();
    queue_pause(r->loop->queue, &r->item);
    arm_timer(r);
}

/* The loop ends it soon: not from inside libcurl. */
static void
on_complete(void *context)
{
    struct request *r = context;

    r->complete = true;
    arm_timer(r);
}

/* What final_url says: the URL as it was asked for, unless a redirect led elsewhere. */
static struct span
current_url(const struct request *r)
{
    return r->redirects ? span_str(r->target.text) : r->asked.url;
}

static void
connect_to(struct request *r, struct resolved *addresses)
{
    struct fetch_loop *loop = r->loop;
    struct transfer_owner owner = {
        .context = r,
        .hop = on_hop,
        .interim = on_interim,
        .head = on_head,
        .body = on_body,
        .supply = on_supply,
        .stage = on_stage,
        .pause = on_pause,
        .begin_hold = on_hold,
        .complete = on_complete,
        .received = &loop->received,
        .poller = &loop->poller,
        .turn = &loop->turn,
        .connections = &loop->connections,
    };
    bool started;

    if (!r->charged && r->sink.begin)
        r->sink.begin(r->context);
    if (!r->charged && !memory_charge(loop->settings.config.memory, MEMORY_FETCHES, FETCH_BYTES)) {
        request_finish(r, FETCH_OVERLOADED, "there is no memory for another fetch now; try again");
        return;
    }
    r->charged = true;
    started = transfer_start(&r->transfer, loop->multi, &loop->settings, &r->target, &r->route,
                             addresses, &r->asked, !r->no_credentials, current_url(r), &owner);
    if (!started && memory_reclaim(loop->settings.config.memory, FETCH_BYTES))
        started = transfer_start(&r->transfer, loop->multi, &loop->settings, &r->target, &r->route,
                                 addresses, &r->asked, !r->no_credentials, current_url(r), &owner);
    if (started)
        enter_stage(r, REQUEST_TRANSFER);
    else
        request_finish(r, FETCH_INTERNAL, "out of memory");
}

/* Keeps of a name's addresses those that may be connected to. NULL without memory. */
static struct resolved *
keep_permitted(const struct address_policy *policy, const struct resolved *from)
{
    struct resolved *kept = resolved_create(from->count);

    if (!kept)
        return NULL;
    kept->count = 0;
    for (size_t i = 0; i < from->count; i++)
        if (address_policy_permits(policy, &from->list[i].any))
            kept->list[kept->count++] = from->list[i];
    return kept;
}

/* The name stands for these addresses. The reference is dropped. */
static void
connect_to_permitted(struct request *r, struct resolved *addresses)
{
    struct resolved *kept;
    char sentence[SENTENCE_MAX];

    if (r->route.by_operator) {
        connect_to(r, addresses);
        resolved_release(&addresses);
        return;
    }
    kept = keep_permitted(r->loop->settings.config.addresses, addresses);
    if (!kept) {
        request_finish(r, FETCH_INTERNAL, "out of memory");
    } else if (kept->count == 0) {
        deny(r, sentence_refuse(sentence, sizeof(sentence), r->loop->settings.config.addresses,
                                r->route.host, &addresses->list[0]));
    } else {
        connect_to(r, kept);
    }
    resolved_release(&kept);
    resolved_release(&addresses);
}

void
request_take_addresses(struct request *r)
{
    struct resolved *addresses = r->query.resolved;

    r->query.resolved = NULL;
    if (r->query.error)
        finish_with(r, r->query.error == EAI_MEMORY ? FETCH_INTERNAL : FETCH_RESOLVE_FAILED,
                    "%s cannot be resolved: %s", r->route.host, gai_strerror(r->query.error));
    else
        connect_to_permitted(r, addresses);
}

/* With its turn, and r->target in place. */
static void
start_hop(struct request *r)
{
    struct fetch_loop *loop = r->loop;
    const struct settings *settings = &loop->settings;
    struct resolved *one;
    union address literal;

    r->route = settings_route(settings, &r->target);
    if (!r->route.own_port && !settings_permit_port(settings, r->target.port)) {
        char sentence[SENTENCE_MAX];

        snprintf(sentence, sizeof(sentence),
                 "refused: port %u of %s is for another protocol (allow it with --allow-port %u)",
                 r->target.port, r->target.host, r->target.port);
        deny(r, sentence);
        return;
    }
    /* Behind a proxy a name is the proxy's to resolve, but an address says itself what it is. */
    if (r->route.proxied && r->target.literal &&
        !address_policy_permits(settings->config.addresses, &r->target.address.any)) {
        char sentence[SENTENCE_MAX];

        deny(r, sentence_refuse(sentence, sizeof(sentence), settings->config.addresses,
                                r->target.host, &r->target.address));
        return;
    }
    if (address_parse(r->route.host, r->route.port, &literal)) {
        one = resolved_create(1);
        if (!one) {
            request_finish(r, FETCH_INTERNAL, "out of memory");
            return;
        }
        one->list[0] = literal;
        connect_to_permitted(r, one);
        return;
    }
    enter_stage(r, REQUEST_RESOLVING);
    switch (resolver_lookup(loop->resolver, &r->query, &r->asked.client, r->route.host)) {
    case RESOLVER_ANSWERED:
        request_take_addresses(r);
        break;
    case RESOLVER_PENDING:
        break;
    case RESOLVER_NO_MEMORY:
        request_finish(r, FETCH_INTERNAL, "out of memory");
        break;
    }
}

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

/* Queues a hop to r->target. False if there is no memory; the request has ended then. */
static bool
wait_for_turn(struct request *r)
{
    if (!queue_add(r->loop->queue, &r->item, &r->asked.client, r->target.origin)) {
        request_finish(r, FETCH_INTERNAL, "out of memory");
        return false;
    }
    enter_stage(r, REQUEST_QUEUED);
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
        finish_with(r, error == FETCH_BAD_URL ? FETCH_BAD_REDIRECT : error,
                    "%s redirects to \"%.100s\": %s", host, r->transfer.head.location, why);
        return;
    }
    if (was_visited(r, next.text)) {
        finish_with(r, FETCH_BAD_REDIRECT, "redirected in a circle, back to %.300s", next.text);
        target_free(&next);
        return;
    }
    if (r->redirects >= max) {
        finish_with(r, FETCH_BAD_REDIRECT, "redirected more than %u times, last by %s", max, host);
        target_free(&next);
        return;
    }
    leave_paused(r);
    transfer_clear(&r->transfer, loop->multi);
    /* What the client sent for one origin is no other's business (RFC 9110 section 15.4). */
    if (strcmp(next.origin, r->target.origin) != 0)
        r->no_credentials = true;
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
        finish_with(r, errno == EMFILE ? FETCH_OVERLOADED : FETCH_INTERNAL,
                    "the connection to %s: %s", r->target.host, strerror(errno));
        return;
    }
    r->sink.connected(r->context, fd);
    request_finish(r, FETCH_OK, "");
}

void
request_take_result(struct request *r, CURLcode code)
{
    enum fetch_error error;

    if (is_cancelled(r)) {
        request_finish(r, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (r->transfer.unclean) {
        if (transfer_restart(&r->transfer, r->loop->multi))
            enter_stage(r, REQUEST_TRANSFER);
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
        deny(r, r->transfer.sentence);
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

/* Ends the time of a pause. */
static void
end_hold(struct request *r)
{
    r->held = false;
    r->held_us += clock_monotonic_us() - r->held_since_us;
    queue_unpause(r->loop->queue, &r->item);
    arm_timer(r);
}

void
request_take_signal(struct request *r)
{
    bool receive = atomic_exchange(&r->resume_receive, false);
    bool send = atomic_exchange(&r->resume_send, false);
    CURLcode code;

    if (is_cancelled(r)) {
        request_finish(r, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (!r->held || r->complete)
        return;
    code = transfer_resume(&r->transfer, receive, send);
    if (!transfer_is_held(&r->transfer))
        end_hold(r);
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
        start_hop(r);
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
    if (is_cancelled(r)) {
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
        finish_with(r, FETCH_TIMED_OUT, "%s: %s took too long", r->target.host, what);
}
