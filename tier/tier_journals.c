/* The journals of the servers: they are read, written, and made anew. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tier/tier_state.h"

#define LOOK_US ((int64_t)50000) /* between two looks at a server that has lost its journal */

/* ---- asking ---------------------------------------------------------------------------------- */

static void
send_journal(struct tier *tier, struct tier_server *server, enum tier_op_kind kind,
             const char *command)
{
    struct tier_op *op = tier_op_create(kind);

    server->at_journal = true;
    if (!tier_server_send(tier, server, op, span_str(command), span_of(NULL, 0)))
        tier_server_fail(tier, server, "its journal cannot be read");
}

static void
ask_journal(struct tier *tier, struct tier_server *server, enum tier_op_kind kind)
{
    const struct tier_key key = tier_key_of_journal();
    char command[96];

    snprintf(command, sizeof(command), kind == TIER_OP_POLL ? "mg %s c" : "mg %s v c", key.text);
    send_journal(tier, server, kind, command);
}

/* Under the lock: one that there was no memory for. */
static void
take_forgotten(struct tier *tier)
{
    for (unsigned i = 0; i < tier->server_count && tier->forgot; i++)
        tier->servers[i].lacks = true;
    tier->forgot = false;
}

/*
 * Has the journal space for more bytes, without the entries that all daemons have had the time to
 * read? So no daemon misses one because others, whose clients may write as they like, are faster.
 */
static bool
has_space(const struct tier *tier, struct span *before, size_t len)
{
    const int64_t read_us = tier_wall_us(tier) - 2 * tier->config.poll_us - tier->config.skew_us;

    while (before->len + len > TIER_JOURNAL_BYTES) {
        struct span rest = *before;
        struct tier_entry entry;

        if (!tier_entry_next(&rest, &entry) || entry.wall_us > read_us)
            return false;
        *before = rest;
    }
    return true;
}

/* Another daemon may have purged meanwhile, with an epoch that was not seen. Under the lock. */
static void
append_entry(struct tier *tier, struct tier_journal *journal, struct tier_entry *entry,
             struct buf *entries)
{
    if (entry->epoch <= journal->latest) {
        entry->epoch = journal->latest + 1;
        tier_add_mark(tier, entry);
        if (entry->epoch > tier->last_epoch)
            tier->last_epoch = entry->epoch;
    }
    (void)tier_see(tier, entry->id);
    /* For has_space(); a soft purge's is when pages have expired. */
    if (!entry->soft)
        entry->wall_us = tier_wall_us(tier);
    tier_entry_write(entries, entry);
    journal->latest = entry->epoch;
    journal->number++;
}

/* Appends the marks that the server lacks, as far as there is space; the number of the last one. */
static uint64_t
append_marks(struct tier *tier, struct tier_server *server, struct tier_journal *journal,
             struct buf *entries, struct span before)
{
    struct tier_mark *mark;
    uint64_t number;
    size_t len = 0;

    pthread_mutex_lock(&tier->lock);
    take_forgotten(tier);
    number = tier->marked;
    STAILQ_FOREACH(mark, &tier->pending, link)
    {
        if (mark->number <= server->noted)
            continue;
        len += tier_entry_size(&mark->entry);
        if (!has_space(tier, &before, len)) {
            number = mark->number - 1;
            server->write_us = clock_monotonic_us() + tier->config.poll_us / 2;
            break;
        }
        append_entry(tier, journal, &mark->entry, entries);
    }
    pthread_mutex_unlock(&tier->lock);
    return number;
}

/* An entry for what was forgotten. */
static void
append_all(struct tier *tier, struct tier_journal *journal, struct buf *entries)
{
    struct tier_entry all = {.by = CACHE_BY_PREFIX};

    pthread_mutex_lock(&tier->lock);
    all.id = splitmix64_next(&tier->random);
    all.epoch = tier_next_epoch(tier, tier->config.skew_us);
    tier_add_mark(tier, &all);
    append_entry(tier, journal, &all, entries);
    pthread_mutex_unlock(&tier->lock);
}

