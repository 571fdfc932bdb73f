/*
 * Dates of HTTP (RFC 9110 section 5.6.7): the preferred format, that of RFC 850, and that of C's
 * asctime(). Pure arithmetic, no locale and no time zone of the machine. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_DATE_H
#define SUNPROXY_HTTP_DATE_H

#include <stdint.h>

#include "base/span.h"

/*
 * Reads a date as seconds since 1970-01-01 00:00:00 GMT, in any case (RFC 9111 section 4.2), and
 * nothing else in any other respect: one space where one stands in the grammar, two digits where
 * there are two, GMT alone, a day that its month has. The name of the weekday is not compared with
 * the date. A leap second is the second before it, so that no date is read as later than it is.
 *
 * `now_s` is the present time, from which the century of a year of two digits follows: one that
 * would be more than 50 years ahead is in the past. False if the text is no date.
 */
bool http_date_parse(struct span text, int64_t now_s, int64_t *seconds);

#define HTTP_DATE_SIZE 30 /* "Sun, 06 Nov 1994 08:49:37 GMT" and a zero byte */

/*
 * Writes the preferred format of a time, seconds since 1970-01-01 00:00:00 GMT. Times outside the
 * years 0 to 9999 are written as the first or the last second of these.
 */
void http_date_format(int64_t seconds, char text[HTTP_DATE_SIZE]);

#endif
