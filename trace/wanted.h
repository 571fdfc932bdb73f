/*
 * Lists of HTTP methods and statuses, as options have them. Pure.
 */
#ifndef SUNPROXY_TRACE_WANTED_H
#define SUNPROXY_TRACE_WANTED_H

#include <stdint.h>

#include "base/span.h"

#define WANTED_STATUSES 1000u

struct wanted_statuses {
    uint64_t bits[(WANTED_STATUSES + 63u) / 64u];
    bool all;
};

/* "200,304", "2xx", "200-206", "all", or several with commas between; false: it is none of them. */
bool wanted_parse_statuses(const char *text, struct wanted_statuses *wanted);
bool wanted_status(const struct wanted_statuses *wanted, unsigned status);
void wanted_set_status(struct wanted_statuses *wanted, unsigned status, bool on);

/* Names of methods (RFC 9110 tokens) with commas between, or "all". */
bool wanted_methods_ok(const char *text);
bool wanted_method(const char *text, struct span method);

#endif
