/*
 * The tags of a shard's stored objects: an index from each tag to the entries that have it. Used
 * under the shard's lock.
 *
 * A tag is in the index while an entry has it. Tags come from origins, which may choose them to
 * collide in a hash; the index is a balanced tree, so that a search is short whatever they are.
 */
#ifndef SUNPROXY_CACHE_TAG_INDEX_H
#define SUNPROXY_CACHE_TAG_INDEX_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/span.h"
#include "base/tree.h"

struct entry;

struct tag {
    RB_ENTRY(tag) links;
    LIST_HEAD(, tag_link) entries; /* at least one */
    uint64_t hash;
    size_t len;
    char name[];
};

/* That an entry has a tag. An entry has one for each of its tags, in its own memory. */
struct tag_link {
    LIST_ENTRY(tag_link) next;
    struct tag *tag;
    struct entry *entry;
};

RB_HEAD(tag_tree, tag);

struct tags {
    struct tag_tree tree;
};

/* The most bytes that a tag of an object costs, beside its name; with malloc's header and slack. */
#define TAGS_CHARGE (sizeof(struct tag_link) + sizeof(struct tag) + 24)

/*
 * Adds an entry under each of the words `tags`, as many as `links` has. False without memory, with
 * nothing added.
 */
bool tags_add(struct tags *index, struct entry *entry, struct tag_link *links, struct span tags);

/* Removes an entry with these links. */
void tags_remove(struct tags *index, struct tag_link *links, size_t count);

/* The tag, or NULL. */
struct tag *tags_find(struct tags *index, struct span name);

/* Frees the tags; entries are not touched. Harmless on a zeroed index. */
void tags_free(struct tags *index);

#endif
