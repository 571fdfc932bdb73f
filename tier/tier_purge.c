/* Purges: marks of this daemon, and what the journals of the servers have. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "tier/tier_state.h"

/* ---- epochs: under the lock ------------------------------------------------------------------ */

uint64_t
tier_epoch_at(const struct tier *tier, int64_t at_us)
{
    const unsigned count = tier->epoch_count < TIER_EPOCHS ? tier->epoch_count : TIER_EPOCHS;

    for (unsigned i = 1; i <= count; i++) {
        const unsigned place = (tier->epoch_count - i) % TIER_EPOCHS;

        if (tier->epochs[place].at_us <= at_us)
            return tier->epochs[place].epoch;
    }
    return 0;
}

static uint64_t
known_epoch(const struct tier *tier)
{
    return tier_epoch_at(tier, INT64_MAX);
}

static void
know_epoch(struct tier *tier, uint64_t epoch)
{
    pthread_mutex_lock(&tier->lock);
    if (epoch > known_epoch(tier)) {
        tier->epochs[tier->epoch_count % TIER_EPOCHS].at_us = clock_monotonic_us();
        tier->epochs[tier->epoch_count % TIER_EPOCHS].epoch = epoch;
        tier->epoch_count++;
    }
    pthread_mutex_unlock(&tier->lock);
}

