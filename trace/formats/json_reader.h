/*
 * Reads a JSON text (RFC 8259) of any size as a stream, value by value: the caller reads or skips
 * each, and memory grows with the longest text that is read and with nothing else. It accepts the
 * grammar only, but for control characters in strings and numbers such as
 * "+1", which some programs write.
 *
 * A container is entered, and then json_reader_next() leads from member to member, each of which is
 * entered, read or skipped:
 *
 *     if (json_reader_kind(r) == JSON_READER_OBJECT && json_reader_enter(r))
 *         while (json_reader_next(r, &name))
 *             json_reader_skip(r);
 *
 * After a failure nothing more is read: every function returns false then.
 */
#ifndef SUNPROXY_TRACE_FORMATS_JSON_READER_H
#define SUNPROXY_TRACE_FORMATS_JSON_READER_H

#include "base/buf.h"
#include "trace/input.h"

#define JSON_READER_DEPTH 1000u /* of containers within each other */

enum json_reader_kind {
    JSON_READER_NONE, /* no value begins here */
    JSON_READER_OBJECT,
    JSON_READER_ARRAY,
    JSON_READER_TEXT,
    JSON_READER_NUMBER,
    JSON_READER_WORD, /* true, false, null */
};

struct json_reader {
    struct input *in;                               /* not owned */
    struct span ahead;                              /* what it has shown */
    size_t at;                                      /* how much of that is read */
    uint64_t before;                                /* bytes before that */
    unsigned depth;                                 /* containers that were entered */
    unsigned char is_object[JSON_READER_DEPTH / 8]; /* a bit for each */
    bool fresh;                                     /* the last one has had no member yet */
    bool failed;                                    /* not JSON, or cut short, or: */
    bool no_memory;
};

void json_reader_init(struct json_reader *r, struct input *in);

/* Bytes read so far: where a failure is. */
uint64_t json_reader_offset(const struct json_reader *r);

/* What the next value is. */
enum json_reader_kind json_reader_kind(struct json_reader *r);

/* Enters the object or array that comes next. */
bool json_reader_enter(struct json_reader *r);

/*
 * To the next member of the container entered last. False at its end, which ends it. The name of
 * a member of an object is put into `name` (NULL: it is dropped); one that is longer than the
 * buffer may be counts as empty.
 */
bool json_reader_next(struct json_reader *r, struct buf *name);

/*
 * Reads the string that comes next, with its escapes undone, in place of what the buffer had. False
 * with an empty buffer also if it is longer than the buffer may be.
 */
bool json_reader_text(struct json_reader *r, struct buf *text);

/*
 * Reads the number that comes next. False with *number unchanged also if it has more than 63
 * characters, of which nothing else is checked.
 */
bool json_reader_number(struct json_reader *r, double *number);

/* Reads over whatever comes next. */
void json_reader_skip(struct json_reader *r);

#endif
