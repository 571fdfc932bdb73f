#include "store/disk_marks.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/hash.h"
#include "base/word_list.h"

#define WALK_SLOTS ((size_t)1 << 14) /* looked at under the lock, once */

void
disk_marks_init(struct disk_marks *marks)
{
    *marks = (struct disk_marks){.most = MARKS_MAX, .most_text = SIZE_MAX};
    pthread_mutex_init(&marks->lock, NULL); /* without attributes it cannot fail */
    (void)!getrandom(&marks->secret, sizeof(marks->secret), 0);
}

static void
remove_prefix(struct disk_marks *marks, size_t i)
{
    marks->text_bytes -= marks->prefixes[i].len;
    free(marks->prefixes[i].text);
    marks->prefixes[i] = marks->prefixes[--marks->prefix_count];
}

void
disk_marks_free(struct disk_marks *marks)
{
    while (marks->prefix_count)
        remove_prefix(marks, 0);
    free(marks->slots);
    pthread_mutex_destroy(&marks->lock);
}

/* Kinds have hashes of their own, none of them 0. */
static uint64_t
hash_of(enum mark_kind kind, bool soft, uint64_t name, uint64_t scope)
{
    uint64_t hash = hash64_uint(name ^ ((uint64_t)kind * 2 + soft) * HASH64_STEP) ^ scope;

    return hash ? hash : 1;
}

