/*
 * Content codings (RFC 9110 section 8.4) undone piece by piece: gzip (RFC 1952), deflate (RFC 1950,
 * and the bare RFC 1951 that some origins send), br (RFC 7932) and zstd (RFC 8878).
 *
 * The work is bounded on both sides: each step makes no more than the caller's buffer takes, and
 * input that decodes to nothing (names and comments in gzip headers, empty blocks, metadata) breaks
 * the decoding after CODING_IDLE_MAX bytes. Each decoder belongs to one thread.
 */
#ifndef SUNPROXY_HTTP_CODING_H
#define SUNPROXY_HTTP_CODING_H

#include "base/span.h"

#define CODING_IDLE_MAX 65536u /* bytes of input in a row that yield no output */

enum coding {
    CODING_IDENTITY,
    CODING_GZIP,
    CODING_DEFLATE,
    CODING_BROTLI,
    CODING_ZSTD,
    CODING_UNKNOWN
};

/* What a name such as "gzip" or "x-gzip" stands for, in any case; CODING_IDENTITY if it is empty.
 */
enum coding coding_parse(struct span name);

enum coding_step {
    CODING_WANTS, /* all input is used up and all that it yields has been made */
    CODING_MADE,  /* the buffer is full, or there may be more without further input */
    CODING_BROKEN /* the reason is in *reason; later steps may say anything */
};

struct decoder;

/* A decoder for any coding but CODING_IDENTITY and CODING_UNKNOWN. NULL without memory. */
struct decoder *decoder_create(enum coding coding);
void decoder_destroy(struct decoder *decoder);

/*
 * Decodes from *input, which is moved behind what was used, into `size` bytes at `out` (size > 0);
 * *made is how many bytes were made, with CODING_WANTS too. What follows the end of the coded data
 * is dropped; a further member of a gzip file is not what follows its end. *reason, static, is set
 * with CODING_BROKEN.
 */
enum coding_step decoder_step(struct decoder *decoder, struct span *input, void *out, size_t size,
                              size_t *made, const char **reason);

/*
 * The most that a decoder keeps of what it has made, to refer back to it, beyond a fixed 64 KiB: 0,
 * or 16 MiB for br (RFC 7932 section 9.1) and 8 MiB for zstd (RFC 9659). It takes memory as it
 * makes output: at most twice what it has made.
 */
size_t coding_window(enum coding coding);

/* May the input end here: is the coded data complete, or was there none at all? */
bool decoder_may_end(const struct decoder *decoder);

#endif
