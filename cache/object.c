#include "cache/object.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"

#define SEGMENT_MIN ((size_t)16 << 10)
#define SEGMENT_MAX ((size_t)256 << 10)

/* A part of a body. Constant once a byte beyond it is published, until it is unlinked. */
struct segment {
    struct segment *next;
    uint64_t start; /* its first byte's offset in the body */
    size_t size;
    _Atomic uint32_t owners; /* of a first one: the objects that have the list (object_remake()) */
    char *bytes;             /* of the body, within `memory` */
    char memory[];
};

#define SEGMENT_OVERHEAD (sizeof(struct segment) + sizeof(size_t)) /* with the arena's header */

/* The list of segments of an object. Written by the thread that appends. */
struct segments {
    struct segment *first; /* constant once a byte is published, unless windowed */
    struct segment *last;
    _Atomic size_t allocated; /* bytes, the structs included */
    _Atomic bool windowed;
};

/* As it is charged, unless the body is in it already. NULL: 0. */
static size_t
segment_size(const struct segment *segment)
{
    return segment ? (size_t)(segment->bytes + segment->size - (const char *)segment) : 0;
}

/* Bytes of all that is in front of the body. */
static size_t
meta_size(const struct object *object)
{
    return (size_t)object->url_len + object->variant_len +
           object->fields_len + object->tags_len;
}

static size_t
align_up(size_t n)
{
    return (n + _Alignof(struct segments) - 1) / _Alignof(struct segments) *
           _Alignof(struct segments);
}

/* sizeof(struct object) is a multiple of the alignment, so that bytes[] is aligned. */
static struct segments *
segments_of(const struct object *object)
{
    return (struct segments *)(void *)((char *)(uintptr_t)object->bytes +
                                       align_up(meta_size(object)));
}

static size_t
whole_size(size_t meta, bool segmented, size_t inline_size)
{
    return sizeof(struct object) +
           (segmented ? align_up(meta) + sizeof(struct segments) : meta + inline_size + 1);
}

struct segment *
segment_make(size_t size, size_t alignment, char **bytes)
{
    struct segment *segment = arena_alloc(sizeof(*segment) + size + alignment);

    if (segment) {
        *bytes = segment->memory + (-(uintptr_t)segment->memory & (alignment - 1));
        *segment = (struct segment){.size = size, .owners = 1, .bytes = *bytes};
    }
    return segment;
}

/* Bytes of the allocation of an object. */
static size_t
make_size(const struct object_parts *parts)
{
    return whole_size(parts->url.len + parts->variant.len + parts->fields.len + parts->tags.len,
                      parts->segmented, parts->inline_size);
}

size_t
object_size(const struct object *object)
{
    size_t size = whole_size(meta_size(object), object->segmented, object->inline_size);

    if (object->segmented)
        size += atomic_load_explicit(&segments_of(object)->allocated, memory_order_relaxed);
    return size;
}

struct object *
object_make(const struct object_parts *parts)
{
    size_t size = make_size(parts);
    struct object *object = parts->short_lived ? malloc(size) : arena_alloc(size);
    char *at;

    if (!object)
        return NULL;
    *object = (struct object){
        .references = 1,
        .state = OBJECT_BUSY,
        .segmented = parts->segmented,
        .short_lived = parts->short_lived,
        .status = (uint16_t)parts->status,
        .url_len = (uint32_t)parts->url.len & 0x3ffffu,
        .variant_len = (uint32_t)parts->variant.len & 0x3fffu,
        .notes = parts->notes,
        .fields_len = (uint32_t)parts->fields.len & 0x3ffffu,
        .tags_len = (uint32_t)parts->tags.len & 0x3fffu,
        .inline_size = parts->segmented ? 0 : parts->inline_size,
        .lifetime = OBJECT_UNLIMITED,
        .account = parts->account,
    };
    at = span_put(object->bytes, parts->url);
    at = span_put(at, parts->variant);
    at = span_put(at, parts->fields);
    span_put(at, parts->tags);
    if (parts->segmented)
        *segments_of(object) = (struct segments){.first = parts->segment,
                                                 .last = parts->segment,
                                                 .allocated = segment_size(parts->segment)};
    if (parts->segment) {
        parts->segment->bytes = (char *)(uintptr_t)parts->body.ptr;
        parts->segment->size = parts->body.len;
        atomic_init(&object->published, parts->body.len);
    }
    return object;
}

