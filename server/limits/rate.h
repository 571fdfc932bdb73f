/*
 * The text form of rates in options: "RATE[:BURST]" in tokens per second, "0" for no bound. Without
 * a burst, it is the amount of one second.
 */
#ifndef SUNPROXY_SERVER_LIMITS_RATE_H
#define SUNPROXY_SERVER_LIMITS_RATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/token_bucket.h"

/*
 * Parses a rate and its burst, with units of bytes (units.h) if `bytes` is set. False for anything
 * else, for a burst of 0, and above TOKEN_BUCKET_MOST; *rate is then unchanged.
 */
bool rate_parse(const char *text, bool bytes, struct token_rate *rate);

/* "100:250", or "0". RATE_TEXT bytes are enough. Returns text. */
#define RATE_TEXT 48u
const char *rate_format(const struct token_rate *rate, char *text, size_t size);

#endif
