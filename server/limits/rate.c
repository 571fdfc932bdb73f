#include "server/limits/rate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static bool
parse_tokens(const char *text, bool bytes, uint64_t *tokens)
{
    if (bytes)
        return units_parse_bytes(text, tokens) && *tokens <= TOKEN_BUCKET_MOST;
    return units_parse_uint(text, 0, TOKEN_BUCKET_MOST, tokens);
}

bool
rate_parse(const char *text, bool bytes, struct token_rate *rate)
{
    const char *colon = strchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : strlen(text);
    struct token_rate read;
    char first[64];

    if (len >= sizeof(first))
        return false;
    memcpy(first, text, len);
    first[len] = '\0';
    if (!parse_tokens(first, bytes, &read.per_second))
        return false;
    read.burst = read.per_second;
    if (colon && (!parse_tokens(colon + 1, bytes, &read.burst) || read.burst == 0))
        return false;
    *rate = read;
    return true;
}

const char *
rate_format(const struct token_rate *rate, char *text, size_t size)
{
    if (rate->per_second)
        snprintf(text, size, "%" PRIu64 ":%" PRIu64, rate->per_second, rate->burst);
    else
        snprintf(text, size, "0");
    return text;
}
