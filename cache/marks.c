/*
 * The markers and the records of a shard: each in a list from the oldest to the newest, bounded in
 * number and bytes.
 */
#include "cache/shard_parts.h"

/* Mean bytes of a mark's object that its shard has memory for; URLs have about 80. */
#define MARK_BYTES 1024u

struct entry *
shard_next_mark(const struct entry *entry)
{
    return ((const struct mark_links *)(const void *)entry->node)->newer;
}

/* A URL that varies has pages beside its record: there may be one more for each stored page. */
static size_t
most_marks(const struct shard *shard, const struct marks *marks)
{
    return shard->max_markers + (marks == &shard->records ? (size_t)shard->evictor.pages : 0);
}

void
shard_adopt_mark(struct shard *shard, struct entry *entry, uint64_t entered,
                 struct removed *removed)
{
    struct marks *marks = shard_marks_of(shard, entry);
    size_t bytes = object_size(entry->object), most = most_marks(shard, marks);

    while (marks->count && (marks->count >= most || marks->bytes + bytes > MARK_BYTES * most))
        shard_remove(shard, marks->oldest, removed);
    entry->entered = entered;
    *shard_mark_links(entry) = (struct mark_links){.older = marks->newest};
    if (marks->newest)
        shard_mark_links(marks->newest)->newer = entry;
    else
        marks->oldest = entry;
    marks->newest = entry;
    marks->count++;
    marks->bytes += bytes;
}

void
shard_mark(struct shard *shard, struct entry *entry, struct object *mark, enum object_state state,
           uint64_t entered, struct removed *removed)
{
    struct object *before = entry->object;

    if (entry_is_mark(entry))
        shard_unlink_mark(shard, entry);
    atomic_store_explicit(&mark->state, (uint8_t)state, memory_order_release);
    entry->object = object_retain(mark);
    object_release(&before);
    shard_adopt_mark(shard, entry, entered, removed);
}

void
shard_remove_expired_markers(struct shard *shard, int64_t now_us, struct removed *removed)
{
    for (int i = 0; i < 2 && shard->markers.oldest; i++) {
        if (now_us < shard->markers.oldest->object->fetched_us)
            return;
        shard_remove(shard, shard->markers.oldest, removed);
    }
}
