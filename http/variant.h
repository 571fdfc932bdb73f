/*
 * Vary and the secondary keys of a cache (RFC 9111 section 4.1): the names of the fields that
 * select a response, and the key that a request's fields of these names make. Two requests with the
 * same key match. Values are normalised as far as their meaning stays the same. Content codings
 * that the origin is known not to use for a URL are left out of its keys. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_VARIANT_H
#define SUNPROXY_HTTP_VARIANT_H

#include "base/buf.h"
#include "base/span.h"
#include "http/coding_choice.h"

#define HTTP_VARY_MAX 16     /* names */
#define HTTP_VARY_BYTES 1024 /* of all names and the commas between them */
#define HTTP_VARY_TEXT (HTTP_VARY_BYTES + HTTP_CODING_CHOICE_BYTES) /* as written */
#define HTTP_VARIANT_MAX 4096u                                      /* bytes of a secondary key */

enum http_vary_kind {
    HTTP_VARY_NONE,   /* the response does not vary */
    HTTP_VARY_FIELDS, /* it is selected by the fields named */
    HTTP_VARY_ANY,    /* no other request matches: '*', a member that is no name, too many names */
};

struct http_vary {
    struct span names[HTTP_VARY_MAX]; /* different ones without regard to case, ascending. They
                                         point into what was read */
    size_t count;
    struct http_coding_choice codings; /* empty unless Accept-Encoding is one of the names */
};

/*
 * Reads every Vary line of a response; the names are those of HTTP_VARY_FIELDS, otherwise none.
 * Nothing is known of the codings then.
 */
enum http_vary_kind http_vary_read(struct http_vary *vary, struct span lines);

/* Adds further names to what a response has said. HTTP_VARY_ANY if that or they are too many. */
enum http_vary_kind http_vary_extend(struct http_vary *vary, enum http_vary_kind kind,
                                     const struct span *names, size_t count);

/*
 * Appends the names in lower case, separated by commas, with what is known of the codings: the same
 * text for the same set of names and the same knowledge, at most HTTP_VARY_TEXT bytes.
 * http_vary_parse() reads such a text, or any value of Vary. The buffer says if an append failed.
 */
void http_vary_write(const struct http_vary *vary, struct buf *out);
enum http_vary_kind http_vary_parse(struct http_vary *vary, struct span names);

/* The same set of names? */
bool http_vary_equal(const struct http_vary *a, const struct http_vary *b);

/*
 * Adds what is known of the codings from a text that http_vary_write() has made for the same URL,
 * and then what a response to a request with these lines shows. Each does nothing where
 * Accept-Encoding is not one of the names. The key of a stored response must be made after its
 * observation: then its coding is in the key if its client has offered it.
 */
void http_vary_recall(struct http_vary *vary, struct span known);
void http_vary_observe(struct http_vary *vary, struct span request_lines, unsigned status,
                       struct span response_lines);

/*
 * Appends the secondary key that the field lines of a request make for these names. The key holds
 * the names, so that keys of different sets of names differ. False if the request has no usable
 * key: it is longer than HTTP_VARIANT_MAX, or a value contains control characters, or the buffer
 * failed; the request then bypasses the cache, and the buffer may hold a part of the key.
 *
 * Lines of one name are joined, blanks at ends and around commas are dropped. In Accept-Encoding
 * and Accept-Language order, case and the form of weights do not count; weights of Accept-Encoding
 * count as zero or more. Codings that are known to be unused do not count either; a key has never
 * one that the request does not accept.
 */
bool http_variant_key(const struct http_vary *vary, struct span request_lines, struct buf *out);

#endif
