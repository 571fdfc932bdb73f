#include "server/rpc/cursor.h"

#include <string.h>

#include "base/clock.h"

/* ---- of a service ---------------------------------------------------------------------------- */

void
cursors_init(struct cursors *cursors, uint64_t most, int64_t timeout_us)
{
    *cursors = (struct cursors){
        .begun_us = (uint64_t)clock_wall_us(), .timeout_us = timeout_us, .wait_us = CURSOR_WAIT_US};
    client_share_init_slots(&cursors->places, CLIENT_CURSORS, most, true);
}

void
cursors_set_bounds(struct cursors *cursors, uint64_t most, int64_t timeout_us)
{
    client_share_set_slots(&cursors->places, most, true);
    atomic_store(&cursors->timeout_us, timeout_us);
}

void
cursors_note_shortage(struct cursors *cursors)
{
    atomic_store_explicit(&cursors->short_us, clock_monotonic_us(), memory_order_relaxed);
}

void
cursors_get_stats(struct cursors *cursors, struct cursor_stats *stats)
{
    stats->open = client_share_total(&cursors->places);
    stats->opened = atomic_load(&cursors->opened);
    stats->refused = atomic_load(&cursors->refused);
    for (unsigned i = 0; i < CURSOR_ENDS; i++)
        stats->ended[i] = atomic_load(&cursors->ended[i]);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static struct rpc_request *
request_of(struct cursor *cursor)
{
    return front_request(&cursor->front);
}

void
cursor_begin(struct cursor *cursor, const struct cursor_calls *calls,
             void (*expired)(struct net_timer *timer))
{
    struct rpc_request *request = request_of(cursor);

    memset((char *)cursor + sizeof(cursor->front), 0, sizeof(*cursor) - sizeof(cursor->front));
    cursor->cursors = service_of(request)->cursors;
    cursor->calls = calls;
    net_timer_init(&cursor->timer, rpc_request_worker(request), expired);
    TAILQ_INIT(&cursor->reads);
    cursor->front.begun = true;
}

static struct cursor *
next_cursor(const struct rpc_request *request, struct rpc_request **at)
{
    *at = rpc_request_next_kept(request, *at);
    return *at ? rpc_request_data(*at) : NULL;
}

struct cursor *
cursor_find(const struct rpc_request *request, const proxy_object name)
{
    struct rpc_request *at = NULL;
    struct cursor *cursor;

    while ((cursor = next_cursor(request, &at)))
        if (cursor->open && memcmp(cursor->name, name, sizeof(cursor->name)) == 0)
            return cursor;
    return NULL;
}

/* Ends the cursor of the connection that was used longest ago, of those that nothing uses. */
static bool
displace(const struct rpc_request *request)
{
    struct rpc_request *at = NULL;
    struct cursor *cursor, *oldest = NULL;

    while ((cursor = next_cursor(request, &at)))
        if (cursor->open && !cursor->used && TAILQ_EMPTY(&cursor->reads) &&
            (!oldest || cursor->used_us < oldest->used_us))
            oldest = cursor;
    if (oldest)
        cursor_end(oldest, CURSOR_DISPLACED);
    return oldest != NULL;
}

static unsigned
count_cursors(const struct rpc_request *request)
{
    struct rpc_request *at = NULL;
    struct cursor *cursor;
    unsigned count = 0;

    while ((cursor = next_cursor(request, &at)))
        count += cursor->open;
    return count;
}

static bool
take_place(struct cursor *cursor)
{
    return client_share_take(&cursor->cursors->places, cursor->front.request.client, 1);
}

static void
give_place_back(struct cursor *cursor)
{
    client_share_give_back(&cursor->cursors->places, cursor->front.request.client, 1);
}

bool
cursor_open(struct cursor *cursor, bool displaces)
{
    struct rpc_request *request = request_of(cursor);
    struct cursors *cursors = cursor->cursors;

    if ((count_cursors(request) >= CURSORS_PER_CONNECTION && !(displaces && displace(request))) ||
        (!take_place(cursor) && !(displaces && displace(request) && take_place(cursor))))
        return false;
    cursor->open = true;
    memcpy(cursor->name,
           (const uint64_t[]){cursors->begun_us, atomic_fetch_add(&cursors->opened, 1)},
           sizeof(cursor->name));
    cursor->used_us = cursor->moved_us = clock_monotonic_us();
    return true;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Until it expires, or is looked at. */
static bool
set_idle_timer(struct cursor *cursor, int64_t now_us)
{
    int64_t left_us = cursor->cursors->timeout_us - (now_us - cursor->idle_us);

    return net_timer_set(&cursor->timer, left_us < CURSOR_LOOK_US ? left_us : CURSOR_LOOK_US);
}

/* By what waits. False: it could not be set. */
static bool
set_timer(struct cursor *cursor)
{
    const struct cursor_read *first = TAILQ_FIRST(&cursor->reads);
    int64_t left_us;

    if (first) {
        left_us = first->due_us -
                  (first->gathered ? 0 : cursor->cursors->wait_us - CURSOR_GATHER_US) -
                  clock_monotonic_us();
        return net_timer_set(&cursor->timer, left_us > 0 ? left_us : 0);
    }
    /* While an answer is being written, the connection's own time limits cursor. */
    net_timer_cancel(&cursor->timer);
    cursor->idle_us = clock_monotonic_us();
    return cursor->used || set_idle_timer(cursor, cursor->idle_us);
}

/* Is its memory needed, while its client does not read on? A body that grows is given up by
 * proxy/shedding.h. */
static bool
gives_way(struct cursor *cursor, int64_t now_us)
{
    const struct exchange *x = &cursor->front.exchange;
    int64_t short_us = atomic_load_explicit(&cursor->cursors->short_us, memory_order_relaxed);

    if (!exchange_is_complete(x) || cursor->why)
        return false;
    if (cursor->sent - cursor->moved_at > object_length(x->object) / CURSOR_LEAST_SENT) {
        cursor->moved_at = cursor->sent;
        cursor->moved_us = now_us;
    }
    return short_us && now_us - short_us < 2 * CURSOR_LOOK_US &&
           now_us - cursor->moved_us > CURSOR_UNREAD_US;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* Cancels the exchange if it is not over. False: its last call is to come. */
static bool
leave_exchange(struct cursor *cursor)
{
    struct exchange *x = &cursor->front.exchange;

    if (exchange_is_complete(x))
        return true;
    if (cursor->stage == CURSOR_FOLLOWS) {
        cursor->stage = CURSOR_CANCELS;
        if (exchange_cancel(x))
            cursor->stage = CURSOR_LEFT;
    }
    return cursor->stage == CURSOR_LEFT;
}

/* Nothing refers to it. */
static void
finish(struct cursor *cursor)
{
    if (!leave_exchange(cursor))
        return;
    if (!cursor->logged)
        front_log_object(&cursor->front, cursor->sent);
    object_release(&cursor->failure);
    rpc_request_unkeep(request_of(cursor));
}

void
cursor_end(struct cursor *cursor, enum cursor_end end)
{
    if (cursor->ending)
        return;
    cursor->ending = true;
    cursor->open = false;
    net_timer_cancel(&cursor->timer);
    cursor->calls->dismiss_reads(cursor);
    give_place_back(cursor);
    atomic_fetch_add(&cursor->cursors->ended[end], 1);
    if (!cursor->used)
        finish(cursor);
}

/* Its memory is needed: the client is disconnected once it has not read its answer for a while. */
static void
close_unread(struct cursor *cursor)
{
    (void)net_timer_set(&cursor->timer, CURSOR_UNREAD_US);
    rpc_request_close_unread(request_of(cursor), CURSOR_UNREAD_US);
}

void
cursor_look(struct cursor *cursor)
{
    int64_t now_us = clock_monotonic_us();

    if (cursor->used)
        close_unread(cursor);
    else if (now_us - cursor->idle_us >= cursor->cursors->timeout_us)
        cursor_end(cursor, CURSOR_EXPIRED);
    else if (gives_way(cursor, now_us))
        cursor_end(cursor, CURSOR_DISPLACED);
    else if (!set_idle_timer(cursor, now_us))
        cursor_end(cursor, CURSOR_EXPIRED);
}

void
cursor_unuse(struct cursor *cursor)
{
    struct exchange *x = &cursor->front.exchange;

    cursor->used--;
    if (cursor->ending) {
        if (!cursor->used)
            finish(cursor);
        return;
    }
    if (!cursor->used && cursor->why)
        front_end_exchange(&cursor->front);
    else if (!cursor->used)
        exchange_taken(x, content_taken(&cursor->front.content));
    if (!cursor->used && cursor->stopped && TAILQ_EMPTY(&cursor->reads))
        cursor_end(cursor, CURSOR_DISCONNECTED);
    else if (!cursor->used && TAILQ_EMPTY(&cursor->reads) &&
             gives_way(cursor, clock_monotonic_us()))
        cursor_end(cursor, CURSOR_DISPLACED);
    else if (!set_timer(cursor))
        cursor_end(cursor, CURSOR_EXPIRED);
}

void
cursor_fail(struct cursor *cursor, enum failure why, struct span sentence)
{
    struct exchange *x = &cursor->front.exchange;
    struct object_waiter *waiter = &x->waiter.base;
    bool cancelled = cursor->stage == CURSOR_CANCELS;

    cursor->stage = CURSOR_LEFT;
    if (cursor->ending) {
        if (cancelled && !cursor->used)
            finish(cursor);
        return;
    }
    cursor->why = why;
    if (waiter->failure)
        cursor->failure = object_retain(waiter->failure);
    else
        cursor->sentence = sentence;
    /* Another client reads much faster. */
    cursor->again = waiter->lags;
    cursor->logged = true;
    front_log_failure(&cursor->front, why);
    /* Others wait for a reader that lags until it has left the object. */
    if (!cursor->used)
        front_end_exchange(&cursor->front);
    if (!TAILQ_EMPTY(&cursor->reads))
        cursor->calls->serve_reads(cursor, false);
    else if (cursor->used && why == FAILURE_OVERLOADED)
        close_unread(cursor);
}

void
cursor_break(struct cursor *cursor)
{
    const struct content *content = &cursor->front.content;

    front_drop_broken(&cursor->front);
    cursor->why = content->why;
    cursor->sentence = span_str(content->sentence);
    cursor->front.exchange.error = cursor->sentence;
    cursor->logged = true;
    front_log_failure(&cursor->front, content->why);
    (void)leave_exchange(cursor);
}

/* ---- what its request is kept for ------------------------------------------------------------ */

static void
answer_written(struct rpc_request *request)
{
    struct cursor *cursor = rpc_request_data(request);

    content_piece_release(&cursor->front.piece);
    cursor_unuse(cursor);
}

/* Calls that wait are still answered, unless the connection has gone. */
static void
connection_stopped(struct rpc_request *request)
{
    struct cursor *cursor = rpc_request_data(request);

    cursor->stopped = true;
    if (!rpc_request_is_open(request) || (!cursor->used && TAILQ_EMPTY(&cursor->reads)))
        cursor_end(cursor, CURSOR_DISCONNECTED);
}

const struct rpc_keeper cursor_keeper = {.written = answer_written, .stopped = connection_stopped};
