#include "tier/tier_journal.h"

struct entry_head {
    uint64_t id;
    uint64_t epoch;
    int64_t wall_us;
    uint8_t by, soft;
    uint16_t name_len;
    uint32_t scope_len;
};

_Static_assert(sizeof(struct entry_head) == 32, "no padding");
_Static_assert(sizeof(struct tier_journal) == 40, "no padding");

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
