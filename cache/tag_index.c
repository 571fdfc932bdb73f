#include "cache/tag_index.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/word_list.h"

static int
compare_name(uint64_t hash, struct span name, const struct tag *tag)
{
    if (hash != tag->hash)
        return hash < tag->hash ? -1 : 1;
    return span_compare(name, span_of(tag->name, tag->len));
}

static int
compare(const struct tag *a, const struct tag *b)
{
    return compare_name(a->hash, span_of(a->name, a->len), b);
}

TREE_GENERATE(tag_tree, tag, links, compare)

struct tag *
tags_find(struct tags *index, struct span name)
{
    const uint64_t hash = hash64_bytes(name);
    struct tag *tag = RB_ROOT(&index->tree);

    while (tag) {
        int order = compare_name(hash, name, tag);

        if (order == 0)
            break;
        tag = order < 0 ? RB_LEFT(tag, links) : RB_RIGHT(tag, links);
    }
    return tag;
}

/* The tag, which is made if it is not there; NULL without memory. */
static struct tag *
find_or_make(struct tags *index, struct span name)
{
    struct tag *tag = tags_find(index, name);

    if (tag)
        return tag;
    tag = malloc(sizeof(*tag) + name.len);
    if (!tag)
        return NULL;
    LIST_INIT(&tag->entries);
    tag->hash = hash64_bytes(name);
    tag->len = name.len;
    memcpy(tag->name, name.ptr, name.len);
    RB_INSERT(tag_tree, &index->tree, tag);
    return tag;
}

bool
tags_add(struct tags *index, struct entry *entry, struct tag_link *links, struct span tags)
{
    struct span name;

    for (size_t count = 0; words_next(&tags, &name); count++) {
        struct tag *tag = find_or_make(index, name);

        if (!tag) {
            tags_remove(index, links, count);
            return false;
        }
        links[count].tag = tag;
        links[count].entry = entry;
        LIST_INSERT_HEAD(&tag->entries, &links[count], next);
    }
    return true;
}

void
tags_remove(struct tags *index, struct tag_link *links, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tag *tag = links[i].tag;

        LIST_REMOVE(&links[i], next);
        if (LIST_EMPTY(&tag->entries)) {
            RB_REMOVE(tag_tree, &index->tree, tag);
            free(tag);
        }
    }
}

void
tags_free(struct tags *index)
{
    struct tag *tag;

    while (tag = RB_ROOT(&index->tree), tag) {
        RB_REMOVE(tag_tree, &index->tree, tag);
        free(tag);
    }
}