/* What is known of the journals of all servers, and is not in this one. */
static void
append_lacking(struct tier *tier, struct tier_journal *journal, struct buf *entries)
{
    struct span copies[TIER_SERVERS], rest;
    struct tier_known known = {copies, 0};
    struct tier_entry entry;
    struct buf lacking;

    for (unsigned i = 0; i < tier->server_count; i++)
        if (tier->servers[i].is_copied)
            copies[known.count++] = buf_span(&tier->servers[i].copy);
    buf_init(&lacking, 2 * TIER_META_VALUE);
    tier_entries_lacking(&lacking, buf_span(entries), journal->floor, &known);
    rest = buf_span(&lacking);
    pthread_mutex_lock(&tier->lock);
    while (tier_entry_next(&rest, &entry))
        append_entry(tier, journal, &entry, entries);
    pthread_mutex_unlock(&tier->lock);
    buf_free(&lacking);
}

static void
set_up(struct tier *tier, struct tier_server *server)
{
    if (server->state == TIER_UP)
        return;
    server->state = TIER_UP;
    server->is_tried = true;
    tier_begin(tier);
    atomic_store(&server->up, tier->begun);
    if (server->told_down)
        tier_say(tier, TIER_LOG_INFO, "%s: it answers again", server->address.name);
    server->told_down = false;
}

/* A journal that is to be written. */
struct writing {
    struct tier_journal journal;
    struct span before; /* its entries, before those that it lacks */
    uint64_t cas;       /* of what it takes the place of; 0: there is none */
    bool is_new;        /* or lost: it is written though it lacks nothing */
};

static bool
finish_value(struct tier *tier, struct tier_server *server, struct tier_journal *journal)
{
    const struct tier_key key = tier_key_of_journal();
    bool is_written;

    tier_value_begin(&tier->value, TIER_JOURNAL);
    tier_journal_write(&tier->value, journal, buf_span(&server->writing));
    pthread_mutex_lock(&tier->keys_lock);
    is_written = !buf_failed(&server->writing) && tier_value_end(&tier->value, &tier->keys, &key);
    pthread_mutex_unlock(&tier->keys_lock);
    return is_written;
}

static void
send_value(struct tier *tier, struct tier_server *server, struct tier_op *op, uint64_t cas)
{
    const struct tier_key key = tier_key_of_journal();
    char command[160], condition[32] = " ME";

    if (cas)
        snprintf(condition, sizeof(condition), " C%" PRIu64, cas);
    snprintf(command, sizeof(command), "ms %s %zu T0%s", key.text, tier->value.len, condition);
    server->at_journal = true;
    if (!tier_server_send(tier, server, op, span_str(command), buf_span(&tier->value)))
        tier_server_fail(tier, server, "its journal cannot be written");
}

/* Writes it with what it lacks. */
static void
write_journal(struct tier *tier, struct tier_server *server, struct writing *w)
{
    struct tier_op *op = tier_op_create(TIER_OP_WRITE);
    struct buf *entries = &server->writing;
    const uint64_t number = w->journal.number;

    buf_reset(entries);
    buf_append(entries, w->before.ptr, w->before.len);
    if (op)
        op->number = append_marks(tier, server, &w->journal, entries, w->before);
    if (server->lacks)
        append_all(tier, &w->journal, entries);
    server->appended = (unsigned)(w->journal.number - number);
    if (server->compares)
        append_lacking(tier, &w->journal, entries);
    server->compared = server->compares;
    server->compares = false;
    if (op && !w->is_new && w->journal.number == number) {
        /* It lacks nothing, or is full of what others have yet to read. */
        free(op);
        set_up(tier, server);
        return;
    }
    if (!finish_value(tier, server, &w->journal)) {
        free(op);
        tier_server_fail(tier, server, "its journal cannot be written");
        return;
    }
    server->written = w->journal;
    send_value(tier, server, op, w->cas);
}

/* ---- a journal that is lost ------------------------------------------------------------------ */

/* A missing epoch means now. */
static void
begin_journal(struct tier *tier, struct tier_server *server)
{
    struct writing w = {.cas = server->lost_cas, .is_new = true};

    pthread_mutex_lock(&tier->lock);
    w.journal.lineage = splitmix64_next(&tier->random);
    w.journal.incarnation = splitmix64_next(&tier->random);
    w.journal.floor = tier_epoch_of_all(tier);
    pthread_mutex_unlock(&tier->lock);
    w.journal.latest = w.journal.floor;
    write_journal(tier, server, &w);
}

