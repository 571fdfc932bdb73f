/*
 * What the scripted origin (tests/origin) answers for a URL: its body follows from the URL alone,
 * so that whoever asked can verify every byte of it.
 */
#ifndef SUNPROXY_TESTS_SOAK_TEXT_H
#define SUNPROXY_TESTS_SOAK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bounds of bodies whose URL states no size: the origin's --size-min and --size-max. */
#define TEXT_SIZE_MIN 256u
#define TEXT_SIZE_MAX 4096u

/* The origin's hash of a URL, which has no port. */
uint64_t text_hash(const char *url);

/* The size that the origin draws for a URL of this hash. */
size_t text_drawn_size(uint64_t hash);

/* Is this the beginning of the text of a URL of this hash, byte for byte? */
bool text_is(uint64_t hash, const char *bytes, size_t len);

#endif
