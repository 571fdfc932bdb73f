/*
 * Fields of a stored response that a response made from it drops, rewrites or depends on. Which of
 * them a response has is found once, when it is stored, as bits that the object carries: a hit
 * does not search its field lines. Lines are each ended by LF or CR LF. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_KNOWN_FIELDS_H
#define SUNPROXY_HTTP_KNOWN_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Objects on disk have these bits: another meaning of one is another DISK_VERSION
 * (store/disk_record.h). */
enum http_known_field {
    HTTP_KNOWN_AGE = 1,
    HTTP_KNOWN_DATE = 2,
    HTTP_KNOWN_LENGTH = 4, /* of a response: with a value that is a number */
    HTTP_KNOWN_TYPE = 8,
    HTTP_KNOWN_RANGE = 16,
    HTTP_KNOWN_CODING = 32,
    HTTP_KNOWN_LANGUAGE = 64,
    HTTP_KNOWN_LOCATION = 128,    /* or Content-Location */
    HTTP_KNOWN = 256,             /* set by http_known_fields(): the other bits say what there is */
    /* No fields, and never set by http_known_fields(): */
    HTTP_KNOWN_VERSION_1_0 = 512,        /* the response came in HTTP/1.0, as its Via says */
    HTTP_KNOWN_FOR_COOKIE = 1024,        /* it was made for a request with Cookie */
    HTTP_KNOWN_FOR_AUTHORIZATION = 2048, /* it was made for a request with Authorization */
    HTTP_KNOWN_NOT_FOR_COOKIE = 4096,    /* fresh, it is not for requests with Cookie, */
    HTTP_KNOWN_PASSING = 8192,           /* it is not stored: no condition is evaluated on it */
    HTTP_KNOWN_UNSTATED = 16384, /* it is fresh only to clients that know nothing of freshness, as
                                    what states no lifetime: http/storing.h, keeps_unstated */
    HTTP_KNOWN_ORIGIN_CONTROL = 65536, /* a field: what the origin has said about storing, where
                                          rules have changed that for clients (rules/rules.h) */
    HTTP_KNOWN_NO_SET_COOKIE = 131072, /* it is stored without its Set-Cookie
                                          (http_storing.lets_in_cookie) */
    HTTP_KNOWN_UNSAVED = 262144, /* its next request has it offered to the store, */
    HTTP_KNOWN_SAVED = 524288,   /* and it was read from there (store/) */
    HTTP_KNOWN_NOT_FOR_AUTHORIZATION = 32768, /* or with Authorization (http_storing.not_for) */
};

#define HTTP_KNOWN_OF_FIELDS (511u | HTTP_KNOWN_ORIGIN_CONTROL) /* that http_known_fields() may set */

/* The name of a field of stored responses alone (HTTP_KNOWN_ORIGIN_CONTROL). */
#define HTTP_ORIGIN_CONTROL "Cache-Origin-Control"

/* The bit of a line, which is not empty; 0: it is none of these fields. */
unsigned http_known_field(struct span line);

/* The bits of all lines, and HTTP_KNOWN. */
unsigned http_known_fields(struct span lines);

/* The value of the last line of that field, trimmed; a NULL pointer if there is none. */
struct span http_known_value(struct span lines, enum http_known_field field);

/* The value of Content-Length; false if there is none that is a number. */
bool http_known_length(struct span lines, uint64_t *length);

/* The next line with its end; false after the last one. */
bool http_next_whole_line(struct span *rest, struct span *line);

/* The value of a whole line, trimmed. */
struct span http_whole_line_value(struct span line);

#endif
