/*
 * An object: a version of what a URL has, from the first miss on. It is busy while it is filled,
 * then ready, or failed.
 *
 * A URL may have several objects, which differ by the variant: bytes that the cache compares and
 * does not interpret, such as the field values that select a representation (RFC 9111, section
 * 4.1).
 *
 * The head (status, field lines) is complete before the first waiter is notified of it,
 * and does not change. The body grows: published bytes never move, and the published length only
 * grows and is read without a lock. A body whose length is known when the head arrives, and is at
 * most OBJECT_INLINE_MAX, is in the object's own allocation; any other body is a list of segments
 * of 16 KiB to 256 KiB, or is in the one segment that it was read into.
 *
 * A body that will not be stored may be windowed: while it grows, the segments that all its readers
 * have passed are freed (fill.h, cache_fill_unstore()).
 *
 * Objects are counted by references and freed with the last one, on any thread. The cache does not
 * interpret head and body.
 */
#ifndef SUNPROXY_CACHE_OBJECT_H
#define SUNPROXY_CACHE_OBJECT_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/memory_account.h"
#include "base/span.h"

enum object_state {
    OBJECT_BUSY,   /* is being filled; before its head it has a URL and a variant only */
    OBJECT_READY,  /* complete; does not change any more */
    OBJECT_FAILED, /* its filling has failed; in no table */
};

/*
 * A freshness lifetime in 32 bits: milliseconds below OBJECT_SECONDS (24 days), seconds above it
 * (34 years); above OBJECT_EXPIRED the object has been expired at an age of that number of seconds
 * and is not fresh to any request, whenever that arrived.
 */
#define OBJECT_SECONDS 0x80000000u
#define OBJECT_EXPIRED 0xc0000000u
#define OBJECT_UNLIMITED UINT32_MAX

struct cache_fill;
struct segment;

struct object {
    _Atomic uint32_t references;
    _Atomic uint8_t state;       /* of enum object_state */
    bool segmented : 1;          /* the body is a list of segments, not inline */
    bool short_lived : 1;        /* object_parts.short_lived */
    uint16_t status;             /* the origin's status code; of a failure its number */
    uint32_t url_len : 18;       /* at most OBJECT_MAX_META, as fields_len */
    uint32_t variant_len : 14;   /* at most OBJECT_MAX_VARIANT */
    _Atomic uint32_t notes;      /* object_parts.notes; a bit may be cleared later */
    uint32_t fields_len : 18;
    uint32_t tags_len : 14;    /* at most OBJECT_MAX_TAG_BYTES */
    uint32_t inline_size;      /* bytes allocated for an inline body */
    uint32_t fetch_us;         /* duration of the fetch, saturating; set when ready */
    _Atomic uint32_t lifetime; /* freshness lifetime from fetched_us on; set when ready, and again
                                  when a cache expires the object */
    int64_t fetched_us;        /* monotonic clock: when the response's age was 0; set when ready, or
                                  with the head (struct object_head). Of an entry that requests
                                  pass: the end of that (table.h) */
    _Atomic uint64_t published;     /* OBJECT_LENGTH of the body, and what is known of its bytes */
    struct memory_account *account; /* charged (MEMORY_PAGES) while no cache counts it; or NULL */
    LIST_HEAD(, cache_fill)
    fills;        /* under the shard's lock, while the object is an entry's: the
                     versions that are being filled there, the newest first */
    char bytes[]; /* URL, variant, field lines, tags; then the inline body and a zero
                     byte that is not part of it, or, aligned, the list of segments */
};

_Static_assert(sizeof(struct object) == 64, "a hit reads one cache line of an object");

#define OBJECT_MAX_META 131072u
#define OBJECT_MAX_VARIANT 8192u
#define OBJECT_MAX_TAG_BYTES 8192u
#define OBJECT_MAX_TAGS 64u
#define OBJECT_INLINE_MAX 1048576u
#define OBJECT_MAX_FAILURE 383u /* bytes of a failure's sentence; longer ones are cut off */
#define OBJECT_HAS_ZERO ((uint64_t)1 << 63)
#define OBJECT_NO_ZERO ((uint64_t)1 << 62) /* neither of the two: it was not searched */
#define OBJECT_LENGTH (OBJECT_NO_ZERO - 1)

