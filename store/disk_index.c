#include "store/disk_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/disk_record.h"

#define READ 0x8000u /* of disk_slot.variant */
#define CLASS_BITS 8u
#define CLASSES (1u << CLASS_BITS)
#define CLASS_LEAST_BITS 8u /* the logarithm of the first class's bytes */
#define STEP_BITS 4u        /* of that of the classes up to twice as long */

_Static_assert(sizeof(struct disk_slot) == 12, "memory of an object");
_Static_assert(DISK_OFFSETS << CLASS_BITS == (uint64_t)1 << 32, "bits of disk_slot.where");

/* ---- lengths --------------------------------------------------------------------------------- */

static uint32_t
class_length(unsigned class)
{
    const unsigned steps = 1u << STEP_BITS;

    if (class == CLASSES - 1)
        return UINT32_MAX;
    return (steps + class % steps) << (class / steps + CLASS_LEAST_BITS - STEP_BITS);
}

static unsigned
class_of(uint32_t length)
{
    const uint32_t last = length - 1;
    unsigned log, class;

    if (length <= 1u << CLASS_LEAST_BITS)
        return 0;
    log = 31u - (unsigned)__builtin_clz(last);
    /* The longest class that is shorter, and the one behind it. */
    class = ((log - CLASS_LEAST_BITS) << STEP_BITS) +
            ((last >> (log - STEP_BITS)) & ((1u << STEP_BITS) - 1)) + 1;
    return class < CLASSES ? class : CLASSES - 1;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static struct disk_table *
table_of(struct disk_index *index, uint64_t url)
{
    return &index->tables[url >> 54];
}

static uint32_t
part_of_url(uint64_t url)
{
    return (uint32_t)(url >> 16);
}

static uint16_t
part_of_variant(uint32_t variant)
{
    return variant ? (uint16_t)((variant & (READ - 1)) | 1u) : 0;
}

static bool
is_variant(const struct disk_slot *slot, uint32_t variant)
{
    return (slot->variant & (READ - 1)) == part_of_variant(variant);
}

static bool
is_at(const struct disk_slot *slot, const struct disk_place *place)
{
    return slot->segment == place->segment && slot->where >> CLASS_BITS == place->offset;
}

static uint32_t
home_of(const struct disk_table *table, uint32_t url)
{
    return (uint32_t)((uint64_t)url * table->size >> 32);
}

static uint32_t
next_of(const struct disk_table *table, uint32_t i)
{
    return i + 1 == table->size ? 0 : i + 1;
}

static void
insert(struct disk_table *table, const struct disk_slot *slot)
{
    uint32_t i = home_of(table, slot->url);

    while (table->slots[i].segment)
        i = next_of(table, i);
    table->slots[i] = *slot;
    table->used++;
}

/* Has a free slot; the tables are at most four fifths full. */
static bool
grow(struct disk_table *table)
{
    struct disk_table grown = {.size = table->size / 4 * 5 + 8};

    if ((uint64_t)(table->used + 1) * 5 <= (uint64_t)table->size * 4)
        return true;
    grown.slots = calloc(grown.size, sizeof(*grown.slots));
    if (!grown.slots)
        return false;
    for (uint32_t i = 0; i < table->size; i++)
        if (table->slots[i].segment)
            insert(&grown, &table->slots[i]);
    free(table->slots);
    table->slots = grown.slots;
    table->size = grown.size;
    return true;
}

/* Frees a slot: those behind it that are not at home move up. */
static void
erase(struct disk_table *table, uint32_t gap)
{
    uint32_t i = gap;

    for (;;) {
        uint32_t home;

        i = next_of(table, i);
        if (!table->slots[i].segment)
            break;
        home = home_of(table, table->slots[i].url);
        if (gap <= i ? gap < home && home <= i : gap < home || home <= i)
            continue;
        table->slots[gap] = table->slots[i];
        gap = i;
    }
    table->slots[gap] = (struct disk_slot){0};
    table->used--;
}

/* The next slot of a URL, from *i on; NULL: there is none. */
static struct disk_slot *
next_slot(struct disk_table *table, uint32_t url, uint32_t *i)
{
    while (table->size && table->slots[*i].segment) {
        struct disk_slot *slot = &table->slots[*i];

        if (slot->url == url)
            return slot;
        *i = next_of(table, *i);
    }
    return NULL;
}

/* The slot of a key; with `any` for the empty variant another one of its URL. */
static struct disk_slot *
find(struct disk_table *table, const struct disk_key *key, bool any)
{
    const uint32_t url = part_of_url(key->url);
    uint32_t i = table->size ? home_of(table, url) : 0;
    struct disk_slot *slot, *other = NULL;

    for (; (slot = next_slot(table, url, &i)); i = next_of(table, i)) {
        if (is_variant(slot, key->variant))
            return slot;
        other = slot;
    }
    return any && key->variant == 0 ? other : NULL;
}

static struct disk_slot *
find_at(struct disk_table *table, const struct disk_key *key, const struct disk_place *place)
{
    const uint32_t url = part_of_url(key->url);
    uint32_t i = table->size ? home_of(table, url) : 0;
    struct disk_slot *slot;

    for (; (slot = next_slot(table, url, &i)); i = next_of(table, i))
        if (is_at(slot, place)) /* one record, whichever variant was asked for */
            return slot;
    return NULL;
}

static void
set_place(struct disk_slot *slot, const struct disk_place *place)
{
    slot->segment = place->segment;
    slot->where = place->offset << CLASS_BITS | class_of(place->length);
    slot->variant &= READ - 1;
}

/* ---- the index ------------------------------------------------------------------------------- */

struct disk_key
disk_key_of(uint64_t secret, struct span url, struct span variant)
{
    struct disk_key key = {.url = hash64_uint(hash64_bytes(url) ^ secret)};

    if (variant.len) {
        key.variant = (uint32_t)(hash64_uint(hash64_bytes(variant) ^ secret) >> 32);
        key.variant = key.variant ? key.variant : 1;
    }
    return key;
}

void
disk_index_init(struct disk_index *index)
{
    *index = (struct disk_index){0};
    for (unsigned i = 0; i < DISK_TABLES; i++)
        pthread_mutex_init(&index->tables[i].lock, NULL); /* without attributes it cannot fail */
}

void
disk_index_reserve(struct disk_index *index, size_t count)
{
    /* Hashes fill tables unevenly: one with more objects grows. */
    const size_t size = count / DISK_TABLES * 5 / 4 + 8;

    for (unsigned i = 0; i < DISK_TABLES && size <= UINT32_MAX / 2; i++) {
        struct disk_table *table = &index->tables[i];

        pthread_mutex_lock(&table->lock);
        if (!table->size)
            table->slots = calloc(size, sizeof(*table->slots));
        if (table->slots && !table->size) {
            table->size = (uint32_t)size;
            index->size += size;
        }
        pthread_mutex_unlock(&table->lock);
    }
}

void
disk_index_free(struct disk_index *index)
{
    for (unsigned i = 0; i < DISK_TABLES; i++) {
        free(index->tables[i].slots);
        pthread_mutex_destroy(&index->tables[i].lock);
    }
}

static struct disk_table *
lock(struct disk_index *index, uint64_t url)
{
    struct disk_table *table = table_of(index, url);

    pthread_mutex_lock(&table->lock);
    return table;
}

size_t
disk_index_count(const struct disk_index *index)
{
    return atomic_load_explicit(&index->used, memory_order_relaxed);
}

size_t
disk_index_bytes(const struct disk_index *index)
{
    return sizeof(*index) +
           atomic_load_explicit(&index->size, memory_order_relaxed) * sizeof(struct disk_slot);
}

bool
disk_index_find(struct disk_index *index, const struct disk_key *key, struct disk_place *place,
                void (*hold)(void *context, uint16_t segment), void *context)
{
    struct disk_table *table = lock(index, key->url);
    struct disk_slot *slot = find(table, key, true);

    if (slot) {
        *place = (struct disk_place){
            .segment = slot->segment,
            .offset = slot->where >> CLASS_BITS,
            .length = class_length(slot->where & (CLASSES - 1)),
        };
        if (hold) {
            slot->variant |= READ;
            hold(context, slot->segment);
        }
    }
    pthread_mutex_unlock(&table->lock);
    return slot != NULL;
}

bool
disk_index_has_url(struct disk_index *index, uint64_t url)
{
    const struct disk_key key = {.url = url};
    struct disk_place place;

    return disk_index_find(index, &key, &place, NULL, NULL);
}

bool
disk_index_replaces(struct disk_index *index, const struct disk_key *key, bool *turns)
{
    struct disk_table *table = lock(index, key->url);
    const uint32_t url = part_of_url(key->url);
    uint32_t i = table->size ? home_of(table, url) : 0;
    const struct disk_slot *slot;
    bool is_there = false;

    *turns = false;
    for (; (slot = next_slot(table, url, &i)); i = next_of(table, i)) {
        is_there = is_there || is_variant(slot, key->variant);
        *turns = *turns || is_variant(slot, 0) != (key->variant == 0);
    }
    pthread_mutex_unlock(&table->lock);
    return is_there || *turns;
}

bool
disk_index_put(struct disk_index *index, const struct disk_key *key, const struct disk_place *place,
               bool absent)
{
    struct disk_table *table = lock(index, key->url);
    struct disk_slot *slot = find(table, key, false);
    const uint32_t size = table->size;
    bool done = !(slot && absent);

    if (done && slot) {
        set_place(slot, place);
    } else if (done && (done = grow(table))) {
        struct disk_slot made = {
            .url = part_of_url(key->url),
            .variant = part_of_variant(key->variant),
        };

        set_place(&made, place);
        insert(table, &made);
        index->used++;
        index->size += table->size - size;
    }
    pthread_mutex_unlock(&table->lock);
    return done;
}

bool
disk_index_move(struct disk_index *index, const struct disk_key *key, const struct disk_place *from,
                const struct disk_place *to)
{
    struct disk_table *table = lock(index, key->url);
    struct disk_slot *slot = find_at(table, key, from);

    if (slot)
        set_place(slot, to);
    pthread_mutex_unlock(&table->lock);
    return slot != NULL;
}

bool
disk_index_remove(struct disk_index *index, const struct disk_key *key,
                  const struct disk_place *place, bool *was_read)
{
    struct disk_table *table = lock(index, key->url);
    struct disk_slot *slot = find_at(table, key, place);

    *was_read = slot && slot->variant & READ;
    if (slot) {
        erase(table, (uint32_t)(slot - table->slots));
        index->used--;
    }
    pthread_mutex_unlock(&table->lock);
    return slot != NULL;
}

bool
disk_index_is_at(struct disk_index *index, const struct disk_key *key,
                 const struct disk_place *place, bool *was_read)
{
    struct disk_table *table = lock(index, key->url);
    const struct disk_slot *slot = find_at(table, key, place);

    *was_read = slot && slot->variant & READ;
    pthread_mutex_unlock(&table->lock);
    return slot != NULL;
}

unsigned
disk_index_remove_url(struct disk_index *index, uint64_t url)
{
    struct disk_table *table = lock(index, url);
    const uint32_t part = part_of_url(url);
    unsigned count = 0;

    while (table->size) {
        uint32_t i = home_of(table, part);

        if (!next_slot(table, part, &i))
            break;
        erase(table, i);
        count++;
    }
    index->used -= count;
    pthread_mutex_unlock(&table->lock);
    return count;
}

static void
remove_from(struct disk_table *table, uint16_t segment)
{
    struct disk_table kept = {.size = table->size};

    if (segment)
        kept.slots = calloc(kept.size ? kept.size : 1, sizeof(*kept.slots));
    if (!kept.slots) { /* without memory, or nothing is kept */
        free(table->slots);
        table->slots = NULL;
        table->size = table->used = 0;
        return;
    }
    for (uint32_t i = 0; i < table->size; i++)
        if (table->slots[i].segment && table->slots[i].segment != segment)
            insert(&kept, &table->slots[i]);
    free(table->slots);
    table->slots = kept.slots;
    table->used = kept.used;
}

void
disk_index_remove_segment(struct disk_index *index, uint16_t segment)
{
    for (unsigned i = 0; i < DISK_TABLES; i++) {
        struct disk_table *table = &index->tables[i];
        uint32_t used, size;

        pthread_mutex_lock(&table->lock);
        used = table->used;
        size = table->size;
        remove_from(table, segment);
        index->used -= used - table->used;
        index->size -= size - table->size;
        pthread_mutex_unlock(&table->lock);
    }
}
