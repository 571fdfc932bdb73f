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

void
tier_know_epoch(struct tier *tier, uint64_t epoch)
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
    uint64_t epoch = (uint64_t)(tier_wall_us(tier) - tier->apart_us + more_us);

    if (epoch <= seen)
        epoch = seen + 1;
    if (epoch <= tier->last_epoch)
        epoch = tier->last_epoch + 1;
    tier->last_epoch = epoch;
    return epoch;
}

/* Both clocks may differ from the servers' by the skew and their resolution. */
uint64_t
tier_epoch_of_all(struct tier *tier)
{
    return tier_next_epoch(tier, 3 * tier->config.skew_us + 2 * TIER_RESOLUTION_US);
}

/* ---- marks ----------------------------------------------------------------------------------- */

void
tier_add_mark(struct tier *tier, const struct tier_entry *entry)
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
    struct source_marked marked = {.marked = true};

    pthread_mutex_lock(&tier->lock);
    entry.epoch = tier_next_epoch(tier, tier->config.skew_us);
    entry.id = splitmix64_next(&tier->random);
    tier_add_mark(tier, &entry);
    if (before)
        marked.number = ++tier->marked;
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
    return marked;
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool
tier_is_synced(struct source *source, struct source_waiter *waiter)
{
    struct tier *tier = (struct tier *)source;
    bool synced;

    pthread_mutex_lock(&tier->lock);
    synced = tier->synced == tier->marked || atomic_load(&tier->leaves);
    waiter->untold = tier->told < tier->marked;
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

/* Under the lock: has its journal the marks up to `noted`? */
static bool
has_marks(const struct tier *tier, const struct tier_server *server)
{
    return !server->lacks && !tier->forgot && !server->lost_us;
}

bool
tier_is_told(struct tier *tier)
{
    bool one, all = true;

    pthread_mutex_lock(&tier->lock);
    one = !tier->marked;
    for (unsigned i = 0; i < tier->server_count; i++) {
        const struct tier_server *server = &tier->servers[i];
        const bool has = server->noted == tier->marked && has_marks(tier, server);

        one = one || has;
        all = all && (has || server->state != TIER_UP);
    }
    pthread_mutex_unlock(&tier->lock);
    return one && all;
}

bool
tier_has_told(struct tier *tier)
{
    bool told;

    pthread_mutex_lock(&tier->lock);
    told = tier->told == tier->marked;
    pthread_mutex_unlock(&tier->lock);
    return told;
}

void
tier_visit_untold(struct tier *tier,
                  void (*visit)(void *context, const struct source_purge *purge), void *context)
{
    const struct source_purge all = {.by = CACHE_BY_PREFIX};
    struct tier_mark *mark;
    bool forgot;

    pthread_mutex_lock(&tier->lock);
    forgot = tier->forgot;
    for (unsigned i = 0; i < tier->server_count; i++)
        forgot = forgot || tier->servers[i].lacks;
    if (forgot && tier->told != tier->marked)
        visit(context, &all);
    STAILQ_FOREACH(mark, &tier->pending, link)
    if (!forgot && mark->number > tier->told)
        visit(context, &(struct source_purge){mark->entry.by, mark->entry.soft, mark->entry.name,
                                              mark->entry.scope});
    pthread_mutex_unlock(&tier->lock);
}

void
tier_settle(struct tier *tier, bool all)
{
    struct source_waiter *waiter;
    uint64_t synced;

    pthread_mutex_lock(&tier->lock);
    /* At the start one may be up soon. */
    synced = tier->begun || all ? tier->marked : tier->synced;
    for (unsigned i = 0; i < tier->server_count && !all; i++)
        if (tier->servers[i].state == TIER_UP && tier->servers[i].noted < synced)
            synced = tier->servers[i].noted;
    if (synced > tier->synced)
        tier->synced = synced;
    for (unsigned i = 0; i < tier->server_count; i++)
        if (has_marks(tier, &tier->servers[i]) && tier->servers[i].noted > tier->told)
            tier->told = tier->servers[i].noted;
    while ((waiter = STAILQ_FIRST(&tier->waiters)) && (all || waiter->number <= tier->synced)) {
        STAILQ_REMOVE_HEAD(&tier->waiters, link);
        waiter->listed = false;
        waiter->untold = waiter->number > tier->told;
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
 * Some of what was purged may not be used stale either: everything is removed. When the daemon
 * starts, what is on disk is validated instead.
 */
void
tier_lose(struct tier *tier, const struct tier_server *server, const struct tier_journal *journal)
{
    const struct tier_entry all = {
        .by = CACHE_BY_PREFIX, .epoch = journal->floor, .soft = !server->knows};

    tier_add_mark(tier, &(struct tier_entry){.by = CACHE_BY_PREFIX, .epoch = journal->floor});
    if (server->knows) {
        tier_add(tier, TIER_LOST);
        tier_say(tier, TIER_LOG_WARNING,
                 "%s: it is not known what was purged there: all that is stored is "
                 "removed",
                 server->address.name);
    }
    purge(tier, &all);
}

bool
tier_see(struct tier *tier, uint64_t id)
{
    uint64_t *place = &tier->seen[hash64_uint(id) % TIER_SEEN];
    const bool is_new = *place != id;

    *place = id;
    return is_new;
}

/* May a journal have had entries that it has dropped, and that this daemon has not read? */
static bool
misses_entries(const struct tier_server *server, const struct tier_journal *journal)
{
    const struct tier_journal *has = &server->has;

    if (!server->knows || has->lineage != journal->lineage)
        return true;
    if (has->incarnation == journal->incarnation)
        return journal->number - journal->count > has->number;
    /* Later entries had later epochs. */
    return journal->floor > has->latest;
}

void
tier_take_entries(struct tier *tier, struct tier_server *server, const struct tier_journal *journal,
                  struct span entries)
{
    const bool misses = misses_entries(server, journal);
    const uint64_t known =
        !misses && server->has.incarnation == journal->incarnation ? server->has.number : 0;
    uint64_t number = journal->number - journal->count;
    struct tier_entry entry;

    if (misses)
        tier_lose(tier, server, journal);
    while (tier_entry_next(&entries, &entry)) {
        if (++number <= known)
            continue;
        /* Also if it was seen: at this server it may have a later epoch. */
        tier_add_mark(tier, &entry);
        if (tier_see(tier, entry.id)) {
            tier_add(tier, TIER_PURGES_TAKEN);
            purge(tier, &entry);
        }
    }
}

/* ---- the beginning --------------------------------------------------------------------------- */

/*
 * A daemon that has started uses no server before it has read, or tried to read, what was purged at
 * each. One that does not answer may alone have what others have missed, so what was stored before
 * is not used then.
 */
void
tier_begin(struct tier *tier)
{
    struct tier_entry all = {.by = CACHE_BY_PREFIX, .epoch = 0};
    unsigned up = 0;

    for (unsigned i = 0; i < tier->server_count; i++) {
        if (tier->begun || !tier->servers[i].is_tried)
            return;
        up += tier->servers[i].state == TIER_UP;
    }
    if (up < tier->server_count) {
        pthread_mutex_lock(&tier->lock);
        all.epoch = tier_epoch_of_all(tier);
        pthread_mutex_unlock(&tier->lock);
        tier_add_mark(tier, &all);
        tier_know_epoch(tier, all.epoch);
    }
    tier->begun = true;
    for (unsigned i = 0; i < tier->server_count; i++) {
        atomic_store(&tier->servers[i].up, tier->servers[i].state == TIER_UP);
        /* With those that were read after it. */
        tier->servers[i].compares = true;
    }
}
