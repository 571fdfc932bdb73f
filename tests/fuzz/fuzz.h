/*
 * What the fuzz targets share. A target is one file, tests/fuzz/NAME.c, which defines
 * LLVMFuzzerTestOneInput(); its seed corpus is tests/fuzz/corpus/NAME/, a file an input. `make
 * fuzz` links each with libFuzzer; `make test` links each with replay_main.c, which runs the
 * corpus.
 */
#ifndef SUNPROXY_TESTS_FUZZ_H
#define SUNPROXY_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/span.h"

/* Always returns 0: the input is worth keeping if it reaches new code. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that holds for every input. Unlike assert() it is never compiled out. */
#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/* Takes `len` bytes, or as many as are left, from the front of *input. */
static inline struct span
fuzz_take(struct span *input, size_t len)
{
    struct span taken = span_of(input->ptr, len < input->len ? len : input->len);

    *input = span_of(input->ptr + taken.len, input->len - taken.len);
    return taken;
}

/* Takes one byte; 0 when there is none. */
static inline unsigned
fuzz_byte(struct span *input)
{
    struct span taken = fuzz_take(input, 1);

    return taken.len ? (unsigned char)*taken.ptr : 0;
}

/*
 * Writes the bytes to a file, whose modification time is long past, and returns its path. The next
 * call replaces the file; exit() removes it. Ends the program if the file cannot be written.
 */
const char *fuzz_file(struct span bytes);

/*
 * The name of the corpus file that runs; NULL if the input is none (libFuzzer). A target may demand
 * more of an input with a known name than of any other: that the input is accepted.
 */
extern const char *fuzz_seed;

#endif