uint64_t
disk_mark_hash(enum mark_kind kind, bool soft, struct span name, struct span scope)
{
    return hash_of(kind, soft, hash64_bytes(name), scope.len ? hash64_bytes(scope) : 0);
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* The slot of a hash, or a free one; the table has one. */
static struct mark_slot *
slot_of(const struct disk_marks *marks, uint64_t hash)
{
    size_t i = hash64_uint(hash ^ marks->secret) & (marks->size - 1);

    while (marks->slots[i].hash && marks->slots[i].hash != hash)
        i = (i + 1) & (marks->size - 1);
    return &marks->slots[i];
}

static const struct mark_slot *
find_slot(const struct disk_marks *marks, uint64_t hash)
{
    const struct mark_slot *slot = marks->size ? slot_of(marks, hash) : NULL;

    return slot && slot->hash ? slot : NULL;
}

/* A table for this many, with the marks from this position on. */
static bool
rebuild(struct disk_marks *marks, size_t size, uint64_t position)
{
    struct disk_marks before = *marks;

    marks->slots = calloc(size, sizeof(*marks->slots));
    if (!marks->slots) {
        marks->slots = before.slots;
        return false;
    }
    marks->size = size;
    marks->used = 0;
    marks->rebuilt++;
    for (size_t i = 0; i < before.size; i++)
        if (before.slots[i].hash && before.slots[i].position >= position) {
            *slot_of(marks, before.slots[i].hash) = before.slots[i];
            marks->used++;
        }
    free(before.slots);
    return true;
}

static bool
add_slot(struct disk_marks *marks, const struct disk_mark *mark)
{
    struct mark_slot *slot = marks->size ? slot_of(marks, mark->hash) : NULL;

    if (!slot || !slot->hash) {
        if (marks->used >= marks->most ||
            (marks->used * 2 >= marks->size &&
             !rebuild(marks, marks->size ? marks->size * 2 : 64, 0)))
            return false;
        slot = slot_of(marks, mark->hash);
        marks->used++;
    }
    if (slot->position < mark->position)
        *slot = (struct mark_slot){mark->hash, mark->position, mark->us};
    return true;
}

/* ---- prefixes -------------------------------------------------------------------------------- */

static struct mark_prefix *
find_prefix(struct disk_marks *marks, const struct disk_mark *mark)
{
    for (size_t i = 0; i < marks->prefix_count; i++) {
        struct mark_prefix *prefix = &marks->prefixes[i];

        if (prefix->soft == mark->soft &&
            span_equal(span_of(prefix->text, prefix->len), mark->prefix))
            return prefix;
    }
    return NULL;
}

static bool
add_prefix(struct disk_marks *marks, const struct disk_mark *mark)
{
    struct mark_prefix *prefix = find_prefix(marks, mark);

    if (!prefix) {
        const bool fits = marks->prefix_count < MARKS_PREFIXES &&
                          mark->prefix.len <= marks->most_text - marks->text_bytes;
        char *text = fits ? malloc(mark->prefix.len + 1) : NULL;

        if (!text)
            return false;
        marks->text_bytes += mark->prefix.len;
        span_put(text, mark->prefix);
        prefix = &marks->prefixes[marks->prefix_count++];
        *prefix =
            (struct mark_prefix){.text = text, .len = mark->prefix.len, .soft = mark->soft};
    }
    if (prefix->position < mark->position) {
        prefix->position = mark->position;
        prefix->us = mark->us;
    }
    return true;
}

/* ---- marks ----------------------------------------------------------------------------------- */

static void
forget(struct disk_marks *marks, uint64_t position)
{
    if (marks->walked)
        return;
    for (size_t i = marks->prefix_count; i-- > 0;)
        if (marks->prefixes[i].position < position)
            remove_prefix(marks, i);
    if (marks->size)
        (void)rebuild(marks, marks->size, position);
}

bool
disk_marks_add(struct disk_marks *marks, const struct disk_mark *mark, uint64_t *all)
{
    const bool is_all = mark->kind == MARK_PREFIX && mark->prefix.len == 0 && !mark->soft;
    bool added;

    pthread_mutex_lock(&marks->lock);
    added =
        !is_all && (mark->kind == MARK_PREFIX ? add_prefix(marks, mark) : add_slot(marks, mark));
    if (!added) {
        if (marks->all < mark->position)
            marks->all = mark->position;
        forget(marks, marks->all);
    }
    *all = marks->all;
    pthread_mutex_unlock(&marks->lock);
    return added || is_all;
}

static enum mark_verdict
find_name(const struct disk_marks *marks, const struct disk_record *record, enum mark_kind kind,
          struct span name, uint64_t scope, int64_t *us)
{
    const uint64_t hash = hash64_bytes(name);
    const struct mark_slot *hard = find_slot(marks, hash_of(kind, false, hash, scope));
    const struct mark_slot *soft = find_slot(marks, hash_of(kind, true, hash, scope));

    if (hard && hard->position >= record->head.position)
        return MARKED_PURGED;
    if (!soft || soft->position < record->head.position)
        return MARKED_NOT;
    *us = soft->us;
    return MARKED_EXPIRED;
}

/* Scheme and authority with the slash behind them. */
static struct span
origin_of(struct span url)
{
    const char *authority = memmem(url.ptr, url.len, "://", 3), *slash;

    if (!authority)
        return url;
    authority += 3;
    slash = memchr(authority, '/', (size_t)(url.ptr + url.len - authority));
    return slash ? span_of(url.ptr, (size_t)(slash + 1 - url.ptr)) : url;
}

static enum mark_verdict
find_tags(const struct disk_marks *marks, const struct disk_record *record, int64_t *us)
{
    const uint64_t scope = hash64_bytes(origin_of(record->url));
    struct span rest = record->tags, tag;
    enum mark_verdict worst = MARKED_NOT;

    while (worst != MARKED_PURGED && words_next(&rest, &tag)) {
        enum mark_verdict one = find_name(marks, record, MARK_TAG, tag, 0, us);

        if (one > worst)
            worst = one;
        one = find_name(marks, record, MARK_TAG, tag, scope, us);
        if (one > worst)
            worst = one;
    }
    return worst;
}

static enum mark_verdict
find_prefixes(const struct disk_marks *marks, const struct disk_record *record, int64_t *us)
{
    enum mark_verdict worst = MARKED_NOT;

    for (size_t i = 0; i < marks->prefix_count; i++) {
        const struct mark_prefix *prefix = &marks->prefixes[i];

        if (prefix->position < record->head.position ||
            !span_starts_with(record->url, span_of(prefix->text, prefix->len)))
            continue;
        if (!prefix->soft)
            return MARKED_PURGED;
        *us = prefix->us;
        worst = MARKED_EXPIRED;
    }
    return worst;
}

enum mark_verdict
disk_marks_find(struct disk_marks *marks, const struct disk_record *record, int64_t *us)
{
    enum mark_verdict worst = MARKED_NOT, one;

    pthread_mutex_lock(&marks->lock);
    if (marks->all >= record->head.position)
        worst = MARKED_PURGED;
    one = find_name(marks, record, MARK_URL, record->url, 0, us);
    worst = one > worst ? one : worst;
    one = find_prefixes(marks, record, us);
    worst = one > worst ? one : worst;
    one = find_tags(marks, record, us);
    worst = one > worst ? one : worst;
    pthread_mutex_unlock(&marks->lock);
    return worst;
}

bool
disk_marks_outdate(struct disk_marks *marks, struct span url, uint64_t position)
{
    const struct mark_slot *slot;
    bool outdate;

    pthread_mutex_lock(&marks->lock);
    slot = find_slot(marks, disk_mark_hash(MARK_URL, false, url, span_of(NULL, 0)));
    outdate = slot && slot->position >= position;
    pthread_mutex_unlock(&marks->lock);
    return outdate;
}

void
disk_marks_forget(struct disk_marks *marks, uint64_t position)
{
    pthread_mutex_lock(&marks->lock);
    forget(marks, position);
    pthread_mutex_unlock(&marks->lock);
}

void
disk_marks_clear(struct disk_marks *marks)
{
    pthread_mutex_lock(&marks->lock);
    forget(marks, UINT64_MAX);
    marks->all = 0;
    pthread_mutex_unlock(&marks->lock);
}

uint64_t
disk_marks_bytes(struct disk_marks *marks)
{
    uint64_t bytes;

    pthread_mutex_lock(&marks->lock);
    bytes = (marks->used + 2 * marks->prefix_count) * JOURNAL_MARK_BYTES + 2 * marks->text_bytes;
    pthread_mutex_unlock(&marks->lock);
    return bytes;
}

/* ---- walks ----------------------------------------------------------------------------------- */

void
disk_marks_begin_walk(struct disk_marks *marks, struct marks_walk *walk)
{
    *walk = (struct marks_walk){.marks = marks};
    pthread_mutex_lock(&marks->lock);
    marks->walked = true;
    walk->rebuilt = marks->rebuilt;
    pthread_mutex_unlock(&marks->lock);
}

void
disk_marks_end_walk(struct marks_walk *walk)
{
    pthread_mutex_lock(&walk->marks->lock);
    walk->marks->walked = false;
    pthread_mutex_unlock(&walk->marks->lock);
    free(walk->text);
}

static size_t
copy_prefix(struct marks_walk *walk, struct disk_mark *out)
{
    const struct mark_prefix *prefix = &walk->marks->prefixes[walk->prefix++];
    char *text = realloc(walk->text, prefix->len + 1);

    if (!text) {
        walk->failed = true;
        return 0;
    }
    walk->text = text;
    memcpy(text, prefix->text, prefix->len);
    *out = (struct disk_mark){.kind = MARK_PREFIX,
                              .soft = prefix->soft,
                              .prefix = span_of(text, prefix->len),
                              .position = prefix->position,
                              .us = prefix->us};
    return 1;
}

/* Of a piece of the table, which may have none. */
static size_t
copy_slots(struct marks_walk *walk, struct disk_mark *out, size_t most)
{
    const struct disk_marks *marks = walk->marks;
    size_t count = 0, end;

    if (walk->rebuilt != marks->rebuilt)
        walk->slot = 0;
    walk->rebuilt = marks->rebuilt;
    end = marks->size - walk->slot < WALK_SLOTS ? marks->size : walk->slot + WALK_SLOTS;
    for (; walk->slot < end && count < most; walk->slot++) {
        const struct mark_slot *slot = &marks->slots[walk->slot];

        if (slot->hash)
            out[count++] = (struct disk_mark){.kind = MARK_URL,
                                              .hash = slot->hash,
                                              .position = slot->position,
                                              .us = slot->us};
    }
    return count;
}

size_t
disk_marks_walk(struct marks_walk *walk, struct disk_mark *out, size_t most)
{
    struct disk_marks *marks = walk->marks;
    size_t count = 0;
    bool over = false;

    while (!count && !over) {
        pthread_mutex_lock(&marks->lock);
        if (!walk->begun && marks->all)
            out[count++] = (struct disk_mark){.kind = MARK_PREFIX, .position = marks->all};
        else if (walk->prefix < marks->prefix_count)
            count = copy_prefix(walk, out);
        else
            count = copy_slots(walk, out, most);
        walk->begun = true;
        over = walk->failed || walk->slot == marks->size;
        pthread_mutex_unlock(&marks->lock);
    }
    return count;
}
