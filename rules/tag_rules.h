/*
 * The tags of an object, by which groups of objects are purged (cache_purge()): words that the
 * origin gives in fields such as Surrogate-Key (separated by blanks) and Cache-Tag (by commas), and
 * words that rules derive from the path of the URL (--tag-rule, --write-rule). A rule is
 *
 *     PATTERN -> TAG [TAG...]
 *
 * The pattern is segments of a path, each after a slash; "*" is any one segment. It matches paths
 * that begin with these segments, so "/" matches every path. A tag is a word of visible characters
 * without commas, in which "$1" to "$9" are the segments that the pattern's stars match, in order:
 *
 *     / * -> $1              (without the space) the first segment of each path
 *     /shop/ * -> shop $1-list
 *
 * Paths are compared as RFC 3986 section 6.2.2 normalises them: escaped unreserved characters are
 * the characters, dot segments are removed, and empty segments do not count. The query does not
 * count either.
 *
 * Rules are made by one thread, and read-only afterwards.
 */
#ifndef SUNPROXY_RULES_TAG_RULES_H
#define SUNPROXY_RULES_TAG_RULES_H

#include "base/buf.h"
#include "base/span.h"

/* "Surrogate-Key" and "Cache-Tag", NULL-ended. */
extern const char *const tags_default_fields[];

/*
 * Appends the tags in the fields of these names, a list that NULL ends, each with a space before it
 * unless it is the first or there already. False if there are as many tags, or bytes of them, as an
 * object can have (object.h), or without memory: the response is then not stored, since no purge
 * would find it.
 */
bool tags_read(struct span lines, const char *const *fields, struct buf *out);

struct tag_rule;

/* All zero: none. */
struct tag_rules {
    struct tag_rule *rules; /* owned */
    size_t count;
};

/*
 * Adds a rule, of which a copy is kept. False with a sentence in `why`, also without memory; the
 * rules are then as before.
 */
bool tag_rules_add(struct tag_rules *rules, const char *text, struct buf *why);

/*
 * Appends the tags that the rules give to a URL, as tags_read() does; a URL without a path has only
 * those of the pattern "/". False as there: the object has tags then that are not known.
 */
bool tag_rules_apply(const struct tag_rules *rules, struct span url, struct buf *tags);

/*
 * Calls visit() with each tag that concerns a write to a URL, some perhaps more than once, until it
 * returns false: the tags of the URL, and those of the path that it has for an origin which decodes
 * slashes and drops the parameters of segments. Left out are tags that are too long for an object
 * (OBJECT_MAX_TAG_BYTES). False after visit() was, or without memory.
 */
bool tag_rules_visit(const struct tag_rules *rules, struct span url,
                     bool (*visit)(void *context, struct span tag), void *context);

/* Harmless if all is zero. */
void tag_rules_free(struct tag_rules *rules);

#endif
