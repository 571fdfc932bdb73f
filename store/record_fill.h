/*
 * Filling a version (cache/fill.h) with what a record has (disk_record.h), wherever that was read.
 * On the thread that owns the fill.
 */
#ifndef SUNPROXY_STORE_RECORD_FILL_H
#define SUNPROXY_STORE_RECORD_FILL_H

#include "base/buf.h"
#include "cache/fill.h"
#include "store/disk_record.h"
#include "store/source.h"

/* Is it the record that was looked for, or for the URL that of one of its variants? */
bool record_fill_is_wanted(const struct cache_fill *fill, const struct disk_record *record);

/*
 * Moves the fill of a URL that varies by the record's names to the variant that a request with
 * these field lines selects, and appends that. False if it cannot.
 */
bool record_fill_vary(struct cache_fill *fill, const struct disk_record *record, struct span fields,
                      struct buf *variant);

/* As disk_record_times(), within what the review permits, whose result it returns. */
enum http_reason record_fill_times(const struct source_review *review,
                                   const struct disk_record *record, const struct disk_now *now,
                                   int64_t expired_us, int64_t *born_us, int64_t *lifetime_us);

/*
 * Fills the head: the age was 0 at `born_us`, and it is fresh for `lifetime_us` from then on.
 * `own` has the rest: notes (which of HTTP_KNOWN_SAVED and HTTP_KNOWN_UNSAVED it has), account, and
 * the segment with the body or NULL. As cache_fill_head().
 */
int record_fill_head(struct cache_fill *fill, const struct disk_record *record, int64_t born_us,
                     int64_t lifetime_us, struct object_head *own);

/* Fails the fill: the requests that wait look up again. The fill is still to be freed. */
void record_fill_send_back(struct cache_fill *fill);

#endif
