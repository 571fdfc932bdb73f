/* What is offered to the tier. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "http/known_fields.h"
#include "tier/tier_state.h"

#define PASS_S 2                     /* for which a value of TIER_PASS stays */
#define MOST_UNANSWERED ((size_t)256 << 10) /* bytes of writes, for which look-ups wait */
#define LONGEST_S ((int64_t)2591999) /* memcached takes more for a date */

/* ---- tasks ----------------------------------------------------------------------------------- */

static void
leave_task(struct tier *tier, struct tier_task *task)
{
    const uint64_t bytes = task->object ? object_length(task->object) : 0;
    bool takes;

    pthread_mutex_lock(&tier->lock);
    /* Look-ups have the other half. */
    takes = tier->task_count < TIER_TASKS / 2 && tier->task_bytes + bytes <= TIER_TASK_BYTES &&
            !atomic_load(&tier->leaves);
    if (takes) {
        tier->task_count++;
        tier->task_bytes += bytes;
        STAILQ_INSERT_TAIL(&tier->writes, task, link);
    }
    pthread_mutex_unlock(&tier->lock);
    if (takes) {
        tier_wake(tier);
        return;
    }
    tier_add(tier, TIER_NOT_STORED);
    object_release(&task->object);
    free(task);
}

uint64_t
tier_begin_offer(struct source *source, int64_t begun_us)
{
    struct tier *tier = (struct tier *)source;
    uint64_t epoch;

    pthread_mutex_lock(&tier->lock);
    epoch = tier_epoch_at(tier, begun_us);
    pthread_mutex_unlock(&tier->lock);
    return epoch ? epoch + 1 : 0;
}

bool
tier_offer(struct source *source, struct object *object, struct span names, uint64_t position)
{
    struct tier *tier = (struct tier *)source;
    const uint64_t terms = atomic_load(&tier->terms);
    const struct span url = object_url(object), variant = object_variant(object);
    struct tier_task *task;

    if (!position || object_length(object) > tier->config.most || (variant.len && !names.len) ||
        atomic_load(&tier->left))
        return false;
    task = calloc(1, sizeof(*task) + names.len);
    if (!task)
        return false;
    task->kind = TIER_TASK_OFFER;
    task->key = tier_key_under(tier, terms, url, variant);
    task->cas = tier_lease_take(tier, &task->key);
    if (variant.len) {
        task->url = tier_key_under(tier, terms, url, span_of(NULL, 0));
        task->url_cas = tier_lease_take(tier, &task->url);
        task->names_len = names.len;
        span_put(task->names, names);
    }
    task->object = object_retain(object);
    task->position = position;
    leave_task(tier, task);
    return true;
}

static void
drop(struct tier *tier, enum tier_task_kind kind, struct span url, struct span variant)
{
    const struct tier_key key = tier_key_now(tier, url, variant);
    const uint64_t cas = tier_lease_take(tier, &key);
    struct tier_task *task;

    if ((kind == TIER_TASK_RELEASE && !cas) || !(task = calloc(1, sizeof(*task))))
        return;
    task->kind = kind;
    task->key = key;
    task->cas = cas;
    leave_task(tier, task);
}

void
tier_outdate(struct source *source, struct span url, struct span variant, bool all)
{
    struct tier *tier = (struct tier *)source;

    drop(tier, TIER_TASK_PASS, url, variant);
    if (all && variant.len)
        drop(tier, TIER_TASK_PASS, url, span_of(NULL, 0));
}

void
tier_begins(struct source *source, struct span url, struct span variant, uint64_t length)
{
    struct tier *tier = (struct tier *)source;
    const struct tier_key key = tier_key_now(tier, url, variant);

    if (length > tier->config.most && tier_lease_is_held(tier, &key))
        drop(tier, TIER_TASK_PASS, url, variant);
}

void
tier_release(struct source *source, struct span url, struct span variant)
{
    drop((struct tier *)source, TIER_TASK_RELEASE, url, variant);
}

/* Is too much on its way to its server for another write? */
static bool
is_held_up(struct tier *tier, const struct tier_task *task)
{
    const struct tier_server *server = tier_server_of(tier, &task->key);

    return server && server->unanswered > MOST_UNANSWERED && !atomic_load(&tier->leaves);
}

