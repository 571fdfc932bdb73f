/*
 * Ranges of bytes: Range of requests, Content-Range and multipart/byteranges of responses (RFC 9110
 * section 14). Positions and lengths are of 64 bits with sign. Nothing is allocated. Safe on any
 * thread.
 */
#ifndef SUNPROXY_HTTP_RANGE_H
#define SUNPROXY_HTTP_RANGE_H

#include <stdint.h>

#include "base/span.h"
#include "http/response_head.h"

#define HTTP_RANGES_MAX 8

/* Both positions belong to the range. */
struct http_range {
    int64_t first; /* as requested: -1 for a suffix */
    int64_t last;  /* as requested: INT64_MAX for an open end; of a suffix: its length */
};

struct http_ranges {
    struct http_range of[HTTP_RANGES_MAX];
    size_t count;
};

/*
 * Reads the Range of a GET request. False if there is none, or one that is ignored, so that the
 * whole is the answer (section 14.2): another unit than bytes, a range that breaks the grammar or
 * ends before it begins, more than HTTP_RANGES_MAX, more than one line. Positions over INT64_MAX
 * count as that.
 */
bool http_ranges_read(struct http_ranges *ranges, struct span request_lines);

/* What of the whole a request asks for whose response is not there yet. */
enum http_wanted {
    HTTP_WANTS_WHOLE,  /* there is no range, or one that is ignored */
    HTTP_WANTS_TO_END, /* all from a position below `near` on */
    HTTP_WANTS_PART,   /* any other range, or several */
};
enum http_wanted http_wanted_read(struct span request_lines, uint64_t near);

/* Does a response with these lines permit ranges: is it without Accept-Ranges: none (section 14.3)?
 */
bool http_accepts_ranges(struct span response_lines);

enum http_range_result {
    HTTP_RANGE_WHOLE,         /* ranges overlap, which is ignored: section 14.2 */
    HTTP_RANGE_PARTIAL,       /* 206 */
    HTTP_RANGE_UNSATISFIABLE, /* 416 */
};

/*
 * The ranges of a content of `length` bytes, in the order of the request. Those that begin behind
 * its end are dropped; if all do, the request is not satisfiable (section 14.1.2).
 */
enum http_range_result http_ranges_resolve(const struct http_ranges *requested, int64_t length,
                                           struct http_ranges *resolved);

/* Content-Range: section 14.4. */
struct http_content_range {
    int64_t first, last; /* -1 both: the range was not satisfiable */
    int64_t length;      /* of the whole; -1: not known */
};

/* Reads a value of Content-Range. False for another unit than bytes and for what is invalid. */
bool http_content_range_parse(struct http_content_range *range, struct span value);

/* Writes the field line. */
void http_write_content_range(struct http_writer *writer, const struct http_content_range *range);

/* ---- multipart/byteranges: section 14.6 -------------------------------------------------------
 */

#define HTTP_BOUNDARY_SIZE 25 /* with a zero byte */

/* Makes a boundary of 64 random bits, which should differ from answer to answer. */
void http_boundary_make(char boundary[HTTP_BOUNDARY_SIZE], uint64_t random_bits);

struct http_multipart {
    const char *boundary;
    struct span content_type; /* of the whole; empty: none */
    int64_t length;           /* of the whole */
};

/* The field line Content-Type of such a response. */
void http_write_multipart_type(struct http_writer *writer, const struct http_multipart *multipart);

/* What stands before the bytes of a range; `first_part`: none stands before this one. */
void http_write_part_head(struct http_writer *writer, const struct http_multipart *multipart,
                          const struct http_range *range, bool first_part);

/* What stands behind the last part. */
void http_write_multipart_end(struct http_writer *writer, const struct http_multipart *multipart);

/* Content-Length of such a response: everything that is written for these ranges, and their bytes.
 */
int64_t http_multipart_length(const struct http_multipart *multipart,
                              const struct http_ranges *resolved);

#endif
