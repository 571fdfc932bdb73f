#include "tier/tier.h"

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/disk_file.h"
#include "tier/tier_state.h"

#define EVENTS 64
#define PATIENCE_US ((int64_t)2000000)
#define LAST_US ((int64_t)1500000)
#define LAST_TURN_MS 50
#define TURN_WRITES 4u                   /* between two looks at what has come */

/* ---- the thread ------------------------------------------------------------------------------ */

static void
run_task(struct tier *tier, struct tier_task *task, bool drops)
{
    if (task->kind != TIER_TASK_FILL && !drops)
        tier_write_run(tier, task);
    else if (task->kind == TIER_TASK_FILL && drops)
        tier_fill_fail(tier, task->fill);
    else if (task->kind == TIER_TASK_FILL)
        tier_fill_ask(tier, task->fill);
    object_release(&task->object);
    free(task);
}

/* What other threads have left: look-ups, and then a few writes. Is a write left that can be run at
 * once? */
static bool
run_tasks(struct tier *tier)
{
    struct tier_task *task;
    unsigned count = 0;

    while ((task = tier_task_take(tier, &tier->lookups)))
        run_task(tier, task, false);
    while (count < TURN_WRITES && (task = tier_task_take(tier, &tier->writes))) {
        run_task(tier, task, false);
        count++;
    }
    return count == TURN_WRITES;
}

static void
drop_tasks(struct tier *tier)
{
    struct tier_task *task;

    while ((task = tier_task_take(tier, &tier->lookups)) ||
           (task = tier_task_take(tier, &tier->writes)))
        run_task(tier, task, true);
}

