#include "http/method.h"

#define LONGEST_KNOWN 7u

struct known_method {
    const char *name; /* NULL ends a row */
    enum http_method id;
};

/* By the length of the name. */
static const struct known_method known[LONGEST_KNOWN + 1][3] = {
    [0] = {{"", HTTP_GET}},
    [3] = {{"GET", HTTP_GET}, {"PUT", HTTP_PUT}},
    [4] = {{"HEAD", HTTP_HEAD}, {"POST", HTTP_POST}},
    [5] = {{"TRACE", HTTP_TRACE}, {"PATCH", HTTP_PATCH}, {"PURGE", HTTP_PURGE}},
    [6] = {{"DELETE", HTTP_DELETE}},
    [7] = {{"CONNECT", HTTP_CONNECT}, {"OPTIONS", HTTP_OPTIONS}},
};

enum http_method
http_method_of(struct span name)
{
    if (name.len > LONGEST_KNOWN)
        return HTTP_OTHER;
    for (size_t i = 0; i < 3 && known[name.len][i].name; i++)
        if (span_equal(name, span_of(known[name.len][i].name, name.len)))
            return known[name.len][i].id;
    return HTTP_OTHER;
}
