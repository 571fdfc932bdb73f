#include "server/rpc/hold.h"

#include <string.h>

#include "base/clock.h"

/* ---- of a service ---------------------------------------------------------------------------- */

void
holds_init(struct holds *holds, uint64_t most, int64_t timeout_us)
{
    *holds = (struct holds){.begun_us = (uint64_t)clock_wall_us(),
                            .timeout_us = timeout_us,
                            .wait_us = HOLD_WAIT_US};
    client_share_init_slots(&holds->places, CLIENT_CURSORS, most, true);
}

void
holds_note_shortage(struct holds *holds)
{
    atomic_store_explicit(&holds->short_us, clock_monotonic_us(), memory_order_relaxed);
}

void
holds_get_stats(struct holds *holds, struct hold_stats *stats)
{
    stats->open = client_share_total(&holds->places);
    stats->opened = atomic_load(&holds->opened);
    stats->refused = atomic_load(&holds->refused);
    for (unsigned i = 0; i < HOLD_ENDS; i++)
        stats->ended[i] = atomic_load(&holds->ended[i]);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static struct rpc_request *
request_of(struct hold *hold)
{
    return front_request(&hold->front);
}

void
hold_begin(struct hold *hold, const struct hold_calls *calls,
           void (*expired)(struct net_timer *timer))
{
    struct rpc_request *request = request_of(hold);

    memset((char *)hold + sizeof(hold->front), 0, sizeof(*hold) - sizeof(hold->front));
    hold->holds = service_of(request)->holds;
    hold->calls = calls;
    net_timer_init(&hold->timer, rpc_request_worker(request), expired);
    TAILQ_INIT(&hold->reads);
    hold->front.begun = true;
}

static struct hold *
next_hold(const struct rpc_request *request, struct rpc_request **at)
{
    *at = rpc_request_next_kept(request, *at);
    return *at ? rpc_request_data(*at) : NULL;
}

struct hold *
hold_find(const struct rpc_request *request, const proxy_object name)
{
    struct rpc_request *at = NULL;
    struct hold *hold;

    while ((hold = next_hold(request, &at)))
        if (hold->open && memcmp(hold->name, name, sizeof(hold->name)) == 0)
            return hold;
    return NULL;
}

/* Ends the hold of the connection that was used longest ago, of those that nothing uses. */
static bool
displace(const struct rpc_request *request)
{
    struct rpc_request *at = NULL;
    struct hold *hold, *oldest = NULL;

    while ((hold = next_hold(request, &at)))
        if (hold->open && !hold->used && TAILQ_EMPTY(&hold->reads) &&
            (!oldest || hold->used_us < oldest->used_us))
            oldest = hold;
    if (oldest)
        hold_end(oldest, HOLD_DISPLACED);
    return oldest != NULL;
}

static unsigned
count_holds(const struct rpc_request *request)
{
    struct rpc_request *at = NULL;
    struct hold *hold;
    unsigned count = 0;

    while ((hold = next_hold(request, &at)))
        count += hold->open;
    return count;
}

static bool
take_place(struct hold *hold)
{
    return client_share_take(&hold->holds->places, hold->front.exchange.client, 1);
}

static void
give_place_back(struct hold *hold)
{
    client_share_give_back(&hold->holds->places, hold->front.exchange.client, 1);
}

bool
hold_open(struct hold *hold, bool displaces)
{
    struct rpc_request *request = request_of(hold);
    struct holds *holds = hold->holds;

    if ((count_holds(request) >= HOLDS_PER_CONNECTION && !(displaces && displace(request))) ||
        (!take_place(hold) && !(displaces && displace(request) && take_place(hold))))
        return false;
    hold->open = true;
    memcpy(hold->name, (const uint64_t[]){holds->begun_us, atomic_fetch_add(&holds->opened, 1)},
           sizeof(hold->name));
    hold->used_us = hold->moved_us = clock_monotonic_us();
    return true;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Until it expires, or is looked at. */
static bool
set_idle_timer(struct hold *hold, int64_t now_us)
{
    int64_t left_us = hold->holds->timeout_us - (now_us - hold->idle_us);

    return net_timer_set(&hold->timer, left_us < HOLD_LOOK_US ? left_us : HOLD_LOOK_US);
}

/* By what waits. False: it could not be set. */
static bool
set_timer(struct hold *hold)
{
    const struct hold_read *first = TAILQ_FIRST(&hold->reads);
    int64_t left_us;

    if (first) {
        left_us = first->due_us - (first->gathered ? 0 : hold->holds->wait_us - HOLD_GATHER_US) -
                  clock_monotonic_us();
        return net_timer_set(&hold->timer, left_us > 0 ? left_us : 0);
    }
    /* While an answer is being written, the connection's own time limits hold. */
    net_timer_cancel(&hold->timer);
    hold->idle_us = clock_monotonic_us();
    return hold->used || set_idle_timer(hold, hold->idle_us);
}

/* Is its memory needed, while its client does not read on? A body that grows is given up by
 * proxy/shedding.h. */
static bool
gives_way(struct hold *hold, int64_t now_us)
{
    const struct exchange *x = &hold->front.exchange;
    int64_t short_us = atomic_load_explicit(&hold->holds->short_us, memory_order_relaxed);

    if (!x->complete || hold->why)
        return false;
    if (hold->sent - hold->moved_at > object_length(x->object) / HOLD_LEAST_SENT) {
        hold->moved_at = hold->sent;
        hold->moved_us = now_us;
    }
    return short_us && now_us - short_us < 2 * HOLD_LOOK_US &&
           now_us - hold->moved_us > HOLD_UNREAD_US;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Nothing refers to it. */
static void
finish(struct hold *hold)
{
    struct exchange *x = &hold->front.exchange;

    if (!x->complete && !hold->why) {
        if (hold->cancelled)
            return;
        hold->cancelled = true;
        if (!exchange_cancel(x))
            return;
    }
    if (!hold->logged)
        front_log_object(&hold->front, hold->sent);
    object_release(&hold->failure);
    rpc_request_unkeep(request_of(hold));
}

void
hold_end(struct hold *hold, enum hold_end end)
{
    if (hold->ending)
        return;
    hold->ending = true;
    hold->open = false;
    net_timer_cancel(&hold->timer);
    hold->calls->dismiss_reads(hold);
    give_place_back(hold);
    atomic_fetch_add(&hold->holds->ended[end], 1);
    if (!hold->used)
        finish(hold);
}

void
hold_look(struct hold *hold)
{
    int64_t now_us = clock_monotonic_us();

    if (now_us - hold->idle_us >= hold->holds->timeout_us)
        hold_end(hold, HOLD_EXPIRED);
    else if (gives_way(hold, now_us))
        hold_end(hold, HOLD_DISPLACED);
    else if (!set_idle_timer(hold, now_us))
        hold_end(hold, HOLD_EXPIRED);
}

void
hold_unuse(struct hold *hold)
{
    struct exchange *x = &hold->front.exchange;

    hold->used--;
    if (hold->ending) {
        if (!hold->used)
            finish(hold);
        return;
    }
    if (!hold->used && hold->why)
        exchange_end(x);
    else if (!hold->used)
        exchange_taken(x, hold->place.offset);
    if (!hold->used && hold->stopped && TAILQ_EMPTY(&hold->reads))
        hold_end(hold, HOLD_DISCONNECTED);
    else if (!hold->used && TAILQ_EMPTY(&hold->reads) && gives_way(hold, clock_monotonic_us()))
        hold_end(hold, HOLD_DISPLACED);
    else if (!set_timer(hold))
        hold_end(hold, HOLD_EXPIRED);
}

void
hold_fail(struct hold *hold, enum failure why, struct span sentence)
{
    struct exchange *x = &hold->front.exchange;
    struct object_waiter *waiter = &x->waiter.base;

    hold->why = why;
    if (hold->ending) {
        if (hold->cancelled)
            finish(hold);
        return;
    }
    if (waiter->failure)
        hold->failure = object_retain(waiter->failure);
    else
        hold->sentence = sentence;
    /* Another client reads much faster, or version 1 has begun the fetch and bounds it. */
    hold->again = waiter->lags || (why == FAILURE_TOO_LARGE && !x->led);
    hold->logged = true;
    front_log_failure(&hold->front, why);
    /* Others wait for a reader that lags until it has left the object. */
    if (!hold->used)
        exchange_end(x);
    if (!TAILQ_EMPTY(&hold->reads))
        hold->calls->serve_reads(hold, false);
    else if (hold->used && why == FAILURE_OVERLOADED)
        rpc_request_close_unread(request_of(hold), HOLD_UNREAD_US);
}

/* ---- what its request is kept for ------------------------------------------------------------ */

static void
answer_written(struct rpc_request *request)
{
    hold_unuse(rpc_request_data(request));
}

/* Calls that wait are still answered, unless the connection has gone. */
static void
connection_stopped(struct rpc_request *request)
{
    struct hold *hold = rpc_request_data(request);

    hold->stopped = true;
    if (!rpc_request_is_open(request) || (!hold->used && TAILQ_EMPTY(&hold->reads)))
        hold_end(hold, HOLD_DISCONNECTED);
}

const struct rpc_keeper hold_keeper = {.written = answer_written, .stopped = connection_stopped};
