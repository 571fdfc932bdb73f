#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

void
buf_init(struct buf *b, size_t ceiling)
{
    *b = (struct buf){.ceiling = ceiling};
}

void
buf_free(struct buf *b)
{
    free(b->data);
    buf_init(b, b->ceiling);
}

void
buf_reset(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void
buf_truncate(struct buf *b, size_t len)
{
    b->len = len;
    if (b->data)
        b->data[len] = '\0';
}

/* And the zero byte behind them. */
bool
buf_reserve(struct buf *b, size_t more)
{
    size_t capacity;
    char *data;

    if (more > b->ceiling - b->len) {
        b->failed = true;
        return false;
    }
    if (b->len + more < b->capacity)
        return true;
    capacity = b->capacity ? b->capacity : 64;
    while (capacity <= b->len + more)
        capacity *= 2;
    if (capacity > b->ceiling + 1)
        capacity = b->ceiling + 1;
    data = realloc(b->data, capacity);
    if (!data) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->capacity = capacity;
    return true;
}

bool
buf_append(struct buf *b, const void *bytes, size_t len)
{
    if (!buf_reserve(b, len))
        return false;
    if (len)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
    return true;
}

bool
buf_append_str(struct buf *b, const char *text)
{
    return buf_append(b, text, strlen(text));
}

bool
buf_append_char(struct buf *b, char c)
{
    return buf_append(b, &c, 1);
}

bool
buf_vprintf(struct buf *b, const char *format, va_list args)
{
    va_list again;
    int len;

    va_copy(again, args);
    len = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (len < 0 || !buf_reserve(b, (size_t)len)) {
        b->failed = true;
        return false;
    }
    vsnprintf(b->data + b->len, (size_t)len + 1, format, args);
    b->len += (size_t)len;
    return true;
}

bool
buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    bool ok;

    va_start(args, format);
    ok = buf_vprintf(b, format, args);
    va_end(args);
    return ok;
}

bool
buf_end_line(struct buf *b)
{
    return b->len == 0 || b->data[b->len - 1] == '\n' || buf_append_char(b, '\n');
}

void
buf_unend_line(struct buf *b)
{
    if (b->len && b->data[b->len - 1] == '\n')
        b->data[--b->len] = '\0';
}
