/*
 * The tags of an object, by which groups of objects are purged (cache_purge_tag()): words that the
 * origin gives in fields such as Surrogate-Key (separated by blanks) and Cache-Tag (by commas).
 * Safe on any thread.
 */
#ifndef SUNPROXY_PROXY_TAGS_H
#define SUNPROXY_PROXY_TAGS_H

#include "base/buf.h"
#include "base/span.h"

/* "Surrogate-Key" and "Cache-Tag", NULL-ended. */
extern const char *const tags_default_fields[];

/*
 * Appends the tags in the fields of these names, a list that NULL ends, each once and with one
 * space between two. False if they are more, or longer together, than an object can have
 * (object.h), or without memory: the response is then not stored, since no purge would find it.
 */
bool tags_read(struct span lines, const char *const *fields, struct buf *out);

#endif
