/*
 * What stands in the lines of logs: words, numbers, dates. Pure functions on spans.
 */
#ifndef SUNPROXY_TRACE_FORMATS_FIELDS_H
#define SUNPROXY_TRACE_FORMATS_FIELDS_H

#include <stdint.h>

#include "base/buf.h"

/* Without blanks and tabs at either end. */
struct span fields_trim(struct span s);

/* Without blanks at either end. */
struct span fields_trim_spaces(struct span s);

/* Takes the next word off the front, words being separated by blanks and tabs; empty: none left. */
struct span fields_word(struct span *rest);

/*
 * Takes the next field off the front, fields being separated by one byte. False behind the last
 * one; an empty line has one empty field.
 */
bool fields_next(struct span *rest, char separator, struct span *field);

/*
 * Takes the next field off the front, fields being separated by blanks: a word, or a text in quotes
 * or brackets, which are removed. False behind the last one, or if a quote does not end before a
 * blank or the end of the line.
 */
bool fields_quoted(struct span *rest, struct span *field);

/* An address of IPv4 or IPv6. */
bool fields_is_address(struct span s);

/* Decimal digits, all of them. */
bool fields_uint(struct span s, uint64_t *value);

/* Decimal digits, with or without a minus sign. */
bool fields_int(struct span s, int64_t *value);

/* A size: digits, "-" or nothing for an unknown one (-1). */
bool fields_size(struct span s, int64_t *size);

/*
 * A status of HTTP: digits; "-", nothing or less than 100 is TRACE_STATUS_NONE: there was no
 * answer.
 */
bool fields_status(struct span s, unsigned *status);

/* Seconds with or without a fraction, as microseconds. A minus sign is allowed. */
bool fields_seconds(struct span s, int64_t *us);

/* "17/May/2015:10:05:03 +0000", a fraction allowed, or EPA-HTTP's "29:23:53:25" (day, hour, minute,
 * second). */
bool fields_log_date(struct span s, int64_t *us);

/* The unit of a count since 1970. */
enum fields_unit {
    FIELDS_NO_UNIT, /* not a count */
    FIELDS_SECONDS,
    FIELDS_MILLISECONDS,
    FIELDS_MICROSECONDS,
    FIELDS_NANOSECONDS,
};

/*
 * A count of seconds, milliseconds, microseconds or nanoseconds since 1970, by magnitude: seconds
 * up to the year 5138. A fraction counts for the first two.
 */
enum fields_unit fields_epoch(struct span s, int64_t *us);

/*
 * A time of any of the usual kinds: a count as of fields_epoch(); a date as of fields_iso_date() or
 * fields_log_date(), in brackets or not; "2006/01/02 15:04:05".
 */
bool fields_any_time(struct span s, int64_t *us);

/*
 * RFC 3339, a blank for the T, a fraction, missing seconds and a missing zone (UTC) allowed; also a
 * mere date. A day that its month does not have is none.
 */
bool fields_iso_date(struct span s, int64_t *us);

/*
 * Appends the text with each \xNN as the byte that it stands for; NULL: only checks it. False for a
 * backslash before anything else, or without memory (buf_failed()).
 */
bool fields_unescape(struct span s, struct buf *out);

#endif
