#include "trace/formats/fields.h"

#include <arpa/inet.h>

#include "base/ascii.h"
#include "trace/trace.h"

#define MICRO INT64_C(1000000)

static bool
is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct span
fields_trim(struct span s)
{
    while (s.len != 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    while (s.len != 0 && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    return s;
}

struct span
fields_trim_spaces(struct span s)
{
    while (s.len != 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    while (s.len != 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    return s;
}

struct span
fields_word(struct span *rest)
{
    struct span word;
    size_t at = 0;
    size_t end;

    while (at < rest->len && is_blank(rest->ptr[at]))
        at++;
    for (end = at; end < rest->len && !is_blank(rest->ptr[end]); end++)
        continue;
    word = span_of(rest->ptr + at, end - at);
    *rest = span_of(rest->ptr + end, rest->len - end);
    return word;
}

bool
fields_next(struct span *rest, char separator, struct span *field)
{
    const char *end;

    if (!rest->ptr)
        return false;
    end = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    *field = span_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = end ? span_of(end + 1, rest->len - field->len - 1) : span_of(NULL, 0);
    return true;
}

/* Where a text ends that begins with a quote or bracket at 0; 0: nowhere. */
static size_t
find_close(struct span s, char close)
{
    for (size_t i = 1; i < s.len; i++) {
        if (s.ptr[i] == close && s.ptr[i - 1] != '\\' && (i + 1 == s.len || is_blank(s.ptr[i + 1])))
            return i;
    }
    return 0;
}

bool
fields_quoted(struct span *rest, struct span *field)
{
    size_t end;

    *rest = fields_trim(*rest);
    if (rest->len == 0)
        return false;
    if (rest->ptr[0] == '"' || rest->ptr[0] == '[') {
        end = find_close(*rest, rest->ptr[0] == '"' ? '"' : ']');
        if (end != 0) {
            *field = span_of(rest->ptr + 1, end - 1);
            *rest = span_of(rest->ptr + end + 1, rest->len - end - 1);
            return true;
        }
        if (rest->ptr[0] == '"')
            return false;
    }
    *field = fields_word(rest);
    return true;
}

bool
fields_is_address(struct span s)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;

    if (s.len == 0 || s.len >= sizeof(text))
        return false;
    memcpy(text, s.ptr, s.len);
    text[s.len] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

bool
fields_uint(struct span s, uint64_t *value)
{
    uint64_t sum = 0;

    if (s.len == 0 || s.len > 20)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        uint64_t digit = (uint64_t)(s.ptr[i] - '0');

        if (!ascii_is_digit(s.ptr[i]) || __builtin_mul_overflow(sum, 10U, &sum) ||
            __builtin_add_overflow(sum, digit, &sum))
            return false;
    }
    *value = sum;
    return true;
}

bool
fields_int(struct span s, int64_t *value)
{
    bool negative = s.len != 0 && s.ptr[0] == '-';
    uint64_t number;

    if (!fields_uint(negative ? span_of(s.ptr + 1, s.len - 1) : s, &number) || number > INT64_MAX)
        return false;
    *value = negative ? -(int64_t)number : (int64_t)number;
    return true;
}

static bool
is_nothing(struct span s)
{
    return s.len == 0 || (s.len == 1 && s.ptr[0] == '-');
}

bool
fields_size(struct span s, int64_t *size)
{
    uint64_t value;

    *size = -1;
    if (is_nothing(s))
        return true;
    if (!fields_uint(s, &value) || value > INT64_MAX)
        return false;
    *size = (int64_t)value;
    return true;
}

bool
fields_status(struct span s, unsigned *status)
{
    uint64_t value;

    *status = TRACE_STATUS_NONE;
    if (is_nothing(s))
        return true;
    if (s.ptr[0] == '-') /* an error code of a browser's */
        return fields_uint(span_of(s.ptr + 1, s.len - 1), &value);
    if (!fields_uint(s, &value) || value > UINT16_MAX)
        return false;
    if (value >= 100)
        *status = (unsigned)value;
    return true;
}

/* Digits after a point, as microseconds; what is finer is dropped. */
static bool
fraction(struct span s, int64_t *us)
{
    int64_t unit = MICRO;

    *us = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!ascii_is_digit(s.ptr[i]))
            return false;
        unit /= 10;
        *us += (s.ptr[i] - '0') * unit;
    }
    return s.len != 0;
}

bool
fields_seconds(struct span s, int64_t *us)
{
    const char *point;
    bool negative = s.len != 0 && s.ptr[0] == '-';
    struct span whole;
    uint64_t seconds;
    int64_t rest = 0;

    if (negative)
        s = span_of(s.ptr + 1, s.len - 1);
    point = s.len ? memchr(s.ptr, '.', s.len) : NULL;
    whole = span_of(s.ptr, point ? (size_t)(point - s.ptr) : s.len);
    if (!fields_uint(whole, &seconds) || seconds > (uint64_t)(INT64_MAX / MICRO - 1))
        return false;
    if (point && !fraction(span_of(point + 1, s.len - whole.len - 1), &rest))
        return false;
    *us = (int64_t)seconds * MICRO + rest;
    if (negative)
        *us = -*us;
    return true;
}

/* ---- dates --------------------------------------------------------------------------------- */

/* Days since 1970-01-01 of the proleptic Gregorian calendar; month from 1. */
static int64_t
days_since_epoch(int64_t year, int64_t month, int64_t day)
{
    /* Years from March on, so that the leap day is the last. */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t m = month <= 2 ? month + 9 : month - 3;

    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

/* Takes exactly `digits` digits off the front, and the character behind them unless it is 0. */
static bool
take_number(struct span *s, size_t digits, char behind, int64_t *value)
{
    *value = 0;
    if (s->len < digits + (behind ? 1 : 0))
        return false;
    for (size_t i = 0; i < digits; i++) {
        if (!ascii_is_digit(s->ptr[i]))
            return false;
        *value = *value * 10 + (s->ptr[i] - '0');
    }
    if (behind && s->ptr[digits] != behind)
        return false;
    digits += behind ? 1 : 0;
    *s = span_of(s->ptr + digits, s->len - digits);
    return true;
}

/* "10:05:03", or "10:05"; only with seconds a fraction may follow. */
static bool
take_clock(struct span *s, int64_t *seconds, bool *has_seconds)
{
    int64_t hour, minute;
    int64_t second = 0;

    if (!take_number(s, 2, ':', &hour) || !take_number(s, 2, '\0', &minute))
        return false;
    *has_seconds = s->len != 0 && s->ptr[0] == ':';
    if (*has_seconds) {
        *s = span_of(s->ptr + 1, s->len - 1);
        if (!take_number(s, 2, '\0', &second))
            return false;
    }
    *seconds = (hour * 60 + minute) * 60 + second;
    return hour <= 23 && minute <= 59 && second <= 60;
}

/* ".123456", or nothing. */
static bool
take_fraction(struct span *s, int64_t *us)
{
    size_t end = 1;
    bool good;

    *us = 0;
    if (s->len == 0 || s->ptr[0] != '.')
        return true;
    while (end < s->len && ascii_is_digit(s->ptr[end]))
        end++;
    good = fraction(span_of(s->ptr + 1, end - 1), us);
    *s = span_of(s->ptr + end, s->len - end);
    return good;
}

/* "+0100", "-01:00", "Z" or nothing: all that is left. */
static bool
take_zone(struct span s, int64_t *seconds)
{
    bool negative;
    int64_t hour, minute;

    *seconds = 0;
    if (s.len == 0 || (s.len == 1 && (s.ptr[0] == 'Z' || s.ptr[0] == 'z')))
        return true;
    if (s.ptr[0] != '+' && s.ptr[0] != '-')
        return false;
    negative = s.ptr[0] == '-';
    s = span_of(s.ptr + 1, s.len - 1);
    if (!take_number(&s, 2, '\0', &hour))
        return false;
    if (s.len == 3 && s.ptr[0] == ':')
        s = span_of(s.ptr + 1, 2);
    if (!take_number(&s, 2, '\0', &minute) || s.len != 0 || hour > 23 || minute > 59)
        return false;
    *seconds = (hour * 60 + minute) * (negative ? -60 : 60);
    return true;
}

static bool
month_of(const char *name, int64_t *month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (*month = 1; *month <= 12; (*month)++) {
        if (memcmp(names + 3 * (*month - 1), name, 3) == 0)
            return true;
    }
    return false;
}

static bool
valid_day(int64_t year, int64_t month, int64_t day)
{
    bool december = month == 12;

    return month >= 1 && month <= 12 && day >= 1 &&
           day <= days_since_epoch(december ? year + 1 : year, december ? 1 : month + 1, 1) -
                      days_since_epoch(year, month, 1);
}

bool
fields_log_date(struct span s, int64_t *us)
{
    struct span epa = s;
    int64_t day, month, year, seconds, zone, rest;
    bool whole;

    if (take_number(&epa, 2, ':', &day) && take_clock(&epa, &seconds, &whole) && whole &&
        epa.len == 0) {
        *us = (day * 86400 + seconds) * MICRO;
        return true;
    }
    if (!take_number(&s, 2, '/', &day) || s.len < 4 || !month_of(s.ptr, &month) || s.ptr[3] != '/')
        return false;
    s = span_of(s.ptr + 4, s.len - 4);
    if (!take_number(&s, 4, ':', &year) || !take_clock(&s, &seconds, &whole) || !whole ||
        !valid_day(year, month, day) || !take_fraction(&s, &rest) ||
        !take_zone(fields_trim(s), &zone))
        return false;
    *us = (days_since_epoch(year, month, day) * 86400 + seconds - zone) * MICRO + rest;
    return true;
}

bool
fields_iso_date(struct span s, int64_t *us)
{
    int64_t day, month, year;
    int64_t seconds = 0;
    int64_t rest = 0;
    int64_t zone;

    if (!take_number(&s, 4, '-', &year) || !take_number(&s, 2, '-', &month) ||
        !take_number(&s, 2, '\0', &day) || !valid_day(year, month, day))
        return false;
    if (s.len != 0 && (s.ptr[0] == 'T' || s.ptr[0] == 't' || s.ptr[0] == ' ')) {
        bool whole;

        s = span_of(s.ptr + 1, s.len - 1);
        if (!take_clock(&s, &seconds, &whole) || (whole && !take_fraction(&s, &rest)))
            return false;
    }
    if (!take_zone(fields_trim(s), &zone))
        return false;
    *us = (days_since_epoch(year, month, day) * 86400 + seconds - zone) * MICRO + rest;
    return true;
}

enum fields_unit
fields_epoch(struct span s, int64_t *us)
{
    const uint64_t first_ms = 100000000000, first_us = 100000000000000,
                   first_ns = 100000000000000000;
    const char *point = s.len ? memchr(s.ptr, '.', s.len) : NULL;
    size_t len = point ? (size_t)(point - s.ptr) : s.len;
    uint64_t whole;
    int64_t rest = 0;

    if (!fields_uint(span_of(s.ptr, len), &whole) ||
        (point && !fraction(span_of(point + 1, s.len - len - 1), &rest)))
        return FIELDS_NO_UNIT;
    if (whole < first_ms) {
        *us = (int64_t)whole * MICRO + rest;
        return FIELDS_SECONDS;
    }
    if (whole < first_us) {
        *us = (int64_t)whole * 1000 + rest / 1000;
        return FIELDS_MILLISECONDS;
    }
    *us = (int64_t)(whole < first_ns ? whole : whole / 1000);
    return whole < first_ns ? FIELDS_MICROSECONDS : FIELDS_NANOSECONDS;
}

bool
fields_any_time(struct span s, int64_t *us)
{
    char copy[64];

    s = fields_trim(s);
    if (s.len > 1 && s.ptr[0] == '[' && s.ptr[s.len - 1] == ']')
        s = span_of(s.ptr + 1, s.len - 2);
    if (s.len >= sizeof(copy))
        return false;
    if (fields_epoch(s, us) || fields_iso_date(s, us) || fields_log_date(s, us))
        return true;
    if (s.len < 10 || s.ptr[4] != '/' || s.ptr[7] != '/')
        return false;
    memcpy(copy, s.ptr, s.len);
    copy[4] = copy[7] = '-';
    return fields_iso_date(span_of(copy, s.len), us);
}

static int
hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool
fields_unescape(struct span s, struct buf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];

        if (c == '\\') {
            int high = s.len - i > 3 && s.ptr[i + 1] == 'x' ? hex_digit(s.ptr[i + 2]) : -1;
            int low = high >= 0 ? hex_digit(s.ptr[i + 3]) : -1;

            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 3;
        }
        if (out && !buf_append_char(out, c))
            return false;
    }
    return true;
}
