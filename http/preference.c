#include "http/preference.h"

#include <strings.h>

#include "http/field.h"

#define WEIGHT_MAX 1000u

void
http_preferences_init(struct http_preferences *preferences)
{
    preferences->count = 0;
}

/* A weight: "0" or "1" and at most three digits (RFC 9110 section 12.4.2), 1.000 at most. */
static bool
parse_weight(struct span text, unsigned *weight)
{
    unsigned n, unit = WEIGHT_MAX;

    if (text.len == 0 || text.len > 5 || (text.ptr[0] != '0' && text.ptr[0] != '1'))
        return false;
    if (text.len > 1 && text.ptr[1] != '.')
        return false;
    n = text.ptr[0] == '1' ? WEIGHT_MAX : 0;
    for (size_t i = 2; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        unit /= 10;
        n += (unsigned)(text.ptr[i] - '0') * unit;
    }
    *weight = n;
    return n <= WEIGHT_MAX;
}

static bool
parse_member(struct span member, struct span *range, unsigned *weight)
{
    const char *semicolon = memchr(member.ptr, ';', member.len);
    struct span parameter;

    *weight = WEIGHT_MAX;
    *range = member;
    if (!semicolon)
        return http_is_token(*range);
    range->len = (size_t)(semicolon - member.ptr);
    parameter = http_trim(span_of(semicolon + 1, member.len - range->len - 1));
    *range = http_trim(*range);
    return http_is_token(*range) && parameter.len > 2 && strncasecmp(parameter.ptr, "q=", 2) == 0 &&
           parse_weight(span_of(parameter.ptr + 2, parameter.len - 2), weight);
}

bool
http_preferences_read(struct http_preferences *preferences, struct span value)
{
    struct span member;

    while (http_next_member(&value, &member)) {
        if (preferences->count == HTTP_PREFERENCES_MAX ||
            !parse_member(member, &preferences->of[preferences->count].range,
                          &preferences->of[preferences->count].weight))
            return false;
        preferences->count++;
    }
    return true;
}

/* Sorts by weight if that counts, the highest first, and then by range. */
static void
sort(struct http_preferences *preferences, bool by_weight)
{
    for (size_t i = 1; i < preferences->count; i++) {
        for (size_t at = i; at > 0; at--) {
            struct http_preference upper = preferences->of[at - 1];

            if (by_weight && upper.weight != preferences->of[at].weight
                    ? upper.weight > preferences->of[at].weight
                    : http_compare_names(upper.range, preferences->of[at].range) <= 0)
                break;
            preferences->of[at - 1] = preferences->of[at];
            preferences->of[at] = upper;
        }
    }
}

static void
write_member(struct span range, struct buf *out, bool *any)
{
    if (*any)
        buf_append_char(out, ',');
    *any = true;
    http_append_lower(out, range);
}

/* ---- codings ----------------------------------------------------------------------------------
 */

/* The weight of a member that is there; -1: it is not. */
static int
weight_of(const struct http_preferences *preferences, const char *range)
{
    for (size_t i = 0; i < preferences->count; i++)
        if (http_name_is(preferences->of[i].range, range))
            return (int)preferences->of[i].weight;
    return -1;
}

static struct span
canonical_coding(struct span coding)
{
    if (http_name_is(coding, "x-gzip") || http_name_is(coding, "x-compress"))
        return span_of(coding.ptr + 2, coding.len - 2);
    return coding;
}

static const char *const codings[HTTP_CODINGS] = {"br", "compress", "deflate", "gzip", "zstd"};

unsigned
http_coding_bit(struct span coding)
{
    coding = canonical_coding(coding);
    for (unsigned i = 0; i < HTTP_CODINGS; i++)
        if (http_name_is(coding, codings[i]))
            return 1u << i;
    return 0;
}

const char *
http_coding_name(unsigned bit)
{
    unsigned i = 0;

    while (i < HTTP_CODINGS - 1 && bit != 1u << i)
        i++;
    return codings[i];
}

void
http_preferences_write_codings(struct http_preferences *preferences, unsigned unused,
                               struct buf *out)
{
    int others = weight_of(preferences, "*"), identity = weight_of(preferences, "identity");
    struct span last = span_of(NULL, 0);
    bool any = false;

    for (size_t i = 0; i < preferences->count; i++)
        preferences->of[i].range = canonical_coding(preferences->of[i].range);
    sort(preferences, false);
    for (size_t i = 0; i < preferences->count; i++) {
        struct span coding = preferences->of[i].range;
        bool excluded = preferences->of[i].weight == 0;

        if (http_name_is(coding, "identity") || (excluded && others <= 0) ||
            (last.ptr && http_same_name(coding, last)))
            continue;
        last = coding;
        if (!excluded && (http_coding_bit(coding) & unused))
            continue;
        write_member(coding, out, &any);
        if (excluded)
            buf_append_str(out, ";q=0");
    }
    if (identity == 0 || (identity < 0 && others == 0)) {
        write_member(span_str("identity"), out, &any);
        buf_append_str(out, ";q=0");
    }
}

/* ---- ranges of languages ----------------------------------------------------------------------
 */

static void
write_weight(unsigned weight, struct buf *out)
{
    unsigned digits = 3;

    if (weight == WEIGHT_MAX)
        return;
    if (weight == 0) {
        buf_append_str(out, ";q=0");
        return;
    }
    for (; weight % 10 == 0; weight /= 10)
        digits--;
    buf_printf(out, ";q=0.%0*u", (int)digits, weight);
}

void
http_preferences_write_ranges(struct http_preferences *preferences, struct buf *out)
{
    bool any = false;

    sort(preferences, true);
    for (size_t i = 0; i < preferences->count; i++) {
        write_member(preferences->of[i].range, out, &any);
        write_weight(preferences->of[i].weight, out);
    }
}