/* Acquires: after OBJECT_READY the whole object may be read. */
static inline enum object_state
object_state(const struct object *object)
{
    return (enum object_state)atomic_load_explicit(&object->state, memory_order_acquire);
}

/* Bytes of the body published so far. Acquires: they may be read. */
static inline uint64_t
object_length(const struct object *object)
{
    return atomic_load_explicit(&object->published, memory_order_acquire) & OBJECT_LENGTH;
}

/* Of a ready object: its freshness lifetime; INT64_MAX if it is not limited. */
static inline int64_t
object_lifetime(const struct object *object)
{
    uint32_t lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed);

    if (lifetime < OBJECT_SECONDS)
        return (int64_t)lifetime * 1000;
    if (lifetime == OBJECT_UNLIMITED)
        return INT64_MAX;
    return (int64_t)(lifetime & ~OBJECT_EXPIRED) * 1000000;
}

/* Of a ready object: the age of the response at `now_us` of the monotonic clock. */
static inline int64_t
object_age(const struct object *object, int64_t now_us)
{
    return now_us - object->fetched_us;
}

/*
 * Of a ready object: may it answer a request that arrived at `now_us` of the monotonic clock? That
 * may be earlier than the response, where the request has waited. An object without a lifetime is
 * validated before each use (no-cache), so it is not fresh then either.
 */
static inline bool
object_is_fresh(const struct object *object, int64_t now_us)
{
    uint32_t lifetime = atomic_load_explicit(&object->lifetime, memory_order_relaxed);

    if (lifetime < OBJECT_SECONDS)
        return lifetime && object_age(object, now_us) < (int64_t)lifetime * 1000;
    if (lifetime >= OBJECT_EXPIRED)
        return lifetime == OBJECT_UNLIMITED;
    return object_age(object, now_us) < object_lifetime(object);
}

static inline struct span
object_url(const struct object *object)
{
    return span_of(object->bytes, object->url_len);
}

static inline struct span
object_variant(const struct object *object)
{
    return span_of(object->bytes + object->url_len, object->variant_len);
}

static inline struct span
object_fields(const struct object *object)
{
    return span_of(object->bytes + object->url_len + object->variant_len, object->fields_len);
}

/* Words that name groups of objects (cache_purge()), with one space between two. */
static inline struct span
object_tags(const struct object *object)
{
    struct span fields = object_fields(object);

    return span_of(fields.ptr + fields.len, object->tags_len);
}

/* A position in a body; all zero is its beginning. It is valid for one object only. */
struct object_place {
    struct segment *segment; /* at or before the offset; NULL: the search begins at the first one */
    uint64_t offset;         /* in the whole body */
};

/*
 * The next run of published bytes at *place, up to the end of its segment; *place is then behind
 * it. Empty if nothing more has been published. Takes no lock. [any thread that has a reference]
 *
 * An object that is still being filled may be or become windowed. Its reader begins at the zero
 * place, before its first cache_waiter_taken(), and goes on from where the last call left *place;
 * it may move place->offset back within that run. Bytes before the offset that it has reported as
 * taken may be freed at any time, and the others too once it has left the object.
 */
struct span object_read(const struct object *object, struct object_place *place);

/*
 * Of a ready object: is a zero byte in the body? Then no C string can carry it. Searched once, and
 * noted in the object. [any thread that has a reference]
 */
bool object_has_zero_byte(const struct object *object);

/* Is the beginning of the body freed when it has been read? Sequentially consistent. [any thread
 * that has a reference] */
bool object_is_windowed(const struct object *object);

/*
 * The published body as one run. After the body of a ready object is a zero byte that is not part
 * of it. Only if the object is not segmented.
 */
static inline struct span
object_body(const struct object *object)
{
    struct span tags = object_tags(object);

    return span_of(tags.ptr + tags.len, (size_t)object_length(object));
}

/* Of a waiter's failure (cache/fill.h): a sentence. Its number is object->status. */
static inline struct span
object_failure(const struct object *object)
{
    return object_body(object);
}

/* One more reference. Any thread that has one may take another. */
static inline struct object *
object_retain(struct object *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
    return object;
}

