/*
 * The tags of an object, by which groups of objects are purged (cache_purge_tag()): words that the
 * origin gives in fields such as Surrogate-Key (separated by blanks) and Cache-Tag (by commas), and
 * words that rules derive from the URL (tag_rules.h).
 * Safe on any thread.
 */
#ifndef SUNPROXY_PROXY_TAGS_H
#define SUNPROXY_PROXY_TAGS_H

#include "base/buf.h"
#include "base/span.h"

/* "Surrogate-Key" and "Cache-Tag", NULL-ended. */
extern const char *const tags_default_fields[];

/*
 * Appends a tag, with a space before it if it is not the first, unless it is there already. False
 * if there are as many tags, or bytes of them, as an object can have (object.h), or without memory.
 */
bool tags_append(struct buf *tags, struct span tag);

/*
 * Appends the tags in the fields of these names, a list that NULL ends, as
 * tags_append() does. False if that refuses one: the response is then not stored, since no purge
 * would find it.
 */
bool tags_read(struct span lines, const char *const *fields, struct buf *out);

#endif