int
object_make_charged(const struct object_parts *parts, size_t shared, struct object **object)
{
    size_t size = make_size(parts) + shared + segment_size(parts->segment);

    if (!memory_charge(parts->account, MEMORY_PAGES, size))
        return ENOBUFS;
    *object = object_make(parts);
    if (!*object && memory_reclaim(parts->account, size))
        *object = object_make(parts);
    if (*object)
        return 0;
    memory_uncharge(parts->account, MEMORY_PAGES, size);
    return ENOMEM;
}

void
segments_free(struct segment *chain)
{
    while (chain) {
        struct segment *next = chain->next;

        arena_free(chain);
        chain = next;
    }
}

static void
object_free(struct object *object)
{
    if (object->segmented) {
        struct segment *first = segments_of(object)->first;

        if (first && atomic_fetch_sub_explicit(&first->owners, 1, memory_order_acq_rel) == 1)
            segments_free(first);
    }
    if (object->short_lived)
        free(object);
    else
        arena_free(object);
}

/* Drops a reference; true for the last one. */
static bool
object_unref(struct object *object)
{
    /* Acquire as well as release: what other holders did happens before the free. */
    return atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1;
}

/* As what an object that is in no cache is charged. */
static enum memory_kind
kind_of(const struct object *object)
{
    return object_state(object) == OBJECT_FAILED ? MEMORY_FAILED : MEMORY_PAGES;
}

void
object_release(struct object **object)
{
    struct object *o = *object;

    *object = NULL;
    if (o && object_unref(o)) {
        memory_uncharge(o->account, kind_of(o), object_size(o));
        object_free(o);
    }
}

void
object_fail(struct object *object)
{
    memory_uncharge(object->account, MEMORY_PAGES, object_size(object));
    memory_charge_anyway(object->account, MEMORY_FAILED, object_size(object));
    atomic_store_explicit(&object->state, OBJECT_FAILED, memory_order_release);
}

/* ---- in a cache ------------------------------------------------------------------------------ */

void
object_release_from_cache(struct object **object)
{
    struct object *o = *object;
    struct memory_account *account;
    size_t size;

    *object = NULL;
    if (!o)
        return;
    account = o->account;
    size = object_size(o);
    /*
     * Charged only if others refer to it. They may have freed it by now, and uncharged it: the sum
     * is the same whichever comes first.
     */
    if (object_unref(o))
        object_free(o);
    else
        memory_charge_anyway(account, MEMORY_PAGES, size);
}

/* ---- the body -------------------------------------------------------------------------------- */

static char *
inline_body(const struct object *object)
{
    return (char *)(uintptr_t)object->bytes + meta_size(object);
}

struct span
object_read(const struct object *object, struct object_place *place)
{
    uint64_t length = object_length(object), offset = place->offset, end;
    struct segment *segment = place->segment;

    if (offset >= length)
        return span_of(NULL, 0);
    place->offset = length;
    if (!object->segmented)
        return span_of(inline_body(object) + offset, (size_t)(length - offset));
    if (!segment)
        segment = segments_of(object)->first;
    /* What is published behind a segment is in the next one, so that there is one. */
    while (offset - segment->start >= segment->size)
        segment = segment->next;
    end = segment->start + segment->size;
    if (end > length)
        end = length;
    *place = (struct object_place){.segment = segment, .offset = end};
    return span_of(segment->bytes + (offset - segment->start), (size_t)(end - offset));
}

bool
object_has_zero_byte(const struct object *object)
{
    struct object *noted = (struct object *)(uintptr_t)object;
    uint64_t published = atomic_load_explicit(&object->published, memory_order_acquire);
    struct object_place place = {0};
    struct span run;

    if (!(published & ~OBJECT_LENGTH)) {
        do
            run = object_read(object, &place);
        while (run.len && !span_has_zero(run));
        published = run.len ? OBJECT_HAS_ZERO : OBJECT_NO_ZERO;
        atomic_fetch_or_explicit(&noted->published, published, memory_order_relaxed);
    }
    return published & OBJECT_HAS_ZERO;
}

