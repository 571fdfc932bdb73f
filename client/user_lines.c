#include "client/user_lines.h"

static bool
is_of(struct span line, struct span name)
{
    return span_starts_with(line, name) && line.len > name.len && line.ptr[name.len] == ':';
}

static bool
put_user(struct buf *to, struct span name, const char *hash)
{
    return buf_append(to, name.ptr, name.len) && buf_append_char(to, ':') &&
           buf_append_str(to, hash) && buf_append_char(to, '\n');
}

bool
user_lines_change(struct span text, struct span name, const char *hash, struct buf *to,
                  bool *had_user)
{
    *had_user = false;
    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len);
        struct span line = span_of(text.ptr, end ? (size_t)(end - text.ptr) + 1 : text.len);

        text = span_of(text.ptr + line.len, text.len - line.len);
        if (!is_of(line, name)) {
            buf_append(to, line.ptr, line.len);
            buf_end_line(to);
            continue;
        }
        if (!*had_user && hash)
            put_user(to, name, hash);
        *had_user = true;
    }
    if (!*had_user && hash)
        put_user(to, name, hash);
    return !buf_failed(to);
}
