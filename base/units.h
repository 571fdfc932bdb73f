/*
 * Numbers as people write them on a command line and in a configuration file, and back.
 */
#ifndef SUNPROXY_BASE_UNITS_H
#define SUNPROXY_BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

/* A whole number within [low, high]; digits only, the whole text. */
bool units_parse_uint(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/*
 * Bytes: a number, a fraction allowed, with an optional unit: B, K, M, G, T or KiB, MiB, ... for
 * powers of 1024; kB, KB, MB, GB, TB for powers of 1000. Case matters only in so far as "kB" and
 * "KB" are decimal and a bare letter in either case is binary. False for anything else and on
 * overflow.
 */
bool units_parse_bytes(const char *text, uint64_t *bytes);

/*
 * `len` characters that are digits and at most one point, "0.5", "12", "3.", and nothing else that
 * strtod() knows: no sign, exponent, hex, inf or nan. False too for what is too large for a double.
 */
bool units_parse_decimal(const char *text, size_t len, double *number);

/* A share above 0 and at most 1, written as such or in per cent: "0.9", "90%". */
bool units_parse_share(const char *text, double *share);

/* One of the words that '|' separates: *which counts from 0. */
bool units_parse_word(const char *text, const char *words, uint64_t *which);

/*
 * A duration in microseconds: a number, a fraction allowed, with unit us, ms, s, m, h or d; without
 * a unit it is seconds.
 */
bool units_parse_duration(const char *text, int64_t *us);

/* "1.5 MiB"; "300.0 ms", "74 d 0 h 42 m": for people. `size` of 32 is enough for either. Returns
 * text. */
const char *units_format_bytes(uint64_t bytes, char *text, size_t size);
const char *units_format_duration(int64_t us, char *text, size_t size);

#endif
