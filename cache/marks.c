/*
 * The marks of a shard, of two kinds: entries that requests pass, and names of URLs that vary. Each
 * kind is a list from the oldest to the newest, bounded in number and bytes.
 */
#include "cache/shard.h"

/* Mean bytes of a mark's object that its shard has memory for; URLs have about 80. */
#define MARK_BYTES 1024u

static struct marks *
marks_of(struct shard *shard, enum entry_kind kind)
{
    return kind == ENTRY_VARIES ? &shard->varied : &shard->passed;
}

/* A URL that varies has pages beside its names: there may be one more for each stored page. */
static size_t
most_marks(const struct shard *shard, enum entry_kind kind)
{
    return shard->max_marks + (kind == ENTRY_VARIES ? (size_t)shard->evictor.pages : 0);
}

void
shard_clear_mark(struct shard *shard, struct entry *entry)
{
    struct marks *marks = marks_of(shard, entry->kind);

    TAILQ_REMOVE(&marks->list, entry_mark(entry), links);
    marks->count--;
    marks->bytes -= object_size(entry->object);
    entry->kind = ENTRY_EMPTY;
}

void
shard_mark(struct shard *shard, struct entry *entry, enum entry_kind kind, struct object *object,
           uint64_t entered)
{
    struct marks *marks = marks_of(shard, kind);
    size_t bytes = object_size(object), most = most_marks(shard, kind);

    if (entry_is_mark(entry))
        shard_clear_mark(shard, entry);
    while (marks->count && (marks->count >= most || marks->bytes + bytes > MARK_BYTES * most))
        shard_remove(shard, marks_oldest(marks));
    entry_set_object(entry, object);
    entry->kind = (uint8_t)kind;
    entry->entered = entered;
    TAILQ_INSERT_TAIL(&marks->list, entry_mark(entry), links);
    marks->count++;
    marks->bytes += bytes;
}

void
shard_remove_expired_marks(struct shard *shard, int64_t now_us)
{
    for (int i = 0; i < 2; i++) {
        struct entry *oldest = marks_oldest(&shard->passed);

        if (!oldest || now_us < oldest->object->fetched_us)
            return;
        shard_remove(shard, oldest);
    }
}
