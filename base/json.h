/*
 * Writes JSON (RFC 8259) into a buffer: commas and nesting are kept here, so that a caller says
 * only what it has. Bytes that are not UTF-8 come out as U+FFFD, one a byte: a URL from the wire
 * can be anything. Characters that are not printable (printable.h) are escaped, so that JSON can be
 * looked at on a terminal. A failure of the buffer shows in buf_failed() at the end.
 */
#ifndef SUNPROXY_BASE_JSON_H
#define SUNPROXY_BASE_JSON_H

#include <stdint.h>

#include "base/buf.h"

struct json {
    struct buf *out; /* not owned */
    bool comma;      /* the next value needs a comma in front */
};

void json_init(struct json *j, struct buf *out);

/* Is it well-formed UTF-8 (RFC 3629), and so nothing of it is lost? */
bool json_is_utf8(struct span text);

/* Containers; `key` is NULL inside an array and at the top. */
void json_open_object(struct json *j, const char *key);
void json_close_object(struct json *j);
void json_open_array(struct json *j, const char *key);
void json_close_array(struct json *j);

/* Values; `key` as above. A double that is not finite is written as null. */
void json_string(struct json *j, const char *key, struct span value);
void json_cstring(struct json *j, const char *key, const char *value);
void json_int(struct json *j, const char *key, int64_t value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_double(struct json *j, const char *key, double value, int decimals);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
