#include "tests/unit/cache/validity.h"

#include "base/djb.h"
#include "base/tree.h"
#include "base/word_list.h"
#include "cache/slots.h"
#include "cache/shard.h"

/* ---- tables ---------------------------------------------------------------------------------- */

/* The bits in reverse order. */
static uint32_t
reversed(uint32_t bits)
{
    bits = (bits >> 1 & 0x55555555) | (bits & 0x55555555) << 1;
    bits = (bits >> 2 & 0x33333333) | (bits & 0x33333333) << 2;
    bits = (bits >> 4 & 0x0f0f0f0f) | (bits & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(bits);
}

static int
compare_entries(const struct entry *a, const struct entry *b)
{
    int order;

    if (a->hash != b->hash)
        return reversed(a->hash) < reversed(b->hash) ? -1 : 1;
    order = span_compare(object_url(a->object), object_url(b->object));
    return order ? order : span_compare(object_variant(a->object), object_variant(b->object));
}

/* The bucket of a hash. */
static size_t
index_of(const struct table *table, uint32_t hash)
{
    size_t index = hash & table->mask;

    return index < table->bucket_count ? index : index & (table->mask >> 1);
}

static unsigned
level_of(const struct entry *tree)
{
    return tree ? tree->level : 0;
}

/* A left child is one level lower, a right child at most one, and its right child at least one. */
static bool
levels_are_valid(const struct entry *tree)
{
    unsigned right = level_of(tree->right);

    return tree->level == level_of(tree->left) + 1 &&
           (tree->level == right || tree->level == right + 1) &&
           (right == 0 || level_of(tree->right->right) < tree->level);
}

/* What has been seen of a table. */
struct seen {
    const struct table *table;
    size_t index; /* of the bucket */
    const struct entry *before;
    size_t count;
};

static bool
tree_is_valid(const struct entry *tree, struct seen *seen)
{
    if (!tree)
        return true;
    if (!levels_are_valid(tree) || !tree_is_valid(tree->left, seen))
        return false;
    if (tree->hash != djb_hash(object_url(tree->object)) ||
        index_of(seen->table, tree->hash) != seen->index)
        return false;
    if (seen->before && compare_entries(seen->before, tree) >= 0)
        return false;
    seen->before = tree;
    seen->count++;
    return tree_is_valid(tree->right, seen);
}

static size_t
tree_depth(const struct entry *tree)
{
    size_t left, right;

    if (!tree)
        return 0;
    left = tree_depth(tree->left);
    right = tree_depth(tree->right);
    return 1 + (left > right ? left : right);
}

bool
table_is_in_order(const struct table *table)
{
    const struct entry *before = NULL;
    size_t count = 0;

    for (struct entry *entry = table_first(table); entry; entry = table_next(table, entry)) {
        if (before && compare_entries(before, entry) >= 0)
            return false;
        before = entry;
        count++;
    }
    return count == table->entry_count;
}

bool
table_is_valid(const struct table *table)
{
    struct seen seen = {.table = table};

    if (table->bucket_count > table->allocated || table->bucket_count - 1 > table->mask)
        return false;
    for (; seen.index < table->bucket_count; seen.index++) {
        seen.before = NULL;
        if (!tree_is_valid(table->buckets[seen.index], &seen))
            return false;
    }
    return seen.count == table->entry_count;
}

size_t
table_depth(const struct table *table)
{
    size_t depth = 0;

    for (size_t i = 0; i < table->bucket_count; i++) {
        size_t here = tree_depth(table->buckets[i]);

        if (here > depth)
            depth = here;
    }
    return depth;
}

/* ---- tags ------------------------------------------------------------------------------------ */

static int
compare_tags(const struct tag *a, const struct tag *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash ? -1 : 1;
    return span_compare(span_of(a->name, a->len), span_of(b->name, b->len));
}

TREE_GENERATE(tag_tree, tag, links, compare_tags)

/* The number of links if the tree is in order and no tag lacks one, or SIZE_MAX. */
static size_t
tags_count_links(const struct tags *index)
{
    struct tag *tag, *before = NULL;
    struct tag_tree tree = index->tree;
    size_t count = 0;

    RB_FOREACH(tag, tag_tree, &tree)
    {
        struct tag_link *link;

        if (LIST_EMPTY(&tag->entries) || (before && compare_tags(before, tag) >= 0))
            return SIZE_MAX;
        LIST_FOREACH(link, &tag->entries, next)
        {
            if (link->tag != tag)
                return SIZE_MAX;
            count++;
        }
        before = tag;
    }
    return count;
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* The fills that requests can join by an entry are its own, the newest first. */
static bool
versions_are_valid(const struct entry *entry)
{
    const struct cache_fill *fill;
    uint64_t before = UINT64_MAX;

    LIST_FOREACH(fill, &entry->object->fills, link)
    {
        if (fill->number >= before || fill->stage == FILL_ENDED || !fill->in_shard.le_prev ||
            !span_equal(object_url(entry->object), object_url(fill->name)) ||
            !span_equal(object_variant(entry->object), object_variant(fill->name)))
            return false;
        before = fill->number;
    }
    return true;
}

static bool
entry_is_valid(const struct entry *entry)
{
    const struct object *object = entry->object;

    if (!versions_are_valid(entry))
        return false;
    if (entry_is_stored(entry))
        return object_state(object) == OBJECT_READY &&
               entry->tag_count == words_count(object_tags(object));
    return object_state(object) == OBJECT_BUSY && (entry_is_mark(entry) || entry_newest(entry));
}

/* The list has `count` marks, all of this kind, within the bounds of `most`. */
static bool
marks_are_valid(const struct marks *marks, enum entry_kind kind, size_t count, size_t most)
{
    size_t listed = 0, bytes = 0;
    struct mark *mark;

    TAILQ_FOREACH(mark, &marks->list, links)
    {
        const struct entry *entry = container_of(mark, struct entry, node);

        if (entry->kind != kind)
            return false;
        listed++;
        bytes += object_size(entry->object);
    }
    return listed == count && marks->count == count && marks->bytes == bytes && count <= most;
}

/* Each fill that is in the list of an entry is in that of the one which the table has. */
static bool
fills_are_valid(const struct shard *shard)
{
    const struct cache_fill *fill, *other;

    LIST_FOREACH(fill, &shard->fills, in_shard)
    {
        const struct entry *entry = shard_find_fill(shard, fill);

        if (!fill->link.le_prev)
            continue;
        other = entry ? entry_newest(entry) : NULL;
        while (other && other != fill)
            other = LIST_NEXT(other, link);
        if (!other)
            return false;
    }
    return true;
}

/* No URL has more stored variants than it may have. */
static bool
variants_are_bounded(const struct table *table)
{
    const struct object *before = NULL;
    size_t count = 0;

    for (struct entry *entry = table_first(table); entry; entry = table_next(table, entry)) {
        if (!before || !span_equal(object_url(entry->object), object_url(before)))
            count = 0;
        before = entry->object;
        count += entry_is_stored(entry) && before->variant_len != 0;
        if (count > CACHE_MAX_VARIANTS)
            return false;
    }
    return true;
}

/* The links of an entry are those of its object's tags. */
static bool
tags_are_valid(const struct shard *shard, struct entry *entry)
{
    const struct tag_link *links = shard_tags_of(shard, entry);
    struct span rest = object_tags(entry->object), name;

    for (size_t i = 0; words_next(&rest, &name); i++)
        if (links[i].entry != entry ||
            !span_equal(span_of(links[i].tag->name, links[i].tag->len), name))
            return false;
    return true;
}

static bool
shard_is_valid(const struct shard *shard)
{
    size_t kinds[ENTRY_VARIES + 1] = {0}, links = 0;
    struct entry *entry;
    uint64_t bytes = 0;

    if (!table_is_valid(&shard->table) || !variants_are_bounded(&shard->table))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry)) {
        if (!entry_is_valid(entry) || (entry_is_stored(entry) && !tags_are_valid(shard, entry)))
            return false;
        kinds[entry->kind]++;
        if (entry_is_stored(entry)) {
            bytes += shard_bytes_of_entry(shard, entry);
            links += entry->tag_count;
        }
    }
    if (!fills_are_valid(shard) ||
        !marks_are_valid(&shard->passed, ENTRY_PASSED, kinds[ENTRY_PASSED], shard->max_marks) ||
        !marks_are_valid(&shard->varied, ENTRY_VARIES, kinds[ENTRY_VARIES], SIZE_MAX) ||
        links != tags_count_links(&shard->tags) || kinds[ENTRY_STORED] != shard->evictor.pages ||
        bytes != shard->evictor.bytes)
        return false;
    return shard->evictor.ops ? evictor_is_valid(&shard->evictor) : !shard->evictor.policy;
}

bool
cache_is_valid(struct cache *cache)
{
    struct cache_config config;
    bool valid = true;

    cache_get_config(cache, &config);
    for (unsigned i = 0; valid && i < config.shards; i++) {
        slot_lock(&cache->slots[i]);
        valid = shard_is_valid(&cache->slots[i].shard);
        slot_unlock(&cache->slots[i]);
    }
    return valid;
}
