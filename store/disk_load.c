/* What is there at the start: the index is made from the footers of the segments. */
#include <errno.h>
#include <stdlib.h>

#include "store/disk_file.h"
#include "store/disk_store.h"

/* The records of a segment that was not ended, by their heads. *sealed: it has got a footer, and is
 * not damaged; *failed: it is to stay as it is, since not all could be read. */
static struct disk_listed *
scan(struct store *store, struct disk_segment *segment, size_t *count, bool *sealed, bool *failed)
{
    enum disk_scanned how = DISK_SCANNED;
    uint64_t end;
    const struct disk_scan_stop stop = {disk_writer_is_to_stop, store};
    struct disk_listed *all = disk_segment_scan_all(segment, &stop, count, &end, &how);

    *failed = how == DISK_SCAN_FAILED;
    if (how == DISK_SCAN_DAMAGED) {
        store_add(store, STORE_DAMAGED, 1);
        store_say(store, STORE_WARNING,
                  "segment %016llx: bytes that are no record were dropped, behind %zu records",
                  (unsigned long long)segment->number, *count);
    } else if (*failed) {
        store_add(store, STORE_READ_ERRORS, 1);
        store_say(store, STORE_WARNING,
                  "segment %016llx cannot be read as a whole: %zu records of it are used",
                  (unsigned long long)segment->number, *count);
    }
    *sealed = !*failed && end && all && disk_log_seal(&store->log, segment, all, *count, end) == 0;
    /* The next start reads it by its heads again, and may find more. */
    if (how != DISK_SCANNED && !*sealed)
        disk_hide_any(store);
    *sealed = *sealed && how == DISK_SCANNED;
    return all;
}

static void
index_all(struct store *store, const struct disk_segment *segment,
          const struct disk_listed *listed, size_t count)
{
    /* Later ones first: what is there already is later. */
    while (count-- > 0) {
        const struct disk_key key = {listed[count].url_hash, listed[count].variant_hash};
        const uint64_t length = (uint64_t)listed[count].length * DISK_UNIT;
        const struct disk_place place = {
            .segment = segment->id,
            .offset = listed[count].offset,
            .length = length < UINT32_MAX ? (uint32_t)length : UINT32_MAX,
        };

        (void)disk_index_put(&store->index, &key, &place, true);
    }
}

/* The newest segment, if it has a footer and no damage: appending goes on there. */
struct newest {
    struct disk_segment *segment;
    struct disk_listed *listed; /* allocated */
    size_t count;
};

/* What does not verify is of no use. What could not be opened or read may be later. The newest one
 * is empty if a process was killed when it began it. */
static void
refuse_segment(struct store *store, uint64_t number, bool is_newest, int error)
{
    if (error == ENODATA && is_newest) {
        disk_log_unlink(&store->log, number);
        return;
    }
    if (error == EINVAL || error == ENODATA) {
        store_add(store, STORE_DAMAGED, 1);
        store_say(store, STORE_WARNING,
                  "segment-%016llx is damaged, or another store's, and is removed",
                  (unsigned long long)number);
        disk_log_unlink(&store->log, number);
        return;
    }
    store_add(store, STORE_READ_ERRORS, 1);
    store_say(store, STORE_WARNING, "segment-%016llx cannot be used%s: %s",
              (unsigned long long)number, error == ENOENT ? "" : ", and is left as it is",
              disk_strerror(error));
    if (error != ENOENT)
        disk_log_leave(&store->log, number);
}

/* `newest` is NULL for another one. */
static void
load_segment(struct store *store, uint64_t number, struct newest *newest)
{
    struct disk_segment *segment = disk_log_adopt(&store->log, number);
    struct disk_listed *listed;
    size_t count = 0;
    bool ended, failed = false;

    if (!segment) {
        refuse_segment(store, number, newest != NULL, errno);
        return;
    }
    listed = disk_segment_footer(segment, &count);
    ended = listed != NULL;
    if (!listed)
        listed = scan(store, segment, &count, &ended, &failed);
    if (listed)
        index_all(store, segment, listed, count);
    if (ended && count && newest) {
        *newest = (struct newest){segment, listed, count};
        return;
    }
    free(listed);
    if (count == 0 && !failed && !disk_writer_is_to_stop(store))
        disk_log_remove(&store->log, segment);
}

bool
disk_load(struct store *store)
{
    struct newest newest = {.listed = NULL};
    const size_t all = store->number_count;
    bool stops = false;
    size_t count = 0;

    for (size_t i = 0; i < all; i++)
        count += disk_segment_count(&store->log, store->numbers[i]);
    disk_index_reserve(&store->index, count);
    while (store->number_count && !stops) {
        const bool first = store->number_count == all;

        load_segment(store, store->numbers[--store->number_count], first ? &newest : NULL);
        stops = disk_writer_is_to_stop(store);
    }
    if (stops || !newest.listed ||
        !disk_log_resume(&store->log, newest.segment, newest.listed, newest.count))
        free(newest.listed);
    if (stops)
        return false;
    free(store->numbers);
    store->numbers = NULL;
    return true;
}
