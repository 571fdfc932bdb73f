/*
 * The parts of a URL (RFC 3986, section 3) that traces need, and no more: a program that fetches
 * parses it in full. Pure functions.
 */
#ifndef SUNPROXY_TRACE_BASE_URL_H
#define SUNPROXY_TRACE_BASE_URL_H

#include "base/buf.h"
#include "base/span.h"

/* The scheme without its colon; empty if the text does not begin with one. */
struct span base_url_scheme(struct span url);

/* Is the scheme http or https, in any case? */
bool base_url_is_web(struct span url);

/* Of a URL with "//" behind the scheme: host[:port], without user information; else empty. */
struct span base_url_host_port(struct span url);

/*
 * Appends scheme://host[:port], scheme and host in lower case (RFC 3986, section 6.2.2.1). A URL
 * without "//", like mailto:x, is appended as it is. False when the buffer cannot take it.
 */
bool base_url_append(struct buf *out, struct span url);

/* Can paths be put behind it, as behind http://www.example.com, with or without slashes there? */
bool base_url_is_site(const char *text);

/* A site without the slashes at its end. */
struct span base_url_site(const char *site);

#endif
