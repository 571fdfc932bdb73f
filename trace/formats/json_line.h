/*
 * Logs of a JSON object a line: members by name, as text.
 */
#ifndef SUNPROXY_TRACE_FORMATS_JSON_LINE_H
#define SUNPROXY_TRACE_FORMATS_JSON_LINE_H

#include <cjson/cJSON.h>

#include "base/span.h"
#include "trace/formats/lines.h"

#define JSON_LINE_NUMBERS 16u
#define JSON_LINE_NUMBER_BYTES 40u

/* One line. Zero bytes are an empty one. */
struct json_line {
    cJSON *root; /* owned; NULL: the line is no object */
    char numbers[JSON_LINE_NUMBERS][JSON_LINE_NUMBER_BYTES];
    unsigned number_count;
};

/*
 * Parses a line in place of the one before. False if it is no JSON object, or has a string with a
 * zero character, which a C string would cut short.
 */
bool json_line_parse(struct json_line *json, struct span line);
void json_line_free(struct json_line *json);

/* json_line_free() for a format (lines.h) whose state is a struct json_line or begins with one. */
void json_line_end(struct line_reader *reader);

/*
 * The text of a member that is a string, or of a number, printed with at most 6 decimals; empty if
 * there is none, or it is null, or of another kind. Dots separate the names of nested objects, but
 * a member whose own name has dots is preferred. Valid until the next line. Of a line, the first
 * JSON_LINE_NUMBERS numbers are available.
 */
struct span json_line_text(struct json_line *json, const char *name);

/* The first of these names, ended by NULL, whose text is not empty. */
struct span json_line_first(struct json_line *json, const char *const *names);

/* Is there such a member, of whatever kind? */
bool json_line_has(const struct json_line *json, const char *name);

#endif
