/*
 * What responses have shown of the content codings that an origin chooses for one URL. A coding
 * that clients offer and the origin does not use selects nothing, so that it need not be part of a
 * secondary key (variant.h). Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_CODING_CHOICE_H
#define SUNPROXY_HTTP_CODING_CHOICE_H

#include "base/buf.h"
#include "base/span.h"
#include "http/preference.h"

/*
 * Sets of bits (http_coding_bit()) that have no bit in common: a coding that was used once is not
 * unused later.
 */
struct http_coding_choice {
    unsigned used;   /* a response had it */
    unsigned unused; /* a client offered it and got another one, or none */
};

#define HTTP_CODING_CHOICE_BYTES 64 /* at most, as text */

/*
 * Adds what a response with these lines shows. `offered` is what its request had in
 * Accept-Encoding; NULL: nothing that can be read. Unused are codings that the client liked as much
 * as what it got. Only a 200 shows that: error pages are short, and often not compressed. What a
 * response has is used whatever its status, and a malformed Content-Encoding may mean each coding.
 */
void http_coding_choice_observe(struct http_coding_choice *choice,
                                const struct http_preferences *offered, unsigned status,
                                struct span response_lines);

/* Adds what another one knows. */
void http_coding_choice_merge(struct http_coding_choice *choice,
                              const struct http_coding_choice *other);

/*
 * Appends the choice as parameters, such as ";br=0;gzip=1", nothing for a coding of which nothing
 * is known. The buffer says if that failed. http_coding_choice_parse() reads such a text into an
 * empty choice, and is false if it is another one.
 */
void http_coding_choice_write(const struct http_coding_choice *choice, struct buf *out);
bool http_coding_choice_parse(struct http_coding_choice *choice, struct span text);

#endif
