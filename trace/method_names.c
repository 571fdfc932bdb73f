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
    for (unsigned i = METHOD_NAMES_OTHER; i < m->count; i++)
        if (span_equal(name, span_str(m->names[i])))
            return (uint8_t)i;
    if (m->count == METHOD_NAMES_MOST || !is_method(name))
        return METHOD_NAMES_OTHER;
    memcpy(m->names[m->count], name.ptr, name.len);
    return (uint8_t)m->count++;
}
