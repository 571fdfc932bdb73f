#include "fetch/fetching.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "fetch/headers.h"

static const char cancelled_sentence[] = "the fetch was cancelled";

/* ---- numbers ------------------------------------------------------------------------- */

static int
compare_ids(const struct fetch *a, const struct fetch *b)
{
    return (a->id > b->id) - (a->id < b->id);
}

static int
compare_deadlines(const struct fetch *a, const struct fetch *b)
{
    return a->due_us != b->due_us ? (a->due_us > b->due_us) - (a->due_us < b->due_us)
                                  : compare_ids(a, b);
}

TREE_GENERATE(fetch_tree, fetch, by_id, compare_ids)
TREE_GENERATE(deadline_tree, fetch, by_deadline, compare_deadlines)

void
fetching_add(struct fetch_loop *loop, struct fetch *f)
{
    f->id = ++loop->last_id;
    RB_INSERT(fetch_tree, &loop->by_id, f);
}

struct fetch *
fetching_find(struct fetch_loop *loop, uint64_t id)
{
    struct fetch *f = RB_ROOT(&loop->by_id);

    while (f && f->id != id)
        f = id < f->id ? RB_LEFT(f, by_id) : RB_RIGHT(f, by_id);
    return f;
}

/* ---- stages and the end --------------------------------------------------------------------- */