uint64_t
tier_next_epoch(struct tier *tier, int64_t more_us)
{
    const uint64_t seen = known_epoch(tier);
    uint64_t epoch = (uint64_t)(tier_wall_us(tier) + more_us);

    if (epoch <= seen)
        epoch = seen + 1;
    if (epoch <= tier->last_epoch)
        epoch = tier->last_epoch + 1;
    tier->last_epoch = epoch;
    return epoch;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void
add_mark(struct tier *tier, const struct tier_entry *entry)
{
    static const enum mark_kind kinds[] = {
        [CACHE_BY_URL] = MARK_URL,
        [CACHE_BY_PREFIX] = MARK_PREFIX,
        [CACHE_BY_TAG] = MARK_TAG,
    };
    const enum mark_kind kind = kinds[entry->by];
    const int64_t since_us = clock_wall_us() - entry->wall_us;
    uint64_t all;

    (void)disk_marks_add(&tier->marks,
                         &(struct disk_mark){
                             .kind = kind,
                             .soft = entry->soft,
                             .hash = disk_mark_hash(kind, entry->soft, entry->name, entry->scope),
                             .prefix = kind == MARK_PREFIX ? entry->name : span_of(NULL, 0),
                             .position = entry->epoch,
                             .us = clock_monotonic_us() - (since_us > 0 ? since_us : 0),
                         },
                         &all);
}

/* Without memory for it everything is purged: an entry without texts. */
static struct tier_mark *
make_mark(const struct tier_entry *entry)
{
    struct tier_mark *mark = malloc(sizeof(*mark) + entry->name.len + entry->scope.len);

    if (!mark)
        return NULL;
    mark->entry = *entry;
    mark->entry.name = span_of(mark->text, entry->name.len);
    mark->entry.scope = span_of(mark->text + entry->name.len, entry->scope.len);
    span_put(span_put(mark->text, entry->name), entry->scope);
    return mark;
}

struct source_marked
tier_mark(struct source *source, const struct source_purge *purge,
          const struct source_marked *before)
{
    struct tier *tier = (struct tier *)source;
    struct tier_entry entry = {
        .wall_us = tier_wall_us(tier),
        .by = purge->by,
        .soft = purge->soft,
        .name = purge->name,
        .scope = purge->scope,
    };
    struct tier_mark *mark = before ? make_mark(&entry) : NULL;

    pthread_mutex_lock(&tier->lock);
    entry.epoch = tier_next_epoch(tier, tier->config.skew_us);
    entry.id = splitmix64_next(&tier->random);
    add_mark(tier, &entry);
    if (before)
        tier->marked++;
    if (mark) {
        mark->entry.epoch = entry.epoch;
        mark->entry.id = entry.id;
        mark->number = tier->marked;
        STAILQ_INSERT_TAIL(&tier->pending, mark, link);
        tier->pending_count++;
        tier->pending_bytes += entry.name.len + entry.scope.len;
    } else if (before) {
        tier->forgot = true;
    }
    pthread_mutex_unlock(&tier->lock);
    if (before)
        tier_wake(tier);
    return (struct source_marked){.marked = true};
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool
tier_is_synced(struct source *source, struct source_waiter *waiter)
{
    struct tier *tier = (struct tier *)source;
    bool synced;

    pthread_mutex_lock(&tier->lock);
    synced = tier->synced == tier->marked || atomic_load(&tier->leaves);
    if (!synced) {
        waiter->number = tier->marked;
        waiter->listed = true;
        STAILQ_INSERT_TAIL(&tier->waiters, waiter, link);
    }
    pthread_mutex_unlock(&tier->lock);
    return synced;
}

bool
tier_forget_waiter(struct source *source, struct source_waiter *waiter)
{
    struct tier *tier = (struct tier *)source;
    bool listed;

    pthread_mutex_lock(&tier->lock);
    listed = waiter->listed;
    if (listed)
        STAILQ_REMOVE(&tier->waiters, waiter, source_waiter, link);
    waiter->listed = false;
    pthread_mutex_unlock(&tier->lock);
    return listed;
}

/* Under the lock: is the mark to be written to this server, which has place for it? */
static bool
is_wanted(const struct tier *tier, const struct tier_server *server, const struct tier_mark *mark)
{
    const size_t times = server->state == TIER_UP ? TIER_UP_TIMES : 1;

    return server->noted < mark->number && tier->pending_count <= times * TIER_MARKS &&
           tier->pending_bytes <= times * TIER_MARK_BYTES;
}

/* Under the lock: forgets what all servers have, and what too many wait for. */
static void
trim(struct tier *tier)
{
    struct tier_mark *mark;

    while ((mark = STAILQ_FIRST(&tier->pending))) {
        for (unsigned i = 0; i < tier->server_count; i++)
            if (is_wanted(tier, &tier->servers[i], mark))
                return;
        for (unsigned i = 0; i < tier->server_count; i++)
            if (tier->servers[i].noted < mark->number) {
                tier->servers[i].noted = mark->number;
                tier->servers[i].lacks = true;
            }
        STAILQ_REMOVE_HEAD(&tier->pending, link);
        tier->pending_count--;
        tier->pending_bytes -= mark->entry.name.len + mark->entry.scope.len;
        free(mark);
    }
}

bool
tier_is_told(struct tier *tier)
{
    bool one, all = true;

    pthread_mutex_lock(&tier->lock);
    one = !tier->marked;
    for (unsigned i = 0; i < tier->server_count; i++) {
        const struct tier_server *server = &tier->servers[i];
        const bool has = server->noted == tier->marked && !server->lacks && !tier->forgot;

        one = one || has;
        all = all && (has || server->state != TIER_UP);
    }
    pthread_mutex_unlock(&tier->lock);
    return one && all;
}

void
tier_settle(struct tier *tier, bool all)
{
    struct source_waiter *waiter;
    uint64_t synced;

    pthread_mutex_lock(&tier->lock);
    synced = tier->marked;
    for (unsigned i = 0; i < tier->server_count && !all; i++)
        if (tier->servers[i].state == TIER_UP && tier->servers[i].noted < synced)
            synced = tier->servers[i].noted;
    if (synced > tier->synced)
        tier->synced = synced;
    while ((waiter = STAILQ_FIRST(&tier->waiters)) && (all || waiter->number <= tier->synced)) {
        STAILQ_REMOVE_HEAD(&tier->waiters, link);
        waiter->listed = false;
        waiter->notify(waiter);
    }
    trim(tier);
    pthread_mutex_unlock(&tier->lock);
}

/* ---- what others have purged ----------------------------------------------------------------- */

static void
purge(struct tier *tier, const struct tier_entry *entry)
{
    const struct source_purge purge = {entry->by, entry->soft, entry->name, entry->scope};

    tier_tell(tier, &purge);
}

/*
 * It is not known what was purged up to the journal's floor, and some of that may not be used stale
 * either: everything is removed. When the daemon starts, what is on disk is validated instead.
 */
static void
lose(struct tier *tier, const struct tier_server *server, const struct tier_journal *journal)
{
    const struct tier_entry all = {
        .by = CACHE_BY_PREFIX, .epoch = journal->floor, .soft = !server->knows};

    add_mark(tier, &(struct tier_entry){.by = CACHE_BY_PREFIX, .epoch = journal->floor});
    if (server->knows) {
        tier_add(tier, TIER_LOST);
        tier_say(tier, true,
                 "%s: it is not known what was purged there: all that is stored is "
                 "removed",
                 server->address.name);
    }
    purge(tier, &all);
}

/* Is it new? */
static bool
see(struct tier *tier, uint64_t id)
{
    uint64_t *place = &tier->seen[hash64_uint(id) % TIER_SEEN];
    const bool is_new = *place != id;

    *place = id;
    return is_new;
}

static void
take_entries(struct tier *tier, struct tier_server *server, const struct tier_journal *journal,
             struct span entries)
{
    const bool is_same = server->knows && server->incarnation == journal->incarnation;
    const bool misses = !is_same || journal->number - journal->count > server->number;
    uint64_t number = journal->number - journal->count;
    struct tier_entry entry;

    if (misses)
        lose(tier, server, journal);
    while (tier_entry_next(&entries, &entry)) {
        if (++number <= server->number && !misses)
            continue;
        /* Also if it was seen: at this server it may have a later epoch. */
        add_mark(tier, &entry);
        if (see(tier, entry.id)) {
            tier_add(tier, TIER_PURGES_TAKEN);
            purge(tier, &entry);
        }
    }
    server->knows = true;
    server->incarnation = journal->incarnation;
    server->number = journal->number;
    know_epoch(tier, journal->latest);
}

/* ---- the journal of a server ----------------------------------------------------------------- */

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
    const int64_t read_us =
        tier_wall_us(tier) - 2 * tier->config.poll_us - tier->config.skew_us;

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
move_behind(struct tier *tier, struct tier_mark *mark, uint64_t latest)
{
    if (mark->entry.epoch > latest)
        return;
    mark->entry.epoch = latest + 1;
    add_mark(tier, &mark->entry);
    if (mark->entry.epoch > tier->last_epoch)
        tier->last_epoch = mark->entry.epoch;
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
        move_behind(tier, mark, journal->latest);
        (void)see(tier, mark->entry.id);
        /* For has_space(); a soft purge's is when pages have expired. */
        if (!mark->entry.soft)
            mark->entry.wall_us = tier_wall_us(tier);
        tier_entry_write(entries, &mark->entry);
        journal->latest = mark->entry.epoch;
        journal->number++;
    }
    pthread_mutex_unlock(&tier->lock);
    return number;
}

/* An entry for what was forgotten. */
static void
append_all(struct tier *tier, struct tier_journal *journal, struct buf *entries)
{
    struct tier_entry all = {.by = CACHE_BY_PREFIX, .wall_us = tier_wall_us(tier)};

    pthread_mutex_lock(&tier->lock);
    all.id = splitmix64_next(&tier->random);
    all.epoch = tier_next_epoch(tier, tier->config.skew_us);
    pthread_mutex_unlock(&tier->lock);
    (void)see(tier, all.id);
    add_mark(tier, &all);
    tier_entry_write(entries, &all);
    journal->number++;
}

/*
 * A daemon that has started uses no server before it has read, or tried to read, what was purged at
 * each. One that does not answer may alone have what others have missed, so what was stored before
 * is not used then.
 */
void
tier_begin(struct tier *tier, struct tier_server *server)
{
    struct tier_entry all = {.by = CACHE_BY_PREFIX, .epoch = 0};
    unsigned up = 0;

    server->is_tried = true;
    for (unsigned i = 0; i < tier->server_count; i++) {
        if (tier->begun || !tier->servers[i].is_tried)
            return;
        up += tier->servers[i].state == TIER_UP;
    }
    if (up < tier->server_count) {
        pthread_mutex_lock(&tier->lock);
        all.epoch = tier_next_epoch(tier, 2 * tier->config.skew_us);
        pthread_mutex_unlock(&tier->lock);
        add_mark(tier, &all);
        know_epoch(tier, all.epoch);
    }
    tier->begun = true;
    for (unsigned i = 0; i < tier->server_count; i++)
        atomic_store(&tier->servers[i].up, tier->servers[i].state == TIER_UP);
}

static void
set_up(struct tier *tier, struct tier_server *server)
{
    if (server->state == TIER_UP)
        return;
    server->state = TIER_UP;
    tier_begin(tier, server);
    atomic_store(&server->up, tier->begun);
    if (server->told_down)
        tier_say(tier, false, "%s: it answers again", server->address.name);
    server->told_down = false;
}

/* Writes a journal with these entries and the marks that it lacks, instead of the one with this cas
 * value; 0: there is none. */
static void
write_journal(struct tier *tier, struct tier_server *server, struct tier_journal *journal,
              struct span before, uint64_t cas)
{
    const struct tier_key key = tier_key_of_journal();
    struct tier_op *op = tier_op_create(TIER_OP_WRITE);
    struct buf entries;
    char command[160], condition[32] = " ME";
    bool is_written;

    buf_init(&entries, 2 * TIER_META_VALUE);
    buf_append(&entries, before.ptr, before.len);
    if (op)
        op->number = append_marks(tier, server, journal, &entries, before);
    if (op && before.len && op->number == server->noted && !server->lacks) {
        /* It is full, of what others have yet to read. */
        free(op);
        buf_free(&entries);
        set_up(tier, server);
        return;
    }
    if (server->lacks)
        append_all(tier, journal, &entries);
    tier_value_begin(&tier->value, TIER_JOURNAL);
    tier_journal_write(&tier->value, journal, buf_span(&entries));
    pthread_mutex_lock(&tier->keys_lock);
    is_written = !buf_failed(&entries) && tier_value_end(&tier->value, &tier->keys, &key);
    pthread_mutex_unlock(&tier->keys_lock);
    buf_free(&entries);
    server->written = *journal;
    server->at_journal = true;
    if (cas)
        snprintf(condition, sizeof(condition), " C%" PRIu64, cas);
    snprintf(command, sizeof(command), "ms %s %zu T0%s", key.text, tier->value.len, condition);
    if (!is_written ||
        !tier_server_send(tier, server, op, span_str(command), buf_span(&tier->value)))
        tier_server_fail(tier, server, "its journal cannot be written");
}

/* The server has none, or not this one: a missing epoch means now. */
static void
begin_journal(struct tier *tier, struct tier_server *server, uint64_t cas)
{
    struct tier_journal journal = {.number = 0};

    pthread_mutex_lock(&tier->lock);
    journal.incarnation = splitmix64_next(&tier->random);
    /* Later than what any daemon has given to a purge. */
    journal.floor = tier_next_epoch(tier, 2 * tier->config.skew_us);
    pthread_mutex_unlock(&tier->lock);
    journal.latest = journal.floor;
    write_journal(tier, server, &journal, span_of(NULL, 0), cas);
}

static bool
has_to_write(struct tier *tier, const struct tier_server *server)
{
    bool has;

    pthread_mutex_lock(&tier->lock);
    has = (server->noted < tier->marked || server->lacks) &&
          clock_monotonic_us() >= server->write_us;
    pthread_mutex_unlock(&tier->lock);
    return has;
}

static void
take_journal(struct tier *tier, struct tier_server *server, const struct tier_meta *reply)
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
    if (!is_valid || (server->knows && server->incarnation == journal.incarnation &&
                      journal.number < server->number)) {
        begin_journal(tier, server, reply->code == TIER_META_VALUE_HERE ? reply->cas : 0);
        return;
    }
    take_entries(tier, server, &journal, entries);
    server->cas = reply->cas;
    if (has_to_write(tier, server))
        write_journal(tier, server, &journal, entries, reply->cas);
    else
        set_up(tier, server);
}

static void
take_written(struct tier *tier, struct tier_server *server, const struct tier_op *op,
             const struct tier_meta *reply)
{
    if (reply->code != TIER_META_DONE) {
        /* Another daemon has written. */
        ask_journal(tier, server, TIER_OP_READ);
        return;
    }
    for (uint64_t n = server->number; n < server->written.number; n++)
        tier_add(tier, TIER_PURGES);
    if (!server->knows || server->incarnation != server->written.incarnation)
        lose(tier, server, &server->written);
    server->knows = true;
    server->incarnation = server->written.incarnation;
    server->number = server->written.number;
    server->cas = 0;
    server->noted = op->number > server->noted ? op->number : server->noted;
    server->lacks = false;
    know_epoch(tier, server->written.latest);
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
        take_journal(tier, server, reply);
    else if (op->kind == TIER_OP_WRITE)
        take_written(tier, server, op, reply);
    else if (reply->code != TIER_META_DONE || reply->cas != server->cas)
        ask_journal(tier, server, TIER_OP_READ);
}

int64_t
tier_journal_look(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    if (server->at_journal)
        return INT64_MAX;
    if (server->state == TIER_CHECKED || has_to_write(tier, server)) {
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