/*
 * Makes `len` more bytes of the body available, in the last segment and a new one behind it: 0 or
 * an errno.
 */
static int
segments_grow(struct object *object, uint64_t length, size_t len, uint64_t limit)
{
    struct segments *list = segments_of(object);
    struct segment *last = list->last, *segment;
    uint64_t end = last ? last->start + last->size : 0;
    size_t size, bytes;

    if (len <= end - length)
        return 0;
    len -= (size_t)(end - length);
    size = last ? 2 * (last->size + SEGMENT_OVERHEAD) : SEGMENT_MIN;
    size = (size < SEGMENT_MAX ? size : SEGMENT_MAX) - SEGMENT_OVERHEAD;
    if (size > limit)
        size = (size_t)limit;
    if (size < len)
        size = len;
    bytes = sizeof(*segment) + size;
    if (!memory_charge(object->account, MEMORY_PAGES, bytes))
        return ENOBUFS;
    segment = memory_arena_alloc(object->account, bytes);
    if (!segment) {
        memory_uncharge(object->account, MEMORY_PAGES, bytes);
        return ENOMEM;
    }
    *segment = (struct segment){.start = end, .size = size, .owners = 1, .bytes = segment->memory};
    if (last)
        last->next = segment;
    else
        list->first = segment;
    list->last = segment;
    atomic_fetch_add_explicit(&list->allocated, bytes, memory_order_relaxed);
    return 0;
}

/* Copies to the body from `at` on, which is in `segment` or the one behind it. */
static void
segments_put(struct segment *segment, uint64_t at, const char *bytes, size_t len)
{
    while (len) {
        size_t part;

        while (at - segment->start >= segment->size)
            segment = segment->next;
        part = (size_t)(segment->start + segment->size - at);
        if (part > len)
            part = len;
        memcpy(segment->bytes + (at - segment->start), bytes, part);
        at += part;
        bytes += part;
        len -= part;
    }
}

/*
 * Sequentially consistent, as is the count of streaming waiters that cache_fill_append() reads
 * afterwards: a waiter that joins either is counted there or reads this length.
 */
static void
publish(struct object *object, uint64_t length)
{
    atomic_store_explicit(&object->published, length, memory_order_seq_cst);
}

int
object_append(struct object *object, const void *bytes, size_t len, uint64_t limit)
{
    uint64_t length = object_length(object);

    if (len == 0)
        return 0;
    if (object->segmented) {
        struct segment *last = segments_of(object)->last;
        int error = segments_grow(object, length, len, limit);

        if (error)
            return error;
        segments_put(last ? last : segments_of(object)->first, length, bytes, len);
    } else {
        if (len > object->inline_size - length)
            return EFBIG;
        memcpy(inline_body(object) + length, bytes, len);
    }
    publish(object, length + len);
    return 0;
}

bool
object_is_windowed(const struct object *object)
{
    return object->segmented &&
           atomic_load_explicit(&segments_of(object)->windowed, memory_order_seq_cst);
}

void
object_set_windowed(struct object *object)
{
    atomic_store_explicit(&segments_of(object)->windowed, true, memory_order_seq_cst);
}

/*
 * A segment is kept until a byte behind it has been read: a reader's place still refers to it when
 * it has read the segment's last byte. A published byte behind it also shows that it is not the
 * last segment, the only one that a thread which appends may be writing.
 */
void
object_trim(struct object *object, uint64_t offset, struct segment **trimmed)
{
    struct segments *list = segments_of(object);
    uint64_t length = object_length(object), bytes = 0;
    struct segment *segment;

    if (offset > length)
        offset = length;
    if (offset == 0)
        return; /* the first segment may be linked just now */
    while (segment = list->first, segment->start + segment->size < offset) {
        bytes += sizeof(*segment) + segment->size;
        list->first = segment->next;
        segment->next = *trimmed;
        *trimmed = segment;
    }
    atomic_fetch_sub_explicit(&list->allocated, bytes, memory_order_relaxed);
    memory_uncharge(object->account, kind_of(object), bytes);
}

