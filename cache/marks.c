/*
 * The marks of a shard, of two kinds: entries that requests pass, and names of URLs that vary. Each
 * kind is a list from the oldest to the newest, bounded in number and bytes.
 */
#include "cache/shard.h"

/* Mean bytes of a mark's object that its shard has memory for; URLs have about 80. */
#define MARK_BYTES 1024u

/* A URL that varies has pages beside its names: there may be one more for each stored page. */
static size_t
most_marks(const struct shard *shard, enum entry_kind kind)
{
    return shard->max_marks + (kind == ENTRY_VARIES ? (size_t)shard->evictor.pages : 0);
}

static void
append_mark(struct marks *marks, struct entry *entry)
{
    *shard_mark_links(entry) = (struct mark_links){.older = marks->newest};
    if (marks->newest)
        shard_mark_links(marks->newest)->newer = entry;
    else
        marks->oldest = entry;
    marks->newest = entry;
    marks->count++;
    marks->bytes += object_size(entry->object);
}

void
shard_mark(struct shard *shard, struct entry *entry, enum entry_kind kind, struct object *object,
           uint64_t entered)
{
    struct marks *marks = shard_marks_of(shard, kind);
    size_t bytes = object_size(object), most = most_marks(shard, kind);

    if (entry_is_mark(entry))
        shard_clear_mark(shard, entry);
    while (marks->count && (marks->count >= most || marks->bytes + bytes > MARK_BYTES * most))
        shard_remove(shard, marks->oldest);
    entry_set_object(entry, object);
    entry->kind = (uint8_t)kind;
    entry->entered = entered;
    append_mark(marks, entry);
}

void
shard_remove_expired_marks(struct shard *shard, int64_t now_us)
{
    for (int i = 0; i < 2 && shard->passed.oldest; i++) {
        if (now_us < shard->passed.oldest->object->fetched_us)
            return;
        shard_remove(shard, shard->passed.oldest);
    }
}