void
fetching_update_stats(struct fetch_loop *loop)
{
    atomic_store_explicit(&loop->active, queue_active(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->waiting, queue_opening(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->queued, queue_queued(loop->queue), memory_order_relaxed);
}

static void
disarm_timer(struct fetch *f)
{
    if (f->due_us)
        RB_REMOVE(deadline_tree, &f->loop->by_deadline, f);
    f->due_us = 0;
}

static void
leave_paused(struct fetch *f)
{
    if (f->transfer.flow == TRANSFER_WAITING)
        TAILQ_REMOVE(&f->loop->paused, f, paused_link);
}

static void
end_hold(struct fetch *f)
{
    if (!f->held_since_us)
        return;
    f->held_us += clock_monotonic_us() - f->held_since_us;
    f->held_since_us = 0;
    memory_uncharge(f->loop->memory, MEMORY_FETCHES, FETCH_BUFFER_BYTES);
}

/* What is sent of the request's fields. */
static struct span
fields_of(const struct fetch *f)
{
    const struct consumer *c = &f->consumer;

    return c->sink.fields ? c->sink.fields(c->context) : c->request->fields;
}

/* Ends the attempt, of which nothing is left. */
static void
end_attempt(struct fetch *f)
{
    struct fetch_loop *loop = f->loop;

    transfer_clear(&f->transfer);
    target_free(&f->target);
    end_hold(f);
    if (f->charged)
        memory_uncharge(loop->memory, MEMORY_FETCHES, f->charged);
    f->charged = 0;
    f->held_us = 0;
}

/* The attempt waits for nothing any more. */
static void
stop_attempt(struct fetch *f)
{
    struct fetch_loop *loop = f->loop;

    disarm_timer(f);
    resolver_cancel(loop->resolver, &f->query);
    resolved_release(&f->query.resolved);
    queue_remove(loop->queue, &f->item);
    leave_paused(f);
}

static void begin_attempt(struct fetch *f);

/* The request is sent once more: to another member unless the last attempt REPEATS. */
static void
go_on(struct fetch *f, enum attempt_stage last, enum fetch_error error, const char *sentence)
{
    const int64_t now_us = clock_monotonic_us();

    stop_attempt(f);
    if (last == ATTEMPT_PASSED_OVER) {
        error = FETCH_ORIGIN_BROKE;
        sentence = "the status is 502, 503 or 504";
    }
    if (last != ATTEMPT_REPEATS)
        atomic_fetch_add_explicit(&f->loop->retried, 1, memory_order_relaxed);
    if (last != ATTEMPT_REPEATS && f->consumer.sink.again)
        f->consumer.sink.again(f->consumer.context, error, sentence, now_us - f->submitted_us);
    end_attempt(f);
    f->submitted_us = now_us;
    begin_attempt(f);
}

void
fetching_finish(struct fetch *f, enum fetch_error error, const char *sentence)
{
    const struct attempt_end end = {
        .error = error,
        .sentence = sentence,
        .had_turn = f->charged || error == FETCH_OVERLOADED,
        .supplied = f->transfer.upload.taken != 0,
        .continues = f->consumer.continued != NULL,
    };
    struct fetch_loop *loop = f->loop;
    enum attempt_stage stage = f->consumer.attempt.stage;

    if (attempt_goes_on(&f->consumer.attempt, f->consumer.request, &end, clock_monotonic_us())) {
        go_on(f, stage, error, sentence);
        return;
    }
    if (f->consumer.attempt.next.refused)
        atomic_fetch_add_explicit(&loop->refused, 1, memory_order_relaxed);
    pthread_mutex_lock(&loop->lock);
    RB_REMOVE(fetch_tree, &loop->by_id, f);
    if (f->signalled) {
        TAILQ_REMOVE(&loop->signals, f, signal_link);
        loop->signal_count--;
    }
    pthread_mutex_unlock(&loop->lock);
    stop_attempt(f);
    TAILQ_REMOVE(&loop->all, f, link);
    fetching_update_stats(loop);
    f->consumer.sink.done(f->consumer.context, error, error ? sentence : "",
                          clock_monotonic_us() - f->submitted_us);
    end_attempt(f);
    continued_free(&f->consumer.continued);
    request_release(&f->consumer.request);
    fetch_settings_release(&f->settings);
    free(f);
}

static void
finish_with(struct fetch *f, enum fetch_error error, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    sentence_format(sentence, sizeof(sentence), format, args);
    va_end(args);
    fetching_finish(f, error, sentence);
}

/* ---- time limits --------------------------------------------------------------------- */

/* Is its answer complete, though not its request? */
static bool
is_complete(const struct fetch *f)
{
    return f->stage == FETCH_TRANSFER && f->transfer.stage == TRANSFER_COMPLETE;
}

/*
 * The end of the whole fetch: the total limit and the pauses that are over. INT64_MAX: there is
 * none any more.
 */
static int64_t
find_end(const struct fetch *f)
{
    if (f->consumer.request->flags & REQUEST_STREAMS && f->stage == FETCH_TRANSFER &&
        f->transfer.stage == TRANSFER_BODY)
        return INT64_MAX;
    return f->submitted_us + f->settings->config.total_timeout_us + f->held_us;
}

/* Is a peer asked, which shows at once that it has the request? */
static bool
asks_peer(const struct fetch *f)
{
    return f->consumer.attempt.peers != NULL;
}

static int64_t
longest_silence(const struct fetch *f, int64_t limit_us)
{
    return asks_peer(f) && limit_us > ORIGIN_PEERS_SILENCE_US ? ORIGIN_PEERS_SILENCE_US : limit_us;
}

/* Between parts of a head. A peer that has the request waits for its own origin meanwhile. */
static int64_t
longest_pause(const struct fetch *f)
{
    const struct fetch_config *config = &f->settings->config;

    return config->stall_timeout_us + (asks_peer(f) ? config->resolve_timeout_us +
                                                          config->connect_timeout_us +
                                                          config->first_byte_timeout_us
                                                    : 0);
}

/* The limit of the phase that a transfer is in. */
static int64_t
find_transfer_deadline(const struct fetch *f, const char **what)
{
    const struct fetch_config *config = &f->settings->config;

    switch (f->transfer.stage) {
    case TRANSFER_CONNECTING:
    case TRANSFER_UNCLEAN:
        *what = "connecting";
        return f->stage_since_us + longest_silence(f, config->connect_timeout_us);
    case TRANSFER_SENDING:
        *what = "sending the body of the request";
        return f->transfer.last_byte_us + config->stall_timeout_us;
    case TRANSFER_ASKED:
        *what = "waiting for the first byte of the answer";
        return f->stage_since_us + longest_silence(f, config->first_byte_timeout_us);
    case TRANSFER_ANSWERING:
        *what = "waiting for more of the headers";
        return f->transfer.last_byte_us + longest_pause(f);
    case TRANSFER_BODY:
    case TRANSFER_COMPLETE:
    case TRANSFER_ENDED:
        break;
    }
    *what = "waiting for more of the body";
    return f->transfer.last_byte_us + config->stall_timeout_us;
}

/* The server of the member that is asked. */
static const struct origin_server *
attempt_server(const struct fetch *f)
{
    return attempt_member(&f->consumer.attempt, f->consumer.request)->server;
}

#define LOOK_AGAIN_US 100000

static const char busy[] = "waiting for a place at the origin";

/* The member has a limit, so that others may serve the request sooner. */
static bool
waits_for_member(const struct fetch *f)
{
    return f->consumer.attempt.counted && origin_server_fetch_limit(attempt_server(f));
}

/* May another member have the rest of the fetch, if this one is silent? */
static bool
may_be_left(const struct fetch *f)
{
    return f->stage != FETCH_TRANSFER || f->transfer.stage < TRANSFER_BODY ||
           (f->consumer.continued && f->transfer.stage == TRANSFER_BODY && !f->held_since_us &&
            f->transfer.last_byte_us + ORIGIN_PEERS_SILENCE_US < f->loop->place.turn_us);
}

/* Have other requests found that the peer has failed, or the news for it (peer_news.h)? */
static bool
has_failed(const struct fetch *f)
{
    return asks_peer(f) && !f->consumer.attempt.choice.trial && may_be_left(f) &&
           atomic_load(&attempt_server(f)->left_until_us);
}

/*
 * The next time limit (struct fetch_config), INT64_MAX if there is none, and what will have taken
 * too long then (static). Received bytes move it later without a call.
 */
static int64_t
find_deadline(const struct fetch *f, const char **what)
{
    const struct fetch_config *config = &f->settings->config;
    int64_t end = find_end(f);
    int64_t due = end;

    /* Due at once, also if its consumer begins a pause before the loop has ended it. */
    if (is_complete(f)) {
        *what = "its end";
        return f->submitted_us;
    }
    if (f->held_since_us) {
        *what = "the pause by its consumer";
        return config->pause_timeout_us ? f->held_since_us + config->pause_timeout_us : INT64_MAX;
    }
    if (has_failed(f)) {
        *what = "the peer, which has failed,";
        return f->submitted_us;
    }
    if (f->stage == FETCH_RESOLVING) {
        due = f->stage_since_us + config->resolve_timeout_us;
        *what = "resolving the name";
    } else if (f->stage == FETCH_TRANSFER) {
        due = find_transfer_deadline(f, what);
        if (asks_peer(f) && due > f->loop->place.turn_us + LOOK_AGAIN_US)
            due = f->loop->place.turn_us + LOOK_AGAIN_US;
    } else if (f->stage == FETCH_QUEUED && waits_for_member(f)) {
        due = f->stage_since_us +
              attempt_route(&f->consumer.attempt, f->consumer.request)->queue_us;
        *what = busy;
    }
    if (due < end)
        return due;
    *what = f->stage == FETCH_QUEUED ? "waiting for a turn" : "the whole fetch";
    return end;
}

static void
arm_timer_at(struct fetch *f, int64_t due_us)
{
    disarm_timer(f);
    f->due_us = due_us;
    RB_INSERT(deadline_tree, &f->loop->by_deadline, f);
}

static void
arm_timer(struct fetch *f)
{
    const char *what;

    arm_timer_at(f, find_deadline(f, &what));
}

static void
enter_stage(struct fetch *f, enum fetch_stage stage, int64_t now_us)
{
    f->stage = stage;
    f->stage_since_us = now_us;
    arm_timer(f);
}

/* ---- call-backs of the transfer ------------------------------------------------------ */

static void
begin_hold(struct fetch *f)
{
    /* A client that is slow to send takes no slot of the fetches that wait for their servers. */
    queue_stream(f->loop->queue, &f->item);
    if (f->held_since_us)
        return;
    f->held_since_us = clock_monotonic_us();
    memory_charge_anyway(f->loop->memory, MEMORY_FETCHES, FETCH_BUFFER_BYTES);
    arm_timer(f);
}

void
fetching_take_change(struct consumer *consumer, enum transfer_change change)
{
    struct fetch *f = container_of(consumer, struct fetch, consumer);
    const enum transfer_stage stage = f->transfer.stage;

    switch (change) {
    case TRANSFER_HAS_STAGE:
        if (stage >= TRANSFER_ANSWERING)
            queue_stream(f->loop->queue, &f->item);
        else if (stage == TRANSFER_ASKED)
            queue_reopen(f->loop->queue, &f->item);
        /* The loop ends one that is complete: not from inside libcurl. */
        enter_stage(f, FETCH_TRANSFER, f->transfer.last_byte_us);
        break;
    case TRANSFER_IS_HELD:
        begin_hold(f);
        break;
    case TRANSFER_RESTS:
        TAILQ_INSERT_TAIL(&f->loop->paused, f, paused_link);
        break;
    }
}

/* ---- the way to its connection ------------------------------------------------------ */

static bool
charge(struct fetch *f)
{
    bool supplied = f->consumer.request->body.kind == REQUEST_BODY_SUPPLIED;
    size_t bytes = FETCH_BYTES + (supplied ? FETCH_BUFFER_BYTES : 0);

    if (!memory_charge(f->loop->memory, MEMORY_FETCHES, bytes))
        return false;
    f->charged = bytes;
    return true;
}

static bool
start_transfer(struct fetch *f, struct resolved *addresses)
{
    struct transfer_order order = {
        .settings = f->settings,
        .target = &f->target,
        .route = &f->route,
        .addresses = addresses,
        .headers.fields = fields_of(f),
        .peers = f->consumer.attempt.peers,
    };
    struct attempt_text text;
    char name[PEER_NAME_SIZE];
    struct buf proof;
    bool started;

    /* To an upstream proxy the URL is the target. */
    if (asks_peer(f))
        order.headers.host = origin_route_authority(request_fetched_url(f->consumer.request));
    else if (!f->route.proxied || f->target.https)
        order.headers.host = attempt_host(f->consumer.request, &text);
    buf_init(&proof, ORIGIN_ROUTE_URL + PEER_VALUE_SIZE);
    started =
        !order.peers || attempt_write_proof(&f->consumer.attempt, f->consumer.request, &proof);
    order.headers.proof = buf_span(&proof);
    if (order.peers)
        order.headers.client =
            attempt_name_client(&f->consumer.attempt, f->consumer.request, name);
    started = started && transfer_start(&f->transfer, &f->loop->place, &f->consumer, &order);
    buf_free(&proof);
    return started;
}

static void
connect_to(struct fetch *f, struct resolved *addresses)
{
    struct memory_account *memory = f->loop->memory;

    if (f->consumer.sink.begin)
        f->consumer.sink.begin(f->consumer.context);
    if (!charge(f)) {
        fetching_finish(f, FETCH_OVERLOADED, "there is no memory for another fetch now; try again");
        return;
    }
    if (start_transfer(f, addresses) ||
        (memory_reclaim(memory, FETCH_BYTES) && start_transfer(f, addresses)))
        enter_stage(f, FETCH_TRANSFER, f->transfer.last_byte_us);
    else
        fetching_finish(f, FETCH_INTERNAL, "out of memory");
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

static void
refuse_address(struct fetch *f, const char *host, const union address *address)
{
    char sentence[SENTENCE_MAX];

    fetching_finish(
        f, FETCH_DENIED,
        sentence_refuse(sentence, sizeof(sentence), f->settings->config.addresses, host, address));
}

/* The name stands for these addresses. The reference is dropped. */
static void
connect_to_permitted(struct fetch *f, struct resolved *addresses)
{
    struct resolved *kept;

    if (f->consumer.request->flags & REQUEST_RESOLVE_ONLY) {
        resolved_release(&addresses);
        fetching_finish(f, FETCH_OK, "");
        return;
    }
    if (f->route.by_operator) {
        connect_to(f, addresses);
        resolved_release(&addresses);
        return;
    }
    kept = keep_permitted(f->settings->config.addresses, addresses);
    if (!kept) {
        fetching_finish(f, FETCH_INTERNAL, "out of memory");
    } else if (kept->count == 0) {
        refuse_address(f, f->route.host, &addresses->list[0]);
    } else {
        connect_to(f, kept);
    }
    resolved_release(&kept);
    resolved_release(&addresses);
}

void
fetching_take_addresses(struct fetch *f)
{
    struct resolved *addresses = f->query.resolved;

    f->query.resolved = NULL;
    if (f->query.error)
        finish_with(f, f->query.error == EAI_MEMORY ? FETCH_INTERNAL : FETCH_RESOLVE_FAILED,
                    "%s cannot be resolved: %s", f->route.host, gai_strerror(f->query.error));
    else
        connect_to_permitted(f, addresses);
}

/* Has the operator chosen where the request leads? */
static bool
is_configured(const struct fetch *f)
{
    return asks_peer(f) || f->consumer.request->route ||
           f->consumer.request->flags & REQUEST_CONFIGURED;
}

static void
start_attempt(struct fetch *f)
{
    struct fetch_loop *loop = f->loop;
    const struct settings *settings = f->settings;
    struct resolved *one;
    union address literal;

    /* Peers are reached as they are named. */
    f->route = asks_peer(f) || request_is_news(f->consumer.request)
                   ? (struct route){.host = f->target.host, .port = f->target.port}
                   : settings_route(settings, &f->target);
    if (is_configured(f))
        f->route.by_operator = f->route.own_port = true;
    if (!f->route.own_port && !settings_permit_port(settings, f->target.port)) {
        finish_with(f, FETCH_DENIED,
                    "refused: port %u of %s is for another protocol (allow it with "
                    "--allow-port %u)",
                    f->target.port, f->target.host, f->target.port);
        return;
    }
    /* Behind a proxy a name is the proxy's to resolve, but an address can be checked here. */
    if (f->route.proxied && f->target.literal && !is_configured(f) &&
        !address_policy_permits(settings->config.addresses, &f->target.address.any)) {
        refuse_address(f, f->target.host, &f->target.address);
        return;
    }
    if (address_parse(f->route.host, f->route.port, &literal)) {
        one = resolved_create(1);
        if (!one) {
            fetching_finish(f, FETCH_INTERNAL, "out of memory");
            return;
        }
        one->list[0] = literal;
        connect_to_permitted(f, one);
        return;
    }
    enter_stage(f, FETCH_RESOLVING, clock_monotonic_us());
    switch (
        resolver_lookup(loop->resolver, &f->query, f->consumer.request->client, f->route.host)) {
    case RESOLVER_ANSWERED:
        fetching_take_addresses(f);
        break;
    case RESOLVER_PENDING:
        break;
    case RESOLVER_NO_MEMORY:
        fetching_finish(f, FETCH_INTERNAL, "out of memory");
        break;
    }
}

/* ---- the queue ------------------------------------------------------------------------- */

/* It has been queued: reports if it cannot begin now. */
static void
report_wait(const struct fetch *f)
{
    const struct fetch_config *config = &f->settings->config;
    enum queue_wait wait = queue_find_wait(f->loop->queue, &f->item);

    if (wait != QUEUE_TURN && config->queued)
        config->queued(config->context,
                       &(struct fetch_queued){.limit = wait,
                                              .client = f->consumer.request->client,
                                              .origin = f->target.origin});
}

static bool
is_probe(const struct request *request)
{
    return request->flags & REQUEST_CONFIGURED && !(request->flags & REQUEST_CONNECT_ONLY);
}

/* Among the fetches from its origin; a probe is beside them. */
static bool
add_to_queue(struct fetch *f)
{
    const char *key = f->target.origin;
    char beside[512];

    if (is_probe(f->consumer.request)) {
        snprintf(beside, sizeof(beside), "probes of %s", key);
        key = beside;
    }
    return queue_add(f->loop->queue, &f->item, f->consumer.request->client, key);
}

/* Queues an attempt at f->target. */
static void
wait_for_turn(struct fetch *f)
{
    if (!add_to_queue(f)) {
        fetching_finish(f, FETCH_INTERNAL, "out of memory");
        return;
    }
    if (f->consumer.attempt.counted)
        queue_limit_origin(f->loop->queue, &f->item, origin_server_fetch_limit(attempt_server(f)));
    report_wait(f);
    enter_stage(f, FETCH_QUEUED, clock_monotonic_us());
}

/* ---- results ---------------------------------------------------------------------------- */

/* Hands the socket over. */
static void
finish_connected(struct fetch *f)
{
    int fd = transfer_take_socket(&f->transfer);

    if (fd < 0) {
        finish_with(f, errno == EMFILE ? FETCH_OVERLOADED : FETCH_INTERNAL,
                    "a connection cannot be taken over: %s", strerror(errno));
        return;
    }
    f->consumer.sink.connected(f->consumer.context, fd);
    fetching_finish(f, FETCH_OK, "");
}

void
fetching_take_result(struct fetch *f, CURLcode code)
{
    enum fetch_error error;

    if (consumer_is_cancelled(&f->consumer)) {
        fetching_finish(f, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (f->transfer.stage == TRANSFER_UNCLEAN) {
        if (transfer_restart(&f->transfer))
            enter_stage(f, FETCH_TRANSFER, clock_monotonic_us());
        else
            fetching_finish(f, FETCH_INTERNAL, "out of memory");
        return;
    }
    error = transfer_evaluate(&f->transfer, code);
    if (!error && f->consumer.request->flags & REQUEST_CONNECT_ONLY)
        finish_connected(f);
    else
        fetching_finish(f, error, f->transfer.sentence);
}

void
fetching_resume_paused(struct fetch_loop *loop)
{
    struct fetch_list now = TAILQ_HEAD_INITIALIZER(now);
    struct fetch *f;

    TAILQ_CONCAT(&now, &loop->paused, paused_link);
    while ((f = TAILQ_FIRST(&now))) {
        CURLcode code;

        TAILQ_REMOVE(&now, f, paused_link);
        code = transfer_next_turn(&f->transfer);
        if (code)
            fetching_take_result(f, code);
    }
}

/* ---- signals from other threads ------------------------------------------------------ */

void
fetching_take_signal(struct fetch *f)
{
    CURLcode code;

    if (consumer_is_cancelled(&f->consumer)) {
        fetching_finish(f, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (!f->held_since_us || is_complete(f))
        return;
    code = transfer_resume(&f->transfer);
    if (!transfer_is_held(&f->transfer)) {
        end_hold(f);
        arm_timer(f);
    }
    if (code)
        fetching_take_result(f, code);
}

/* ---- turns --------------------------------------------------------------------------- */

/* Ends the fetch with the least claim to wait: one of the client that has the most queued. */
static void
displace(struct fetch_loop *loop)
{
    struct queue_item *last = queue_last_of_longest(loop->queue);

    atomic_fetch_add_explicit(&loop->displaced, 1, memory_order_relaxed);
    fetching_finish(
        container_of(last, struct fetch, item), FETCH_DISPLACED,
        "too many fetches are queued, and no client has more of them than this one; try "
        "again");
}

void
fetching_start_next(struct fetch_loop *loop)
{
    struct queue_item *item;

    while ((item = queue_next(loop->queue))) {
        struct fetch *f = container_of(item, struct fetch, item);

        atomic_fetch_add_explicit(&loop->started, 1, memory_order_relaxed);
        start_attempt(f);
    }
    while (queue_queued(loop->queue) > loop->place.settings->config.max_queued)
        displace(loop);
}

/* Queues it. */
static void
begin_attempt(struct fetch *f)
{
    char why[SENTENCE_MAX];
    struct attempt_text text;
    enum fetch_error error;

    if (asks_peer(f))
        f->consumer.sink.peer(f->consumer.context,
                              attempt_member(&f->consumer.attempt, f->consumer.request));
    else if (f->consumer.sink.member)
        f->consumer.sink.member(f->consumer.context, f->consumer.attempt.choice.member);
    error = target_parse(&f->target, attempt_url(&f->consumer.attempt, f->consumer.request, &text),
                         why, sizeof(why));
    if (!error)
        error = headers_check(f->consumer.request, fields_of(f), why, sizeof(why));
    if (error)
        fetching_finish(f, error, why);
    else
        wait_for_turn(f);
}

/* May the URL be fetched from here, as far as it says? A peer may have other bounds. */
static bool
is_permitted_here(const struct fetch *f)
{
    const struct request *request = f->consumer.request;
    struct target target;
    struct route route;
    char why[SENTENCE_MAX];
    bool permitted;

    if (request->route)
        return true;
    if (target_parse(&target, request->target.len ? request->target : request->url, why,
                     sizeof(why)) != FETCH_OK)
        return false;
    route = settings_route(f->settings, &target);
    permitted = (route.own_port || settings_permit_port(f->settings, target.port)) &&
                (route.by_operator || !target.literal ||
                 address_policy_permits(f->settings->config.addresses, &target.address.any));
    target_free(&target);
    return permitted;
}

void
fetching_begin(struct fetch *f)
{
    struct fetch_loop *loop = f->loop;

    f->settings = fetch_settings_retain(
        f->consumer.request->settings ? f->consumer.request->settings : loop->place.settings);
    if (consumer_is_cancelled(&f->consumer)) {
        fetching_finish(f, FETCH_CANCELLED, cancelled_sentence);
        return;
    }
    if (f->consumer.sink.peers)
        f->consumer.attempt.peers = f->consumer.sink.peers(f->consumer.context);
    if (f->consumer.attempt.peers && !is_permitted_here(f))
        f->consumer.attempt.peers = NULL;
    if (!attempt_begin(&f->consumer.attempt, f->consumer.request, clock_monotonic_us())) {
        fetching_finish(f, FETCH_DOWN, "every member of the origin is down; try again");
        return;
    }
    begin_attempt(f);
    fetching_start_next(loop);
}

/* Does it look a name up or connect? One that waits for its turn has not begun. */
static bool
is_unconnected(const struct fetch *f)
{
    return f->stage == FETCH_RESOLVING ||
           (f->stage == FETCH_TRANSFER && f->transfer.stage == TRANSFER_CONNECTING);
}

/* Its timer has come due: ends it, or arms the timer anew. */
static void
check_time(struct fetch *f)
{
    const char *what;
    /* Bytes that came meanwhile have moved the deadline without touching the timer. */
    int64_t due = find_deadline(f, &what);

    if (is_complete(f))
        fetching_take_result(f, CURLE_OK);
    else if (due > f->loop->place.turn_us)
        arm_timer_at(f, due);
    else if (what == busy && queue_find_wait(f->loop->queue, &f->item) != QUEUE_LIMIT)
        arm_timer_at(f, f->loop->place.turn_us + LOOK_AGAIN_US); /* it waits for something else */
    else
        finish_with(f,
                    what == busy        ? FETCH_BUSY
                    : is_unconnected(f) ? FETCH_CONNECT_TIMED_OUT
                                        : FETCH_TIMED_OUT,
                    "%s: %s took too long", f->target.host, what);
}

int64_t
fetching_next_due(const struct fetch_loop *loop)
{
    const struct fetch *f = RB_MIN(deadline_tree, (struct deadline_tree *)&loop->by_deadline);

    return f ? f->due_us : INT64_MAX;
}

void
fetching_check_times(struct fetch_loop *loop)
{
    while (fetching_next_due(loop) <= loop->place.turn_us)
        check_time(RB_MIN(deadline_tree, &loop->by_deadline));
}
