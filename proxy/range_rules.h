/*
 * Ranges of requests whose response is not there yet (RFC 9110 section 14): what of the whole they
 * ask for, and whether an object that grows serves them soon.
 */
#ifndef SUNPROXY_PROXY_RANGE_RULES_H
#define SUNPROXY_PROXY_RANGE_RULES_H

#include "cache/object.h"

/* A range that begins this far behind what has come of an object is not waited for. */
#define RANGE_NEAR ((uint64_t)1 << 20)

enum range_wanted {
    RANGE_WHOLE,  /* there is no range, or one that is ignored */
    RANGE_TO_END, /* all but what is near the beginning */
    RANGE_PART,   /* any other range, or several */
};

/* By the field lines of a GET request. */
enum range_wanted range_rules_wanted(struct span request_lines);

/*
 * Does the response begin in what has come of the object, which grows, or little behind that? True
 * also where the response is not a part of it: its status is another than 200, its length is not
 * known, or the range cannot be satisfied. False for several ranges, which need all of it.
 */
bool range_rules_are_near(struct span request_lines, const struct object *object);

#endif
