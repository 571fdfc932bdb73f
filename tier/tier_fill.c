/* Filling versions with what the servers have, and waiting for what other daemons fetch. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "http/known_fields.h"
#include "store/record_fill.h"
#include "tier/tier_state.h"

#define FIRST_PAUSE_US ((int64_t)4000) /* before another daemon's fetch is looked for again, */
#define MOST_PAUSE_US ((int64_t)64000) /* twice as long each time up to this */
#define PASS_US ((int64_t)1000000)     /* after it was said that the response is not for the tier */
#define NO_LEASE_US ((int64_t)1000000)
#define MOST_UNKEPT 3u                   /* leases that were waited for in vain; then */
#define NO_LEASES_US ((int64_t)10000000) /* for this long none is */

size_t
tier_fill_size(void)
{
    return sizeof(struct tier_fill);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* NULL: out of the lists. */
static void
move(struct tier_fill *fill, struct tier_fills *to)
{
    if (fill->in == to)
        return;
    if (fill->in)
        TAILQ_REMOVE(fill->in, fill, link);
    if (to)
        TAILQ_INSERT_TAIL(to, fill, link);
    fill->in = to;
}

static void
free_fill(struct tier_fill *fill)
{
    move(fill, NULL);
    if (fill->op)
        fill->op->fill = NULL;
    shared_release(&fill->review.rules);
    free(fill->fields);
    cache_fill_free(&fill->base);
}

/* The requests that wait look up again, and do not ask the tier for this long, or are to fetch with
 * a lease. */
static void
send_back(struct tier_fill *fill, uint64_t cas, int64_t us)
{
    tier_lease_add(fill->tier, &fill->key, cas, us);
    record_fill_send_back(&fill->base);
    free_fill(fill);
}

/* False: the requests that have asked have left, so that another daemon may have the lease. */
static bool
is_to_fetch(struct tier_fill *fill, uint64_t cas)
{
    if (!cache_fill_is_unwanted(&fill->base))
        return true;
    tier_lease_release(fill->tier, &fill->key, cas);
    return false;
}

static void
fetch(struct tier_fill *fill, uint64_t cas)
{
    tier_add(fill->tier, TIER_MISSES);
    if (is_to_fetch(fill, cas))
        send_back(fill, cas, (int64_t)TIER_LEASE_S * 1000000);
    else
        send_back(fill, 0, 0);
}

void
tier_fill_fail(struct tier *tier, struct tier_fill *fill)
{
    (void)tier;
    fill->op = NULL;
    send_back(fill, 0, NO_LEASE_US);
}

/* Requests pass the server by. */
static bool
passes(struct tier *tier, const struct tier_server *server)
{
    if (!atomic_load(&server->lags))
        return false;
    tier_add(tier, TIER_PASSED);
    return true;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void
tier_fill_ask(struct tier *tier, struct tier_fill *fill)
{
    struct tier_server *server = tier_server_of(tier, &fill->key);
    struct tier_op *op = server && !passes(tier, server) ? tier_op_create(TIER_OP_GET) : NULL;
    char command[96];

    /* What has less than that to live has expired (TIER_GRACE_S): the first that asks is to
     * validate it. */
    snprintf(command, sizeof(command), "mg %s v c t N%d R%d", fill->key.text, TIER_LEASE_S,
             TIER_GRACE_S - 1);
    if (op) {
        op->fill = fill;
        op->key = fill->key;
    }
    if (op && tier_server_send(tier, server, op, span_str(command), span_of(NULL, 0))) {
        fill->op = op;
        fill->server = server;
        move(fill, &tier->asked);
    } else {
        send_back(fill, 0, NO_LEASE_US);
    }
}

static void
wait_for_none(struct tier_server *server, int64_t now_us)
{
    server->no_leases_us = now_us + NO_LEASES_US;
}

/* One that was waited for before the last one was given up says no more than that. */
static void
give_up_lease(struct tier_fill *fill, int64_t now_us)
{
    struct tier_server *server = fill->server;

    if (fill->begun_us < server->unkept_us)
        return;
    server->unkept_us = now_us;
    if (++server->unkept >= MOST_UNKEPT)
        wait_for_none(server, now_us);
}

/* Marks the value stale, or a lease, if that is still there: the first that asks then is to fetch,
 * with a lease. */
static void
mark_and_ask(struct tier_fill *fill, const struct tier_meta *reply)
{
    struct tier *tier = fill->tier;
    struct tier_server *server = tier_server_of(tier, &fill->key);
    char command[96];

    snprintf(command, sizeof(command), "md %s I T%d C%llu", fill->key.text, TIER_LEASE_S,
             (unsigned long long)reply->cas);
    if (server)
        (void)tier_server_send(tier, server, tier_op_create(TIER_OP_STALE), span_str(command),
                               span_of(NULL, 0));
    tier_fill_ask(tier, fill);
}

/* Is it a lease that others may have waited for as long as they do? */
static bool
is_overdue(const struct tier_fill *fill, const struct tier_meta *reply)
{
    /* The server counts in seconds. */
    return !reply->value.len && reply->left_s < TIER_LEASE_S &&
           (int64_t)(TIER_LEASE_S - reply->left_s - 1) * 1000000 >= fill->tier->config.wait_us;
}

static bool
has_waited(const struct tier_fill *fill, int64_t now_us)
{
    return now_us - fill->begun_us >= fill->tier->config.wait_us;
}

/* The lease of a daemon that does not fetch in time. One that was taken over once is not taken over
 * again, so that a slow response can be written at last. */
static void
take_over(struct tier_fill *fill, const struct tier_meta *reply, int64_t now_us)
{
    if (has_waited(fill, now_us))
        tier_add(fill->tier, TIER_GIVEN_UP);
    if (reply->is_stale) {
        if (has_waited(fill, now_us))
            give_up_lease(fill, now_us);
        fetch(fill, 0);
        return;
    }
    fill->takes_over = true;
    mark_and_ask(fill, reply);
}

static void
pause(struct tier_fill *fill, int64_t now_us)
{
    int64_t pause_us = FIRST_PAUSE_US << (fill->waits < 8 ? fill->waits : 8);

    fill->waits++;
    move(fill, &fill->tier->waiting);
    fill->again_us = now_us + (pause_us < MOST_PAUSE_US ? pause_us : MOST_PAUSE_US);
}

/* Another daemon fetches. */
static void
wait_for_other(struct tier_fill *fill, const struct tier_meta *reply)
{
    const int64_t now_us = clock_monotonic_us();

    if (fill->takes_over) {
        /* Yet another one does; or the server says that of each page. */
        if (!fill->server->had_other)
            wait_for_none(fill->server, now_us);
        fetch(fill, 0);
    } else if (now_us < fill->server->no_leases_us || fill->tier->config.wait_us == 0) {
        fetch(fill, 0);
    } else if (has_waited(fill, now_us) || is_overdue(fill, reply)) {
        take_over(fill, reply, now_us);
    } else {
        pause(fill, now_us);
    }
}

/* The same value may be seen again. */
static void
count_once(struct tier_fill *fill, enum tier_count which)
{
    if (!fill->is_counted)
        tier_add(fill->tier, which);
    fill->is_counted = true;
}

/* The value is of no use: one daemon is to fetch. */
static void
replace(struct tier_fill *fill, const struct tier_meta *reply)
{
    if (reply->wins) {
        fetch(fill, reply->cas);
    } else if (reply->waits) {
        wait_for_other(fill, reply);
    } else if (fill->has_marked) {
        fetch(fill, reply->cas);
    } else {
        fill->has_marked = true;
        mark_and_ask(fill, reply);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static void
publish(struct tier_fill *fill, struct disk_record *record, struct span body, int64_t born_us,
        int64_t lifetime_us)
{
    struct tier *tier = fill->tier;
    struct object_head own = {
        .notes = HTTP_KNOWN_SAVED | (tier->config.unsaved ? (unsigned)HTTP_KNOWN_UNSAVED : 0),
        .account = tier->config.account,
    };
    int error = record_fill_head(&fill->base, record, born_us, lifetime_us, &own);

    if (error) {
        send_back(fill, 0, NO_LEASE_US);
        return;
    }
    if (body.len)
        error = cache_fill_append(&fill->base, body.ptr, body.len);
    if (error)
        cache_fill_fail(&fill->base, tier->config.failure, "there is no memory for the response",
                        NULL, NULL);
    else
        cache_fill_finish(&fill->base, body.len <= fill->most, record->head.fetch_us, born_us,
                          lifetime_us);
    free_fill(fill);
}

static void
use_record(struct tier_fill *fill, const struct tier_meta *reply, struct disk_record *record,
           struct span body, int64_t expired_us)
{
    struct tier *tier = fill->tier;
    const int64_t wall_us = tier_wall_us(tier), ahead_us = record->head.born_wall_us - wall_us;
    /* Clocks differ: what is from the future by no more than that is new. */
    const struct disk_now now = {
        tier->boot, clock_monotonic_us(),
        ahead_us > 0 && ahead_us <= tier->config.skew_us ? record->head.born_wall_us : wall_us};
    int64_t born_us, lifetime_us;

    if (record_fill_times(&fill->review, record, &now, expired_us, &born_us, &lifetime_us)) {
        replace(fill, reply);
        return;
    }
    if (lifetime_us != INT64_MAX && now.monotonic_us - born_us >= lifetime_us) {
        /* It has expired: one daemon validates it. */
        if (!reply->wins) {
            replace(fill, reply);
            return;
        }
        if (is_to_fetch(fill, reply->cas))
            tier_lease_add(tier, &fill->key, reply->cas, (int64_t)TIER_LEASE_S * 1000000);
    } else {
        tier_add(tier, TIER_HITS);
        if (fill->waits)
            tier_add(tier, TIER_SHARED);
    }
    publish(fill, record, body, born_us, lifetime_us);
}

/* The URL varies by these names: the variant is asked for. */
static void
use_names(struct tier_fill *fill, const struct disk_record *record)
{
    struct tier *tier = fill->tier;
    const struct object *name = fill->base.object;
    struct buf variant;
    bool moved;

    buf_init(&variant, OBJECT_MAX_VARIANT);
    moved =
        object_variant(name).len == 0 &&
        record_fill_vary(&fill->base, record, span_of(fill->fields, fill->fields_len), &variant);
    if (moved)
        fill->key = tier_key_now(tier, record->url, buf_span(&variant));
    buf_free(&variant);
    if (!moved || tier_lease_is_held(tier, &fill->key))
        send_back(fill, 0, NO_LEASE_US);
    else
        tier_fill_ask(tier, fill);
}

/* False: it is invalid, or of another URL. */
static bool
read_record(struct tier_fill *fill, struct span content, struct disk_record *record,
            struct span *body)
{
    return tier_record_read(content, record, body) && record_fill_is_wanted(&fill->base, record);
}

static void
use_value(struct tier_fill *fill, const struct tier_meta *reply)
{
    struct tier *tier = fill->tier;
    struct disk_record record;
    struct span content, body;
    enum tier_kind kind;
    enum mark_verdict verdict;
    int64_t expired_us = INT64_MAX;
    bool is_valid;

    pthread_mutex_lock(&tier->keys_lock);
    is_valid = tier_value_open(reply->value, &tier->keys, &fill->key, &kind, &content);
    pthread_mutex_unlock(&tier->keys_lock);
    if (is_valid && kind == TIER_PASS) {
        tier_add(tier, TIER_MISSES);
        send_back(fill, 0, PASS_US);
        return;
    }
    if (!is_valid || kind == TIER_JOURNAL || !read_record(fill, content, &record, &body)) {
        count_once(fill, TIER_INVALID);
        replace(fill, reply);
        return;
    }
    verdict = disk_marks_find(&tier->marks, &record, &expired_us);
    if (verdict == MARKED_PURGED || reply->is_stale) {
        count_once(fill, TIER_OUTDATED);
        replace(fill, reply);
    } else if (kind == TIER_NAMES) {
        use_names(fill, &record);
    } else {
        use_record(fill, reply, &record, body, verdict == MARKED_EXPIRED ? expired_us : INT64_MAX);
    }
}

void
tier_fill_take(struct tier *tier, struct tier_fill *fill, const struct tier_meta *reply)
{
    fill->op = NULL;
    if (fill->waits && !reply->waits)
        fill->server->unkept = 0;
    if (reply->code == TIER_META_ERROR || atomic_load(&tier->left))
        send_back(fill, 0, NO_LEASE_US);
    else if (reply->code == TIER_META_VALUE_HERE && reply->value.len)
        use_value(fill, reply);
    else if (reply->waits)
        wait_for_other(fill, reply);
    else
        fetch(fill, reply->cas);
}

/* Its server answers too late for it, though not for each of what it is asked. */
static void
end_late(struct tier *tier, struct tier_fill *fill)
{
    struct tier_server *server = fill->server;
    const int64_t sent_us = fill->op->sent_us;

    tier_add(tier, TIER_LATE);
    send_back(fill, 0, NO_LEASE_US);
    tier_server_note_slow(tier, server, sent_us);
}

/* The moment at which the next one is late. */
static int64_t
end_late_ones(struct tier *tier, int64_t now_us)
{
    struct tier_fill *fill = TAILQ_FIRST(&tier->asked);

    if (fill && now_us >= fill->until_us)
        for (unsigned i = 0; i < tier->server_count; i++)
            tier_server_hurry(tier, &tier->servers[i]);
    while ((fill = TAILQ_FIRST(&tier->asked)) && now_us >= fill->until_us)
        end_late(tier, fill);
    return fill ? fill->until_us : INT64_MAX;
}

/* While its server lags, it is not asked again before it has waited as long as it may. */
static bool
is_due(const struct tier_fill *fill, int64_t now_us)
{
    return !atomic_load(&fill->server->lags) || has_waited(fill, now_us);
}

int64_t
tier_fill_look(struct tier *tier, int64_t now_us)
{
    int64_t next_us = end_late_ones(tier, now_us);
    struct tier_fill *fill, *next;

    for (fill = TAILQ_FIRST(&tier->waiting); fill; fill = next) {
        next = TAILQ_NEXT(fill, link);
        if (now_us >= fill->again_us && is_due(fill, now_us)) {
            fill->until_us = now_us + tier->config.late_us;
            tier_fill_ask(tier, fill);
            continue;
        }
        if (now_us >= fill->again_us)
            pause(fill, now_us);
        if (fill->again_us < next_us)
            next_us = fill->again_us;
    }
    return next_us;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* As cache_lookup() has made it, for another source. */
static enum source_filling
give_back(struct tier_fill *fill)
{
    shared_release(&fill->review.rules);
    free(fill->fields);
    memset((char *)fill + sizeof(fill->base), 0, sizeof(*fill) - sizeof(fill->base));
    return SOURCE_HAS_NOT;
}

static bool
enqueue(struct tier *tier, struct tier_fill *fill)
{
    struct tier_task *task = calloc(1, sizeof(*task));
    bool takes;

    if (!task)
        return false;
    task->kind = TIER_TASK_FILL;
    task->fill = fill;
    pthread_mutex_lock(&tier->lock);
    takes = tier->task_count < TIER_TASKS && !atomic_load(&tier->leaves);
    if (takes) {
        tier->task_count++;
        STAILQ_INSERT_TAIL(&tier->lookups, task, link);
    }
    pthread_mutex_unlock(&tier->lock);
    if (takes)
        tier_wake(tier);
    else
        free(task);
    return takes;
}

enum source_filling
tier_fill_start(struct source *source, struct cache_fill *base,
                const struct source_request *request)
{
    struct tier *tier = (struct tier *)source;
    struct tier_fill *fill = (struct tier_fill *)base;
    const struct object *name = base->object;
    const struct tier_server *server;

    if (atomic_load(&tier->leaves) || atomic_load(&tier->left))
        return SOURCE_HAS_NOT;
    fill->key = tier_key_now(tier, object_url(name), object_variant(name));
    fill->tier = tier;
    server = tier_server_of(tier, &fill->key);
    if (!server || tier_lease_is_held(tier, &fill->key) || passes(tier, server))
        return give_back(fill);
    fill->begun_us = clock_monotonic_us();
    fill->until_us = fill->begun_us + tier->config.late_us;
    fill->most = request->most;
    fill->review = request->review;
    (void)shared_retain(fill->review.rules);
    fill->fields_len = request->fields.len;
    fill->fields = malloc(request->fields.len + 1);
    if (!fill->fields)
        return give_back(fill);
    span_put(fill->fields, request->fields);
    request->later(request->context);
    if (enqueue(tier, fill))
        return SOURCE_FILLS;
    tier_add(tier, TIER_REFUSED);
    return give_back(fill);
}
