/*
 * Decompresses gzip (RFC 1952, zlib), bzip2 (libbz2), xz (liblzma) and zstd (RFC 8878, libzstd) as
 * a stream from memory to memory. The input may have several members, streams or frames. A decoder
 * belongs to one thread.
 */
#ifndef SUNPROXY_TRACE_DECODER_H
#define SUNPROXY_TRACE_DECODER_H

#include "base/span.h"

/*
 * A few bytes can ask for a window of gigabytes. As much as the program zstd takes without --long;
 * xz -9 takes 65 MiB.
 */
#define DECODER_MOST_MEMORY_LOG 27
#define DECODER_MOST_MEMORY (UINT64_C(1) << DECODER_MOST_MEMORY_LOG)

struct decoder;

enum decoder_result {
    DECODER_OK,
    DECODER_ENDED,     /* what follows is not compressed any more, and is to be ignored */
    DECODER_BROKEN,    /* damaged */
    DECODER_TOO_LARGE, /* undoing it takes more than DECODER_MOST_MEMORY */
    DECODER_NO_MEMORY,
};

/* The name of the compression that these first bytes of a file show ("gzip"), or NULL: none. */
const char *decoder_sniff(struct span head);

/* For a name of decoder_sniff(). NULL without memory. */
struct decoder *decoder_create(const char *name);
void decoder_destroy(struct decoder *decoder);

/*
 * Takes from the front of *in and writes to the front of *out, whichever is used up first. With an
 * empty *in it writes what it still holds back.
 */
enum decoder_result decoder_run(struct decoder *decoder, struct span *in, char **out,
                                size_t *out_len);

/* May the input end here? Between members and frames it may. */
bool decoder_is_whole(const struct decoder *decoder);

#endif
