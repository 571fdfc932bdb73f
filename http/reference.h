/*
 * URI references in fields such as Location, resolved against the URL of a request (RFC 3986
 * section 5), to find what a cache has of the same origin. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_REFERENCE_H
#define SUNPROXY_HTTP_REFERENCE_H

#include "base/buf.h"
#include "base/span.h"

/*
 * Appends the URL to which `reference` points as seen from `base`, which is spelt as
 * http_write_url() does; the result is spelt likewise, without a fragment. False, with nothing
 * appended, if either is no http or https URL, or the two have not the same origin (RFC 6454
 * section 5), or the buffer failed.
 */
bool http_resolve_same_origin(struct span base, struct span reference, struct buf *out);

/* Have two absolute URLs the same origin (RFC 6454 section 5), in whatever spelling? False for
 * those with user information. */
bool http_have_same_origin(struct span a, struct span b);

/*
 * Does the reference name, with a scheme or at least an authority of its own, the URL `base`, which
 * has no slash at its end, or something below it? *rest is then what follows base in it: empty, or
 * a "/", "?" or "#" and more. False for references with dot segments, which may lead elsewhere.
 */
bool http_reference_is_below(struct span base, struct span reference, struct span *rest);

#endif
