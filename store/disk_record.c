#include "store/disk_record.h"

#include "base/hash.h"
#include "base/xxh3.h"

/* Compiled in, as in base/hash.c. */
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(struct disk_head) == 104, "no padding on disk");

uint64_t
disk_sum(uint64_t seed, const void *bytes, size_t len)
{
    return xxh3_sum(seed, bytes, len);
}

static size_t
parts_of(uint64_t body_len)
{
    return (size_t)((body_len + DISK_PART - 1) / DISK_PART);
}

/* Bytes before the checksums of parts. */
static size_t
texts_end(const struct disk_head *head)
{
    size_t len = sizeof(*head) + (size_t)head->url_len + head->variant_len + head->names_len +
                 head->fields_len + head->tags_len;

    return (len + 7) / 8 * 8;
}

size_t
disk_head_len(const struct disk_head *head)
{
    return texts_end(head) + parts_of(head->body_len) * sizeof(uint64_t);
}

uint64_t
disk_record_len(const struct disk_head *head)
{
    return (disk_head_len(head) + head->body_len + DISK_UNIT - 1) / DISK_UNIT * DISK_UNIT;
}

/* A part that is in another record, or another part of this one, is damaged. */
static uint64_t
part_seed(const struct disk_head *head, uint64_t seed, size_t part)
{
    return hash64_uint(seed ^ head->position) + part;
}

/* Appends the checksums of the parts of a body, whose runs end anywhere. */
static void
write_sums(char *out, uint64_t seed, const struct disk_head *head, const struct object *object)
{
    struct object_place place = {0};
    struct span run = {0};

    for (size_t part = 0; part < parts_of(head->body_len); part++) {
        uint64_t left = head->body_len - part * DISK_PART, sum;
        XXH3_state_t state = {0};

        XXH3_64bits_reset_withSeed(&state, part_seed(head, seed, part));
        if (left > DISK_PART)
            left = DISK_PART;
        while (left) {
            size_t len;

            if (run.len == 0)
                run = object_read(object, &place);
            len = run.len < left ? run.len : (size_t)left;
            XXH3_64bits_update(&state, run.ptr, len);
            run = span_of(run.ptr + len, run.len - len);
            left -= len;
        }
        sum = XXH3_64bits_digest(&state);
        memcpy(out + part * sizeof(sum), &sum, sizeof(sum));
    }
}

#define SUMMED offsetof(struct disk_head, body_len)

void
disk_head_write(char *out, uint64_t seed, struct disk_head *head, const struct disk_record *texts,
                const struct object *object)
{
    const size_t end = texts_end(head);
    char *at = out + sizeof(*head);

    head->magic = DISK_RECORD_MAGIC;
    head->head_len = (uint32_t)disk_head_len(head);
    at = span_put(at, texts->url);
    at = span_put(at, texts->variant);
    at = span_put(at, texts->names);
    at = span_put(at, texts->fields);
    at = span_put(at, texts->tags);
    memset(at, 0, (size_t)(out + end - at));
    write_sums(out + end, seed, head, object);
    memcpy(out, head, sizeof(*head));
    head->sum = disk_sum(seed, out + SUMMED, head->head_len - SUMMED);
    memcpy(out, head, sizeof(*head));
}

/* Are the lengths those that a store writes, and those of this head? */
static bool
lengths_are_valid(const struct disk_head *head)
{
    return head->url_len <= OBJECT_MAX_META && head->variant_len <= OBJECT_MAX_VARIANT &&
           head->names_len <= OBJECT_MAX_VARIANT && head->fields_len <= OBJECT_MAX_META &&
           head->tags_len <= OBJECT_MAX_TAG_BYTES && head->body_len < (uint64_t)1 << 40 &&
           head->head_len == disk_head_len(head);
}

bool
disk_head_is_likely(const struct disk_head *head)
{
    return head->magic == DISK_RECORD_MAGIC && lengths_are_valid(head);
}

bool
disk_head_read(const char *bytes, size_t len, uint64_t seed, struct disk_record *record)
{
    struct disk_head *head = &record->head;
    const char *at = bytes + sizeof(*head);

    if (len < sizeof(*head))
        return false;
    memcpy(head, bytes, sizeof(*head));
    if (!disk_head_is_likely(head) || head->head_len > len ||
        head->sum != disk_sum(seed, bytes + SUMMED, head->head_len - SUMMED))
        return false;
    record->url = span_of(at, head->url_len);
    record->variant = span_of(at += head->url_len, head->variant_len);
    record->names = span_of(at += head->variant_len, head->names_len);
    record->fields = span_of(at += head->names_len, head->fields_len);
    record->tags = span_of(at + head->fields_len, head->tags_len);
    record->sums = bytes + texts_end(head);
    return true;
}

bool
disk_part_verify(const struct disk_record *record, uint64_t seed, size_t part, const void *bytes,
                 size_t len)
{
    uint64_t sum;

    memcpy(&sum, record->sums + part * sizeof(sum), sizeof(sum));
    return sum == disk_sum(part_seed(&record->head, seed, part), bytes, len);
}

void
disk_record_times(const struct disk_head *head, const struct disk_now *now,
                  int64_t expired_us, int64_t *born_us, int64_t *lifetime_us)
{
    const struct object stored = {.lifetime = head->lifetime};
    const bool same = head->boot == now->boot;
    int64_t age_us =
        same ? now->monotonic_us - head->born_us : now->wall_us - head->born_wall_us;

    *lifetime_us = age_us < 0 && !same ? 0 : object_lifetime(&stored);
    age_us = age_us < 0 ? 0 : age_us;
    *born_us = now->monotonic_us - age_us;
    if (expired_us == INT64_MAX)
        return;
    /* Whatever the clocks say, that was before now: it is fresh to no request from now on. */
    expired_us = expired_us > now->monotonic_us ? 0 : expired_us - *born_us;
    if (*lifetime_us > expired_us)
        *lifetime_us = expired_us < 0 ? 0 : expired_us;
}

bool
disk_record_reseal(char *bytes, size_t len, uint64_t seed, uint64_t new_seed, uint64_t position,
                   struct disk_record *record)
{
    const struct disk_head before = record->head;
    struct disk_head *head = &record->head;
    char *sums = bytes + texts_end(head);
    uint64_t left = head->body_len;

    if (left > len || head->head_len > len - left)
        return false;
    head->position = position;
    for (size_t part = 0; left; part++) {
        const char *at = bytes + head->head_len + part * DISK_PART;
        const size_t size = left < DISK_PART ? (size_t)left : DISK_PART;
        uint64_t sum;

        memcpy(&sum, sums + part * sizeof(sum), sizeof(sum));
        if (sum != disk_sum(part_seed(&before, seed, part), at, size))
            return false;
        sum = disk_sum(part_seed(head, new_seed, part), at, size);
        memcpy(sums + part * sizeof(sum), &sum, sizeof(sum));
        left -= size;
    }
    memcpy(bytes, head, sizeof(*head));
    head->sum = disk_sum(new_seed, bytes + SUMMED, head->head_len - SUMMED);
    memcpy(bytes, head, sizeof(*head));
    return true;
}
