/*
 * The chunked transfer coding (RFC 9112 section 7.1), read strictly: sizes are hexadecimal digits
 * and nothing else, lines end with CR LF, and what follows the last chunk belongs to no message.
 * The decoder allocates nothing and copies nothing. Each one belongs to one thread.
 *
 * Chunk extensions and trailer fields are checked, counted and dropped. A line break in a quoted
 * string of an extension is refused, since recipients differ in where the line ends then.
 */
#ifndef SUNPROXY_HTTP_CHUNKED_H
#define SUNPROXY_HTTP_CHUNKED_H

#include <stdint.h>

#include "base/span.h"

enum chunked_step {
    CHUNKED_WANTS, /* all input is used up and the message goes on */
    CHUNKED_DATA,  /* data is next; chunked_take() states how much of it was used */
    CHUNKED_END,   /* the message is complete; what is left of the input is not part of it */
    CHUNKED_BROKEN /* the reason is in chunked->reason; every later step says the same */
};

/* The members are the decoder's, but for reason, too_large and no_padding. */
struct chunked {
    unsigned state;
    unsigned digits;     /* of the size so far */
    uint64_t left;       /* of the chunk's data, or the size so far */
    uint32_t extensions; /* bytes of chunk extensions in this message */
    uint32_t trailer_bytes;
    uint32_t trailer_lines;
    uint32_t max_trailer_bytes;
    uint32_t max_trailer_lines;
    bool too_large;     /* it broke for exceeding one of these two */
    const char *reason; /* static */
    /*
     * The owner's to set before the first byte: a blank behind a size is refused. Some origins pad
     * sizes, clients do not.
     */
    bool no_padding;
};

/* Begins a message with at most these bytes and lines of trailer fields. */
void chunked_init(struct chunked *chunked, uint32_t max_trailer_bytes, uint32_t max_trailer_lines);

/*
 * Reads on in *input, which is moved behind what was read. With CHUNKED_DATA, *data is the first
 * part of *input that is data, at least one byte, and *input still begins with it.
 */
enum chunked_step chunked_read(struct chunked *chunked, struct span *input, struct span *data);

/* The first `len` bytes of the data that the last step returned have been used. */
void chunked_take(struct chunked *chunked, struct span *input, size_t len);

/* Is the message complete? */
bool chunked_ended(const struct chunked *chunked);

#endif
