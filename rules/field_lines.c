#include "rules/field_lines.h"

#include "http/field.h"
#include "http/known_fields.h"

void
lines_remove(struct buf *lines, bool (*is_removed)(const void *context, struct span line),
             const void *context)
{
    struct span rest = buf_span(lines), line;
    char *out = lines->data;

    while (http_next_whole_line(&rest, &line)) {
        if (is_removed(context, line))
            continue;
        memmove(out, line.ptr, line.len);
        out += line.len;
    }
    if (lines->data)
        buf_truncate(lines, (size_t)(out - lines->data));
}

static bool
has_name(const void *context, struct span line)
{
    struct span value;

    return http_line_is(line, *(const struct span *)context, &value);
}

void
lines_remove_name(struct buf *lines, struct span name)
{
    lines_remove(lines, has_name, &name);
}

void
lines_set(struct buf *lines, struct span name, struct span value)
{
    lines_remove_name(lines, name);
    buf_append(lines, name.ptr, name.len);
    buf_append_str(lines, ": ");
    buf_append(lines, value.ptr, value.len);
    buf_append_str(lines, "\r\n");
}
