#include "tier/tier_journal.h"

#include <stdlib.h>

#include "base/hash.h"

struct entry_head {
    uint64_t id;
    uint64_t epoch;
    int64_t wall_us;
    uint8_t by, soft;
    uint16_t name_len;
    uint32_t scope_len;
};

_Static_assert(sizeof(struct entry_head) == 32, "no padding");
_Static_assert(sizeof(struct tier_journal) == 48, "no padding");

bool
tier_entry_next(struct span *entries, struct tier_entry *entry)
{
    struct entry_head head;

    if (entries->len < sizeof(head))
        return false;
    memcpy(&head, entries->ptr, sizeof(head));
    if (head.by > CACHE_BY_TAG || head.soft > 1 ||
        entries->len - sizeof(head) < (size_t)head.name_len + head.scope_len)
        return false;
    *entry = (struct tier_entry){
        .id = head.id,
        .epoch = head.epoch,
        .wall_us = head.wall_us,
        .by = (enum cache_by)head.by,
        .soft = head.soft,
        .name = span_of(entries->ptr + sizeof(head), head.name_len),
        .scope = span_of(entries->ptr + sizeof(head) + head.name_len, head.scope_len),
    };
    *entries = span_of(entry->scope.ptr + head.scope_len,
                       entries->len - sizeof(head) - head.name_len - head.scope_len);
    return true;
}

/* As it is written: texts have a bound. */
static struct entry_head
head_of(const struct tier_entry *entry)
{
    const bool cut = entry->name.len > TIER_JOURNAL_NAME;

    return (struct entry_head){
        .id = entry->id,
        .epoch = entry->epoch,
        .wall_us = entry->wall_us,
        .by = (uint8_t)(cut ? CACHE_BY_PREFIX : entry->by),
        .soft = entry->soft,
        .name_len = (uint16_t)(cut ? TIER_JOURNAL_NAME : entry->name.len),
        .scope_len = (uint32_t)(entry->scope.len > TIER_JOURNAL_NAME ? 0 : entry->scope.len),
    };
}

size_t
tier_entry_size(const struct tier_entry *entry)
{
    const struct entry_head head = head_of(entry);

    return sizeof(head) + head.name_len + head.scope_len;
}

void
tier_entry_write(struct buf *entries, const struct tier_entry *entry)
{
    const struct entry_head head = head_of(entry);

    buf_append(entries, &head, sizeof(head));
    buf_append(entries, entry->name.ptr, head.name_len);
    buf_append(entries, entry->scope.ptr, head.scope_len);
}

bool
tier_journal_read(struct span content, struct tier_journal *journal, struct span *entries)
{
    struct tier_entry entry;
    struct span rest;
    uint64_t count = 0;

    if (content.len < sizeof(*journal))
        return false;
    memcpy(journal, content.ptr, sizeof(*journal));
    *entries = rest = span_of(content.ptr + sizeof(*journal), content.len - sizeof(*journal));
    while (tier_entry_next(&rest, &entry)) {
        if (entry.epoch > journal->latest)
            return false;
        count++;
    }
    return rest.len == 0 && count == journal->count && count <= journal->number &&
           journal->floor <= journal->latest;
}

void
tier_journal_write(struct buf *content, struct tier_journal *journal, struct span entries)
{
    struct span rest = entries;
    struct tier_entry entry;

    journal->count = 0;
    while (tier_entry_next(&rest, &entry)) {
        journal->count++;
        if (entry.epoch > journal->latest)
            journal->latest = entry.epoch;
    }
    while (entries.len > TIER_JOURNAL_BYTES && tier_entry_next(&entries, &entry)) {
        journal->count--;
        if (entry.epoch > journal->floor)
            journal->floor = entry.epoch;
    }
    buf_append(content, journal, sizeof(*journal));
    buf_append(content, entries.ptr, entries.len);
}

/* ---- what a journal lacks -------------------------------------------------------------------- */

/* Ids by hash. */
struct ids {
    struct place {
        uint64_t id; /* 0: it is free */
        uint64_t epoch;
        bool lacks;
    } * places;
    size_t size; /* a power of two */
};

static size_t
count_entries(struct span entries)
{
    struct tier_entry entry;
    size_t count = 0;

    while (tier_entry_next(&entries, &entry))
        count++;
    return count;
}

/* With twice the space, so that each search ends. */
static bool
make_ids(struct ids *ids, size_t count)
{
    ids->size = 16;
    while (ids->size < 2 * count)
        ids->size *= 2;
    ids->places = calloc(ids->size, sizeof(*ids->places));
    return ids->places != NULL;
}

static struct place *
find_id(const struct ids *ids, uint64_t id)
{
    size_t at = (size_t)hash64_uint(id) & (ids->size - 1);

    while (ids->places[at].id && ids->places[at].id != id)
        at = (at + 1) & (ids->size - 1);
    return &ids->places[at];
}

/* Those later than the floor; `lacks`: they are not in the journal. */
static void
add_ids(struct ids *ids, struct span entries, uint64_t floor, bool lacks)
{
    struct tier_entry entry;

    while (tier_entry_next(&entries, &entry)) {
        struct place *place = find_id(ids, entry.id);

        if (entry.epoch > floor && entry.epoch > place->epoch)
            *place = (struct place){entry.id, entry.epoch, lacks};
    }
}

static void
append_lacking(struct buf *lacking, const struct ids *ids, struct span entries)
{
    struct tier_entry entry;

    while (tier_entry_next(&entries, &entry)) {
        struct place *place = find_id(ids, entry.id);

        if (place->lacks && place->epoch == entry.epoch) {
            tier_entry_write(lacking, &entry);
            place->lacks = false;
        }
    }
}

void
tier_entries_lacking(struct buf *lacking, struct span entries, uint64_t floor,
                     const struct tier_known *known)
{
    size_t count = count_entries(entries);
    struct ids ids;

    for (unsigned i = 0; i < known->count; i++)
        count += count_entries(known->entries[i]);
    if (!make_ids(&ids, count)) {
        lacking->failed = true;
        return;
    }
    add_ids(&ids, entries, floor, false);
    for (unsigned i = 0; i < known->count; i++)
        add_ids(&ids, known->entries[i], floor, true);
    for (unsigned i = 0; i < known->count; i++)
        append_lacking(lacking, &ids, known->entries[i]);
    free(ids.places);
}

/* ---- what is kept ---------------------------------------------------------------------------- */

enum tier_judgement
tier_journal_judge(const struct tier_journals *journals)
{
    const unsigned majority = journals->servers / 2 + 1;

    if (journals->servers - journals->kept < majority)
        return TIER_IS_KEPT;
    return journals->lost < majority ? TIER_MAY_BE_KEPT : TIER_IS_LOST;
}
