/*
 * The names of HTTP methods that a trace has, numbered from 1, so that a request keeps a byte.
 * A log has a handful. A text that is no method's name (RFC 9110, section 9.1: a token), is too
 * long or comes when the table is full is "OTHER".
 */
#ifndef SUNPROXY_TRACE_METHOD_NAMES_H
#define SUNPROXY_TRACE_METHOD_NAMES_H

#include <stdint.h>

#include "base/span.h"

#define METHOD_NAMES_MOST 256u /* the place 0, which means that there is none, included */
#define METHOD_NAMES_OTHER 1u
#define METHOD_NAME_BYTES 24u /* with its zero byte */

struct method_names {
    char names[METHOD_NAMES_MOST][METHOD_NAME_BYTES];
    unsigned count;
};

void method_names_init(struct method_names *m);

/* The number of a name, new ones included; 0 for an empty one. */
uint8_t method_names_put(struct method_names *m, struct span name);

#endif
