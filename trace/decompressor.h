/*
 * Decompresses gzip (RFC 1952, zlib), bzip2 (libbz2), xz (liblzma) and zstd (RFC 8878, libzstd) as
 * a stream from memory to memory. The input may have several members, streams or frames. A
 * decompressor belongs to one thread.
 */
#ifndef SUNPROXY_TRACE_DECOMPRESSOR_H
#define SUNPROXY_TRACE_DECOMPRESSOR_H

#include "base/span.h"

/*
 * A few bytes can ask for a window of gigabytes. As much as the program zstd takes without --long;
 * xz -9 takes 65 MiB.
 */
#define DECOMPRESSOR_MOST_MEMORY_LOG 27
#define DECOMPRESSOR_MOST_MEMORY (UINT64_C(1) << DECOMPRESSOR_MOST_MEMORY_LOG)

struct decompressor;

enum decompressor_result {
    DECOMPRESSOR_OK,
    DECOMPRESSOR_ENDED,     /* what follows is not compressed any more, and is to be ignored */
    DECOMPRESSOR_BROKEN,    /* damaged */
    DECOMPRESSOR_TOO_LARGE, /* undoing it takes more than DECOMPRESSOR_MOST_MEMORY */
    DECOMPRESSOR_NO_MEMORY,
};

/* The name of the compression that these first bytes of a file show ("gzip"), or NULL: none. */
const char *decompressor_sniff(struct span head);

/* For a name of decompressor_sniff(). NULL without memory. */
struct decompressor *decompressor_create(const char *name);
void decompressor_destroy(struct decompressor *decompressor);

/*
 * Takes from the front of *in and writes to the front of *out, whichever is used up first. With an
 * empty *in it writes what it still holds back.
 */
enum decompressor_result decompressor_run(struct decompressor *decompressor, struct span *in,
                                          char **out, size_t *out_len);

/* May the input end here? Between members and frames it may. */
bool decompressor_is_whole(const struct decompressor *decompressor);

#endif