/* Whole seconds of a duration, less than 2^30 - 1. */
static uint32_t
in_seconds(int64_t duration_us)
{
    int64_t seconds = duration_us > 0 ? duration_us / 1000000 : 0;
    const uint32_t most = OBJECT_UNLIMITED - OBJECT_EXPIRED - 1;

    return seconds < most ? (uint32_t)seconds : most;
}

struct object *
object_compact(const struct object *object)
{
    struct object_parts parts = {
        .url = object_url(object),
        .variant = object_variant(object),
        .fields = object_fields(object),
        .tags = object_tags(object),
        .status = object->status,
        .notes = object->notes,
        .inline_size = (uint32_t)object_length(object),
        .account = object->account,
    };
    size_t size = make_size(&parts);
    struct object_place place = {0};
    const struct segment *first = segments_of(object)->first;
    struct object *copy;
    struct span run;
    char *at;

    if (first && first->bytes != first->memory)
        return NULL; /* it saves little: the body was read into it */
    /* The copy is optional: no other memory is to be freed for it. */
    if (memory_left(object->account, MEMORY_PAGES) < size ||
        !memory_charge(object->account, MEMORY_PAGES, size))
        return NULL;
    copy = object_make(&parts);
    if (!copy) {
        memory_uncharge(object->account, MEMORY_PAGES, size);
        return NULL;
    }
    at = inline_body(copy);
    while (run = object_read(object, &place), run.len)
        at = span_put(at, run);
    publish(copy, parts.inline_size);
    return copy;
}

int
object_remake(const struct object *ready, const struct object_parts *parts, struct object **object)
{
    struct object_parts same = *parts;
    uint64_t length = object_length(ready);
    struct segments *list = ready->segmented ? segments_of(ready) : NULL;
    int error;

    same.segmented = ready->segmented;
    same.inline_size = list ? 0 : (uint32_t)length;
    error = object_make_charged(
        &same, list ? atomic_load_explicit(&list->allocated, memory_order_relaxed) : 0, object);
    if (error)
        return error;
    if (!list) {
        memcpy(inline_body(*object), object_body(ready).ptr, (size_t)length);
    } else {
        *segments_of(*object) = *list;
        if (list->first)
            atomic_fetch_add_explicit(&list->first->owners, 1, memory_order_relaxed);
    }
    /* With what is known of its bytes. */
    publish(*object, atomic_load_explicit(&ready->published, memory_order_relaxed));
    return 0;
}

uint32_t
object_lifetime_of(int64_t lifetime_us)
{
    int64_t ms = lifetime_us > 0 ? lifetime_us / 1000 : 0;

    if (lifetime_us == INT64_MAX)
        return OBJECT_UNLIMITED;
    if (ms < OBJECT_SECONDS)
        return (uint32_t)ms;
    return OBJECT_SECONDS + in_seconds(lifetime_us);
}

bool
object_expire(struct object *object, int64_t now_us)
{
    uint32_t before = atomic_load_explicit(&object->lifetime, memory_order_relaxed);
    int64_t lifetime_us = object_lifetime(object), age_us = object_age(object, now_us);

    if (before >= OBJECT_EXPIRED && before != OBJECT_UNLIMITED)
        return false;
    atomic_store_explicit(&object->lifetime,
                          OBJECT_EXPIRED + in_seconds(age_us < lifetime_us ? age_us : lifetime_us),
                          memory_order_relaxed);
    return true;
}

void
object_shorten(struct object *object, int64_t lifetime_us)
{
    const uint32_t bound = object_lifetime_of(lifetime_us);
    uint32_t lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed);

    while (bound < lifetime && (lifetime < OBJECT_EXPIRED || lifetime == OBJECT_UNLIMITED) &&
           !atomic_compare_exchange_weak(&object->lifetime, &lifetime, bound))
        ;
}

void
object_complete(struct object *object, uint32_t fetch_us, int64_t fetched_us, uint32_t lifetime)
{
    if (!object->segmented)
        inline_body(object)[object_length(object)] = '\0';
    object->fetch_us = fetch_us;
    /* Where it was known with the head, readers have it already. */
    if (object->fetched_us != fetched_us)
        object->fetched_us = fetched_us;
    atomic_store_explicit(&object->lifetime, lifetime, memory_order_relaxed);
    atomic_store_explicit(&object->state, OBJECT_READY, memory_order_release);
}
