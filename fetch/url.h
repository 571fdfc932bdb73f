/*
 * URLs, read by libcurl's parser alone, so that the URL that was checked is the one that is
 * fetched.
 */
#ifndef SUNPROXY_FETCH_URL_H
#define SUNPROXY_FETCH_URL_H

#include <curl/curl.h>

#include "fetch/fetch.h"
#include "fetch/resolver.h"

#define URL_MAX 8192u
#define HOST_MAX 253u /* RFC 1035 section 2.3.4 */

/* A URL taken apart. Everything is owned; target_free() frees it. */
struct target {
    CURLU *url;   /* with the host as ASCII */
    char *text;   /* the whole URL, as the parser writes it */
    char *host;   /* lower case, IPv6 without brackets */
    char *origin; /* "https://example.com:443", RFC 6454 section 4 */
    uint16_t port;
    bool https;
    bool has_user;         /* user information, be it empty, stands before the host */
    bool literal;          /* the host is an address ... */
    union address address; /* ... this one, with the port */
};

/*
 * Takes apart a URL. Its path stays as it is, dot segments included, so that the origin is asked
 * for the URL under which the response is cached. FETCH_OK, FETCH_BAD_URL or FETCH_INTERNAL (no
 * memory) with a sentence in `why`, and then *target is empty.
 */
enum fetch_error target_parse(struct target *target, struct span url, char *why, size_t why_size);

/* Harmless on an empty target. */
void target_free(struct target *target);

/* An address out of its text (IPv6 without brackets), with a port. False if it is a name. */
bool address_parse(const char *host, uint16_t port, union address *address);

/* "192.0.2.1", "2001:db8::1"; `size` of INET6_ADDRSTRLEN is enough. Returns text. */
const char *address_format(const union address *address, char *text, size_t size);

/* Letters, digits, '-', '_' and '.': what may go into libcurl's colon-separated lists. */
bool host_is_name(const char *host);

#endif