/* Writes it again, as it is known, with what the others have. */
static void
restore_journal(struct tier *tier, struct tier_server *server)
{
    struct writing w = {.journal = server->has,
                        .before = buf_span(&server->copy),
                        .cas = server->lost_cas,
                        .is_new = true};
    struct span rest = w.before;
    struct tier_entry entry;

    pthread_mutex_lock(&tier->lock);
    w.journal.incarnation = splitmix64_next(&tier->random);
    pthread_mutex_unlock(&tier->lock);
    w.journal.number = 0;
    if (tier->unlisted > w.journal.floor)
        w.journal.floor = tier->unlisted;
    if (w.journal.floor > w.journal.latest)
        w.journal.latest = w.journal.floor;
    while (tier_entry_next(&rest, &entry)) {
        w.journal.number++;
        if (entry.epoch > w.journal.latest)
            w.journal.latest = entry.epoch;
    }
    server->compares = true;
    write_journal(tier, server, &w);
}

static enum tier_judgement
judge(const struct tier *tier, const struct tier_server *server)
{
    struct tier_journals journals = {.servers = tier->server_count};

    for (unsigned i = 0; i < tier->server_count; i++) {
        const struct tier_server *other = &tier->servers[i];

        if (other->state < TIER_CHECKED)
            continue;
        if (other->lost_us || other->begun_us > server->lost_us)
            journals.lost++;
        else if (other->knows && other->read_us > server->lost_us)
            journals.kept++;
    }
    return tier_journal_judge(&journals);
}

/* The server has none, or not this one: it is not used until it has. */
static void
find_loss(struct tier *tier, struct tier_server *server, uint64_t cas)
{
    server->lost_cas = cas;
    if (server->lost_us)
        return;
    server->lost_us = clock_monotonic_us();
    server->state = TIER_CHECKED;
    atomic_store(&server->up, false);
    /* The others are to be read. */
    for (unsigned i = 0; i < tier->server_count; i++)
        tier->servers[i].polled_us = 0;
}

/* The moment of the next look. */
static int64_t
look_at_loss(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    const enum tier_judgement judgement = judge(tier, server);

    if (judgement == TIER_IS_KEPT && server->is_copied) {
        restore_journal(tier, server);
    } else if (judgement == TIER_IS_LOST || now_us - server->lost_us >= tier->patience_us) {
        begin_journal(tier, server);
    } else if (now_us - server->polled_us >= LOOK_US) {
        /* Another daemon may have written it. */
        server->polled_us = now_us;
        ask_journal(tier, server, TIER_OP_READ);
    }
    return server->polled_us + LOOK_US;
}

/* ---- replies --------------------------------------------------------------------------------- */

static bool
has_to_write(struct tier *tier, const struct tier_server *server)
{
    bool has;

    pthread_mutex_lock(&tier->lock);
    has =
        (server->noted < tier->marked || server->lacks) && clock_monotonic_us() >= server->write_us;
    pthread_mutex_unlock(&tier->lock);
    return has;
}

/* It has this now. What it has dropped is in no copy any more. */
static void
know_journal(struct tier *tier, struct tier_server *server, const struct tier_journal *journal)
{
    const bool drops =
        server->has.lineage != journal->lineage || server->has.floor < journal->floor;

    if (server->knows && drops && tier->unlisted < journal->floor)
        tier->unlisted = journal->floor;
    server->knows = true;
    server->has = *journal;
    server->lost_us = 0;
    tier_know_epoch(tier, journal->latest);
}

/* With what was known of it before and is not in it, which is to be written. */
static void
copy_entries(struct tier_server *server, const struct tier_journal *journal, struct span entries)
{
    const struct span before = buf_span(&server->copy);
    const struct buf copy = server->copy;

    buf_reset(&server->writing);
    buf_append(&server->writing, entries.ptr, entries.len);
    if (server->compares && server->is_copied)
        tier_entries_lacking(&server->writing, entries, journal->floor,
                             &(struct tier_known){&before, 1});
    server->is_copied = !buf_failed(&server->writing);
    server->copy = server->writing;
    server->writing = copy;
}