/* Differs this daemon's clock from those of most servers? */
static void
compare_clocks(struct tier *tier)
{
    const int64_t most_us = tier->config.skew_us + TIER_RESOLUTION_US;
    unsigned known = 0, apart = 0;
    int64_t by_us = 0;
    bool left;

    for (unsigned i = 0; i < tier->server_count; i++) {
        const struct tier_server *server = &tier->servers[i];

        if (server->state != TIER_UP || server->apart_us == INT64_MIN)
            continue;
        known++;
        if (server->apart_us > most_us || server->apart_us < -most_us) {
            apart++;
            by_us = server->apart_us;
        }
    }
    left = 2 * apart > known;
    pthread_mutex_lock(&tier->lock);
    tier->apart_us = left ? by_us : 0;
    pthread_mutex_unlock(&tier->lock);
    if (atomic_exchange(&tier->left, left) == left)
        return;
    if (left)
        tier_say(tier, TIER_LOG_WARNING,
                 "this clock is %lld ms %s those of the servers: the tier is not used until they "
                 "agree",
                 (long long)(by_us < 0 ? -by_us : by_us) / 1000, by_us < 0 ? "behind" : "ahead of");
    else
        tier_say(tier, TIER_LOG_INFO, "this clock agrees with those of the servers");
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The moment of the next look at a server. */
static int64_t
look_at(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    int64_t journal_us = INT64_MAX;

    if (server->state == TIER_DOWN && now_us >= server->again_us)
        tier_names_look(tier, server, now_us);
    tier_server_look(tier, server, now_us);
    if (server->state >= TIER_CHECKED)
        journal_us = tier_journal_look(tier, server, now_us);
    if (server->state < TIER_CHECKED || !tier_server_flush(tier, server))
        return tier_server_next(tier, server);
    return earlier(tier_server_next(tier, server), journal_us);
}

/* What is due; the milliseconds until something is. */
static int
look(struct tier *tier)
{
    int64_t now_us = clock_monotonic_us(), next_us = tier_fill_look(tier, now_us);

    tier_names_collect(tier);
    for (unsigned i = 0; i < tier->server_count; i++)
        next_us = earlier(next_us, look_at(tier, &tier->servers[i], now_us));
    tier_begin(tier);
    /* A new mark waits for no server that is down. */
    tier_settle(tier, false);
    compare_clocks(tier);
    now_us = clock_monotonic_us();
    if (next_us <= now_us)
        return 0;
    return (int)earlier((next_us - now_us + 999) / 1000, 1000);
}

static void
handle(struct tier *tier, const struct epoll_event *event)
{
    uint64_t count;

    if (event->data.ptr)
        tier_server_ready(tier, event->data.ptr, event->events);
    else
        (void)!read(tier->wake, &count, sizeof(count));
}

/* Waits for what is due, at most that long, and does it. */
static void
turn(struct tier *tier, int64_t most_ms)
{
    struct epoll_event events[EVENTS];
    const int n = epoll_wait(tier->poll, events, EVENTS, (int)earlier(look(tier), most_ms));

    for (int i = 0; i < n; i++)
        handle(tier, &events[i]);
}

static void
end_fills(struct tier *tier)
{
    drop_tasks(tier);
    while (!TAILQ_EMPTY(&tier->waiting))
        tier_fill_fail(tier, TAILQ_FIRST(&tier->waiting));
}

/* Purges that no server has yet are written, if one answers soon. */
static void
end_purges(struct tier *tier)
{
    const int64_t until_us = clock_monotonic_us() + tier->last_us;
    bool is_told;

    while (!(is_told = tier_is_told(tier)) && clock_monotonic_us() < until_us) {
        end_fills(tier);
        turn(tier, LAST_TURN_MS);
    }
    if (!is_told)
        tier_say(tier, TIER_LOG_WARNING,
                 "no server has what was purged last: other daemons do not learn of it");
}

static void
end(struct tier *tier)
{
    end_fills(tier);
    tier_lease_release_all(tier);
    end_purges(tier);
    for (unsigned i = 0; i < tier->server_count; i++)
        tier_server_fail(tier, &tier->servers[i], "the daemon ends");
    end_fills(tier);
    tier_settle(tier, true);
}

static void *
run(void *context)
{
    struct tier *tier = context;

    memory_set_relief(false);
    while (!atomic_load(&tier->leaves)) {
        turn(tier, run_tasks(tier) ? 0 : INT64_MAX);
    }
    end(tier);
    return NULL;
}

/* ---- opening and closing --------------------------------------------------------------------- */

/* Their texts are copied behind each other. */
static bool
copy_keys(struct peer_keys *to, char **text, const struct peer_keys *from)
{
    size_t len = 0;
    char *at;

    for (unsigned i = 0; i < from->count; i++)
        len += from->keys[i].len;
    *text = at = malloc(len + 1);
    if (!at)
        return false;
    to->count = from->count;
    for (unsigned i = 0; i < from->count; i++) {
        to->keys[i] = span_of(at, from->keys[i].len);
        at = span_put(at, from->keys[i]);
    }
    return true;
}

static void
take_reply(struct tier *tier, struct tier_server *server, const struct tier_op *op,
           const struct tier_meta *reply)
{
    if (op->kind != TIER_OP_GET)
        tier_journal_take(tier, server, op, reply);
    else if (op->fill)
        tier_fill_take(tier, op->fill, reply);
    else if (reply->wins)
        tier_lease_release(tier, &op->key, reply->cas);
}

static void
init_servers(struct tier *tier, const struct tier_servers *servers)
{
    tier->server_count = servers->count;
    for (unsigned i = 0; i < servers->count; i++) {
        struct tier_server *server = &tier->servers[i];

        server->address = servers->of[i];
        server->fd = -1;
        server->apart_us = INT64_MIN;
        STAILQ_INIT(&server->ops);
        buf_init(&server->in, 2 * TIER_META_VALUE);
        buf_init(&server->out, TIER_OUT);
        buf_init(&server->copy, 2 * TIER_META_VALUE);
        buf_init(&server->writing, 2 * TIER_META_VALUE);
    }
}

static bool
begin_polling(struct tier *tier)
{
    struct epoll_event event = {.events = EPOLLIN};

    tier->poll = epoll_create1(EPOLL_CLOEXEC);
    tier->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return tier->poll >= 0 && tier->wake >= 0 &&
           epoll_ctl(tier->poll, EPOLL_CTL_ADD, tier->wake, &event) == 0;
}

struct tier *
tier_open(const struct tier_config *config)
{
    static const struct tier_above above = {take_reply, tier_fill_fail, tier_names_next};
    struct tier *tier = calloc(1, sizeof(*tier));

    if (!tier)
        return NULL;
    tier->above = &above;
    tier->config = *config;
    tier->boot = disk_boot();
    tier->patience_us = PATIENCE_US;
    tier->last_us = LAST_US;
    tier->poll = tier->wake = -1;
    atomic_init(&tier->terms, config->terms);
    pthread_mutex_init(&tier->lock, NULL);
    pthread_mutex_init(&tier->keys_lock, NULL);
    disk_marks_init(&tier->marks);
    tier_teller_init(&tier->teller);
    STAILQ_INIT(&tier->lookups);
    STAILQ_INIT(&tier->writes);
    STAILQ_INIT(&tier->pending);
    STAILQ_INIT(&tier->waiters);
    TAILQ_INIT(&tier->asked);
    TAILQ_INIT(&tier->waiting);
    buf_init(&tier->value, 2 * TIER_META_VALUE);
    (void)!getrandom(&tier->random, sizeof(tier->random), 0);
    init_servers(tier, config->servers);
    if (copy_keys(&tier->keys, &tier->key_text, config->keys) &&
        tier_naming_make(&tier->naming, tier->keys.keys[0]) && begin_polling(tier))
        return tier;
    tier_close(tier);
    return NULL;
}

int
tier_start(struct tier *tier)
{
    int error = tier_teller_start(tier);

    if (!error)
        error = tier_names_start(tier);
    if (!error)
        error = thread_start(&tier->thread, run, tier);
    tier->has_thread = !error;
    return error;
}

void
tier_leave(struct tier *tier)
{
    atomic_store(&tier->leaves, true);
    if (tier->has_thread) {
        tier_wake(tier);
        pthread_join(tier->thread, NULL);
    }
    tier->has_thread = false;
    tier_teller_end(&tier->teller);
    /* What was left behind the thread's last look. */
    drop_tasks(tier);
    tier_settle(tier, true);
}

void
tier_close(struct tier *tier)
{
    struct tier_mark *mark;

    if (!tier)
        return;
    tier_leave(tier);
    while ((mark = STAILQ_FIRST(&tier->pending))) {
        STAILQ_REMOVE_HEAD(&tier->pending, link);
        free(mark);
    }
    for (unsigned i = 0; i < tier->server_count; i++) {
        buf_free(&tier->servers[i].in);
        buf_free(&tier->servers[i].out);
        buf_free(&tier->servers[i].copy);
        buf_free(&tier->servers[i].writing);
    }
    buf_free(&tier->value);
    disk_marks_free(&tier->marks);
    tier_teller_free(&tier->teller);
    tier_names_free(tier);
    if (tier->poll >= 0)
        close(tier->poll);
    if (tier->wake >= 0)
        close(tier->wake);
    pthread_mutex_destroy(&tier->lock);
    pthread_mutex_destroy(&tier->keys_lock);
    free(tier->key_text);
    free(tier);
}

void
tier_configure(struct tier *tier, const struct peer_keys *keys, uint64_t terms)
{
    struct peer_keys next = {.count = 0};
    struct tier_naming naming;
    char *text, *last;

    atomic_store(&tier->terms, terms);
    if (!tier_naming_make(&naming, keys->keys[0]) || !copy_keys(&next, &text, keys))
        return;
    pthread_mutex_lock(&tier->lock);
    tier->naming = naming;
    pthread_mutex_unlock(&tier->lock);
    pthread_mutex_lock(&tier->keys_lock);
    last = tier->key_text;
    tier->keys = next;
    tier->key_text = text;
    pthread_mutex_unlock(&tier->keys_lock);
    free(last);
}

void
tier_get_stats(struct tier *tier, struct tier_stats *stats)
{
    *stats = (struct tier_stats){.servers = tier->server_count, .left = atomic_load(&tier->left)};
    for (unsigned i = 0; i < TIER_COUNTS; i++)
        stats->counts[i] = atomic_load_explicit(&tier->counts[i], memory_order_relaxed);
    for (unsigned i = 0; i < tier->server_count; i++)
        stats->up += atomic_load(&tier->servers[i].up);
}

/* ---- the source ------------------------------------------------------------------------------ */

static void
drop_offer(struct source *source)
{
    (void)source;
}

/* That is not known without asking. */
static bool
may_have(struct source *source, struct span url, struct span variant)
{
    (void)source;
    (void)url;
    (void)variant;
    return false;
}

struct source *
tier_source(struct tier *tier)
{
    static const struct source_ops ops = {
        .fill = tier_fill_start,
        .begin_offer = tier_begin_offer,
        .drop_offer = drop_offer,
        .offer = tier_offer,
        .outdate = tier_outdate,
        .begins = tier_begins,
        .release = tier_release,
        .may_have = may_have,
        .mark = tier_mark,
        .is_synced = tier_is_synced,
        .forget_waiter = tier_forget_waiter,
        .is_shared = true,
    };

    if (!tier)
        return NULL;
    tier->source.ops = &ops;
    return &tier->source;
}