struct tier_task *
tier_task_take(struct tier *tier, struct tier_tasks *from)
{
    struct tier_task *task;

    pthread_mutex_lock(&tier->lock);
    task = STAILQ_FIRST(from);
    if (task && task->kind != TIER_TASK_FILL && is_held_up(tier, task))
        task = NULL;
    if (task) {
        STAILQ_REMOVE_HEAD(from, link);
        tier->task_count--;
        if (task->object)
            tier->task_bytes -= object_length(task->object);
    }
    pthread_mutex_unlock(&tier->lock);
    return task;
}

/* ---- the thread's ---------------------------------------------------------------------------- */

/* Stores tier->value for some seconds, instead of what has this cas value if there is one. */
static void
store(struct tier *tier, const struct tier_key *key, uint64_t cas, int64_t seconds)
{
    struct tier_server *server = tier_server_of(tier, key);
    char command[160], condition[32] = "";
    bool is_written;

    pthread_mutex_lock(&tier->keys_lock);
    is_written = tier_value_end(&tier->value, &tier->keys, key);
    pthread_mutex_unlock(&tier->keys_lock);
    if (cas)
        snprintf(condition, sizeof(condition), " C%llu", (unsigned long long)cas);
    snprintf(command, sizeof(command), "ms %s %zu T%lld%s", key->text, tier->value.len,
             (long long)seconds, condition);
    if (!is_written || !server ||
        !tier_server_send(tier, server, tier_op_create(TIER_OP_SET), span_str(command),
                          buf_span(&tier->value)))
        tier_add(tier, TIER_NOT_STORED);
    else
        (void)tier_server_flush(tier, server);
}

/* Seconds for which it is worth being stored; 0: it is not. */
static int64_t
seconds_of(const struct object *object, int64_t now_us)
{
    const int64_t lifetime_us = object_lifetime(object);
    int64_t left_us;

    if (lifetime_us == INT64_MAX)
        return LONGEST_S;
    left_us = object->fetched_us + lifetime_us - now_us;
    if (left_us <= 0 || !object_is_fresh(object, now_us))
        return 0;
    left_us = (left_us + 999999) / 1000000 + TIER_GRACE_S;
    return left_us < LONGEST_S ? left_us : LONGEST_S;
}

static void
run_offer(struct tier *tier, struct tier_task *task)
{
    struct object *object = task->object;
    const int64_t now_us = clock_monotonic_us(), seconds = seconds_of(object, now_us);
    const struct span names = span_of(task->names, task->names_len);
    struct disk_head head = {
        .position = task->position,
        .born_wall_us = tier_wall_us(tier) - (now_us - object->fetched_us),
        .born_us = object->fetched_us,
        .boot = tier->boot,
        .lifetime = atomic_load(&object->lifetime),
        .fetch_us = object->fetch_us,
        .notes = atomic_load(&object->notes) & ~(uint32_t)(HTTP_KNOWN_SAVED | HTTP_KNOWN_UNSAVED),
        .status = object->status,
    };

    if (!seconds) {
        tier_remove(tier, &task->key, task->cas);
        return;
    }
    tier_value_begin(&tier->value, TIER_RECORD);
    tier_record_write(&tier->value, TIER_RECORD, &head, object, names);
    store(tier, &task->key, task->cas, seconds);
    /* Behind it, since the names lead to it. */
    if (names.len) {
        tier_value_begin(&tier->value, TIER_NAMES);
        tier_record_write(&tier->value, TIER_NAMES, &head, object, names);
        store(tier, &task->url, task->url_cas, seconds);
    }
}

static void
run_pass(struct tier *tier, const struct tier_task *task)
{
    if (!task->cas) {
        tier_remove(tier, &task->key, task->cas);
        return;
    }
    tier_value_begin(&tier->value, TIER_PASS);
    store(tier, &task->key, task->cas, PASS_S);
}

void
tier_write_run(struct tier *tier, struct tier_task *task)
{
    switch (task->kind) {
    case TIER_TASK_FILL:
        break;
    case TIER_TASK_OFFER:
        run_offer(tier, task);
        break;
    case TIER_TASK_PASS:
        run_pass(tier, task);
        break;
    case TIER_TASK_RELEASE:
        tier_remove(tier, &task->key, task->cas);
        break;
    }
}
