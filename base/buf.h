/*
 * A growing run of bytes with the ceiling that it was made with: no buffer of the program grows
 * without a bound. After a failed append the buffer holds what it held, and says so from then on
 * (buf_failed), so that a run of appends can be checked once at its end.
 *
 * A buffer belongs to one thread at a time.
 */
#ifndef SUNPROXY_BASE_BUF_H
#define SUNPROXY_BASE_BUF_H

#include <stdarg.h>

#include "base/span.h"

struct buf {
    char *data; /* owned; always followed by a zero byte when not NULL */
    size_t len;
    size_t capacity; /* bytes allocated */
    size_t ceiling;  /* the most that len may become */
    bool failed;     /* an append did not fit or had no memory */
};

/* An empty buffer that may come to hold at most `ceiling` bytes. Allocates nothing. */
void buf_init(struct buf *b, size_t ceiling);

/* Frees the bytes; the buffer is then empty and may be used again under the same ceiling. */
void buf_free(struct buf *b);

/* Forgets the content and any failure, and keeps the memory. */
void buf_reset(struct buf *b);

/* Removes what is behind the first `len` bytes, of which there are as many at least. */
void buf_truncate(struct buf *b, size_t len);

/* Extends the memory, so that `more` bytes can be appended without a failure. False if they cannot;
 * buf_failed() then. */
bool buf_reserve(struct buf *b, size_t more);

/* Appends; false, with the content unchanged, when the ceiling or the memory is reached. */
bool buf_append(struct buf *b, const void *bytes, size_t len);
bool buf_append_str(struct buf *b, const char *text);
bool buf_append_char(struct buf *b, char c);
bool buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends a line feed, unless the buffer is empty or ends with one; removes one at the end. */
bool buf_end_line(struct buf *b);
void buf_unend_line(struct buf *b);
bool buf_vprintf(struct buf *b, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* The content, valid until the next change of the buffer. */
static inline struct span
buf_span(const struct buf *b)
{
    return span_of(b->data, b->len);
}

/* The content as a C string; "" when empty. */
static inline const char *
buf_str(const struct buf *b)
{
    return b->data ? b->data : "";
}

static inline bool
buf_failed(const struct buf *b)
{
    return b->failed;
}

#endif