/* Drops the reference in *object and clears it; the last one frees. *object may be NULL. */
void object_release(struct object **object);

/* Bytes of its allocations, as they are charged; of a busy object, so far. */
size_t object_size(const struct object *object);

/*
 * A segment for a whole body that is read into it before there is an object (struct object_head),
 * with bytes at a multiple of `alignment`, a power of two. NULL with ENOMEM, also beyond ARENA_MAX.
 * segments_free(), for which NULL is harmless, frees it unless an object has taken it.
 */
struct segment *segment_make(size_t size, size_t alignment, char **bytes);
void segments_free(struct segment *chain);

/* ---- for cache/ alone ------------------------------------------------------------------------ */

/* What an object is made of. */
struct object_parts {
    struct span url;
    struct span variant;
    struct span fields;
    struct span tags;
    unsigned status;
    unsigned notes; /* bits about the field lines, for those that read them; not interpreted but by
                       cache_request.stale_notes, 0 where none are made */
    bool segmented;
    uint32_t inline_size; /* if not segmented: the most bytes that its body can have */
    struct segment *segment; /* has the whole body already, which the object takes; segmented is
                                set then. Or NULL */
    struct span body;        /* where in the segment */
    bool short_lived;     /* no page: from malloc(), since what is freed soon leaves gaps between
                             the pages of the arena that only smaller blocks fit */
    struct memory_account *account;
};

/*
 * A busy object with one reference and an empty body, or NULL without memory. It calls no hook of
 * the account and charges nothing.
 */
struct object *object_make(const struct object_parts *parts);

/*
 * object_make() of an object that is charged to its account with `shared` bytes of segments: 0,
 * ENOMEM or ENOBUFS (the account is used up).
 */
int object_make_charged(const struct object_parts *parts, size_t shared, struct object **object);

/*
 * Appends to the body and publishes it: 0, ENOMEM, ENOBUFS (the account is used up) or EFBIG (more
 * than inline_size); after an error the body is as it was. A new segment has at most `limit` bytes
 * or `len`, whichever is more. [one thread at a time; the caller has no lock]
 */
int object_append(struct object *object, const void *bytes, size_t len, uint64_t limit);

/* object_is_windowed() from now on. The body is segmented, and the object not complete. */
void object_set_windowed(struct object *object);

/*
 * Unlinks from a windowed body the segments that end before `offset` and before the published
 * length, whose charge ends, and adds them to the chain *trimmed. Every reader has read a byte at
 * or behind `offset`. [one thread at a time, beside object_append()]
 */
void object_trim(struct object *object, uint64_t offset, struct segment **trimmed);

/*
 * A copy of a segmented object with its body inline, charged to the same account; NULL if account
 * or memory do not suffice. The object has its whole body. [as object_append()]
 */
struct object *object_compact(const struct object *object);

/*
 * An object with the body of a ready one under another head, charged to parts->account: a segmented
 * body is shared, an inline one copied (parts->segmented and inline_size are ignored). As
 * object_make_charged().
 */
int object_remake(const struct object *ready, const struct object_parts *parts,
                  struct object **object);

/*
 * Makes the object ready. `fetched_us` is the moment of the monotonic clock when the response's age
 * was 0. [as object_append()]
 */
void object_complete(struct object *object, uint32_t fetch_us, int64_t fetched_us,
                     uint32_t lifetime);

/* A duration as object->lifetime has it, rounded down; INT64_MAX is OBJECT_UNLIMITED. */
uint32_t object_lifetime_of(int64_t lifetime_us);

/*
 * A ready object is fresh to no request from now on; its lifetime ended now, or when it ended
 * anyway. False if that has been done before. [under the shard's lock]
 */
bool object_expire(struct object *object, int64_t now_us);

/* A ready object is fresh for at most this long, an expired one not at all. [any thread] */
void object_shorten(struct object *object, int64_t lifetime_us);

/* Its filling has failed: from now on it is charged as MEMORY_FAILED. Under the shard's lock. */
void object_fail(struct object *object);

/* The cache drops its reference in *object and clears it. */
void object_release_from_cache(struct object **object);

#endif