static void
take_journal(struct tier *tier, struct tier_server *server, const struct tier_op *op,
             const struct tier_meta *reply)
{
    const struct tier_key key = tier_key_of_journal();
    struct tier_journal journal;
    struct span content, entries;
    enum tier_kind kind;
    bool is_valid = false, is_foreign = false;

    if (reply->code == TIER_META_VALUE_HERE) {
        pthread_mutex_lock(&tier->keys_lock);
        is_valid = tier_value_open(reply->value, &tier->keys, &key, &kind, &content);
        is_foreign = tier_value_is_foreign(reply->value, &tier->keys);
        pthread_mutex_unlock(&tier->keys_lock);
        is_valid =
            is_valid && kind == TIER_JOURNAL && tier_journal_read(content, &journal, &entries);
        if (!is_valid)
            tier_add(tier, TIER_INVALID);
    }
    if (is_foreign) {
        tier_server_fail(tier, server, "daemons with another key use it");
        return;
    }
    /* An older one has been put back. */
    if (!is_valid || (server->knows && server->has.incarnation == journal.incarnation &&
                      journal.number < server->has.number)) {
        find_loss(tier, server, reply->code == TIER_META_VALUE_HERE ? reply->cas : 0);
        return;
    }
    server->compares = server->compares || server->state != TIER_UP ||
                       server->has.incarnation != journal.incarnation;
    tier_take_entries(tier, server, &journal, entries);
    copy_entries(server, &journal, entries);
    know_journal(tier, server, &journal);
    server->cas = reply->cas;
    server->read_us = op->sent_us;
    if (server->compares || has_to_write(tier, server))
        write_journal(tier, server,
                      &(struct writing){.journal = journal, .before = entries, .cas = reply->cas});
    else
        set_up(tier, server);
}

static void
take_written(struct tier *tier, struct tier_server *server, const struct tier_op *op,
             const struct tier_meta *reply)
{
    const struct buf copy = server->copy;

    if (reply->code != TIER_META_DONE) {
        /* Another daemon has written, to all servers as this one does. */
        server->compares = server->compares || server->compared;
        ask_journal(tier, server, TIER_OP_READ);
        return;
    }
    for (unsigned i = 0; i < server->appended; i++)
        tier_add(tier, TIER_PURGES);
    if (!server->knows || server->has.lineage != server->written.lineage) {
        server->begun_us = clock_monotonic_us();
        tier_lose(tier, server, &server->written);
    } else if (server->lost_us) {
        tier_say(tier, TIER_LOG_WARNING, "%s: it has lost what was purged, which was written back",
                 server->address.name);
    }
    know_journal(tier, server, &server->written);
    server->copy = server->writing;
    server->writing = copy;
    server->is_copied = true;
    server->cas = 0;
    server->noted = op->number > server->noted ? op->number : server->noted;
    server->lacks = false;
    set_up(tier, server);
    tier_settle(tier, false);
}

void
tier_journal_take(struct tier *tier, struct tier_server *server, const struct tier_op *op,
                  const struct tier_meta *reply)
{
    server->at_journal = false;
    if (reply->code == TIER_META_ERROR) {
        tier_server_fail(tier, server, "it does not keep what was purged");
        return;
    }
    if (op->kind == TIER_OP_READ)
        take_journal(tier, server, op, reply);
    else if (op->kind == TIER_OP_WRITE)
        take_written(tier, server, op, reply);
    else if (reply->code != TIER_META_DONE || reply->cas != server->cas)
        ask_journal(tier, server, TIER_OP_READ);
    else
        server->read_us = op->sent_us;
}

int64_t
tier_journal_look(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    if (server->at_journal)
        return INT64_MAX;
    if (server->lost_us)
        return look_at_loss(tier, server, now_us);
    if (server->state == TIER_CHECKED || server->compares || has_to_write(tier, server)) {
        server->polled_us = now_us;
        ask_journal(tier, server, TIER_OP_READ);
    } else if (now_us - server->polled_us >= tier->config.poll_us) {
        server->polled_us = now_us;
        ask_journal(tier, server, TIER_OP_POLL);
    }
    return server->write_us > now_us && server->write_us < server->polled_us + tier->config.poll_us
               ? server->write_us
               : server->polled_us + tier->config.poll_us;
}
