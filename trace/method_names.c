#include "trace/method_names.h"

void
method_names_init(struct method_names *m)
{
    memset(m, 0, sizeof(*m));
    memcpy(m->names[METHOD_NAMES_OTHER], "OTHER", sizeof("OTHER"));
    m->count = METHOD_NAMES_OTHER + 1;
}

static bool
is_method(struct span name)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (size_t i = 0; i < name.len; i++)
        if (!memchr(token, name.ptr[i], sizeof(token) - 1))
            return false;
    return name.len < METHOD_NAME_BYTES;
}

uint8_t
method_names_put(struct method_names *m, struct span name)
{
    if (name.len == 0)
        return 0;
    if (span_equal(name, span_str(m->names[m->last])))
        return (uint8_t)m->last;
    for (m->last = METHOD_NAMES_OTHER; m->last < m->count; m->last++)
        if (span_equal(name, span_str(m->names[m->last])))
            return (uint8_t)m->last;
    if (m->count == METHOD_NAMES_MOST || !is_method(name)) {
        m->last = METHOD_NAMES_OTHER;
    } else {
        memcpy(m->names[m->count], name.ptr, name.len);
        m->count++;
    }
    return (uint8_t)m->last;
}
