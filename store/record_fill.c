#include "store/record_fill.h"

#include "http/known_fields.h"
#include "http/variant.h"

bool
record_fill_is_wanted(const struct cache_fill *fill, const struct disk_record *record)
{
    const struct object *name = fill->object;
    const struct span variant = object_variant(name);

    return span_equal(record->url, object_url(name)) &&
           (span_equal(record->variant, variant) || (variant.len == 0 && record->names.len));
}

bool
record_fill_vary(struct cache_fill *fill, const struct disk_record *record, struct span fields,
                 struct buf *variant)
{
    struct http_vary vary;

    return http_vary_parse(&vary, record->names) == HTTP_VARY_FIELDS &&
           http_variant_key(&vary, fields, variant) &&
           cache_fill_vary(fill, record->names, buf_span(variant));
}

enum http_reason
record_fill_times(const struct source_review *review, const struct disk_record *record,
                  const struct disk_now *now, int64_t expired_us, int64_t *born_us,
                  int64_t *lifetime_us)
{
    struct source_head head = {
        .url = record->url,
        .fields = record->fields,
        .status = record->head.status,
        .notes = record->head.notes,
        .fetch_us = record->head.fetch_us,
    };
    enum http_reason refusal;

    disk_record_times(&record->head, now, expired_us, born_us, lifetime_us);
    head.born_us = *born_us;
    head.lifetime_us = *lifetime_us;
    refusal = review->review ? review->review(review, &head) : HTTP_REASON_NONE;
    *lifetime_us = head.lifetime_us;
    return refusal;
}

int
record_fill_head(struct cache_fill *fill, const struct disk_record *record, int64_t born_us,
                 int64_t lifetime_us, struct object_head *own)
{
    const struct disk_head *head = &record->head;

    own->status = head->status;
    own->notes |= head->notes & ~(unsigned)(HTTP_KNOWN_SAVED | HTTP_KNOWN_UNSAVED);
    own->fields = record->fields;
    own->tags = record->tags;
    own->length = (int64_t)head->body_len;
    own->max_length = head->body_len;
    own->fetched_us = born_us;
    own->lifetime = lifetime_us ? object_lifetime_of(lifetime_us) : OBJECT_EXPIRED;
    own->fresh_until_us = lifetime_us == INT64_MAX ? 0 : born_us + lifetime_us;
    return cache_fill_head(fill, own);
}

static bool
all(const struct object_waiter *waiter, void *context)
{
    (void)waiter;
    (void)context;
    return true;
}

void
record_fill_send_back(struct cache_fill *fill)
{
    cache_fill_fail(fill, 0, "", all, NULL);
}
