/*
 * Conditional requests (RFC 9110 section 13, RFC 9111 section 4.3): those of clients, evaluated
 * against a stored response, and those of a cache, made from a stored response that needs a
 * validation. Heads are field lines. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_CONDITIONAL_H
#define SUNPROXY_HTTP_CONDITIONAL_H

#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

/* What a stored response can be compared by. */
struct http_validators {
    struct span etag; /* as it stands; NULL pointer: none, several that differ, or a list */
    struct span last_modified; /* as it stands; NULL pointer: none, several, or no date */
    int64_t last_modified_s;
    int64_t date_s;
    bool has_date;
};

/* Reads the field lines of a response. `now_s` is the wall clock, for years of two digits. */
void http_validators_read(struct http_validators *validators, struct span lines, int64_t now_s);

/* Entity-tags as they stand, W/ included: RFC 9110 section 8.8.3.2. */
bool http_etag_matches_strongly(struct span a, struct span b);
bool http_etag_matches_weakly(struct span a, struct span b);

enum http_condition {
    HTTP_CONDITION_PROCEED = 200, /* answer as if there were no condition */
    HTTP_CONDITION_NOT_MODIFIED = 304,
    HTTP_CONDITION_FAILED = 412,
};

/*
 * Evaluates the conditions of a GET or HEAD request in the order of RFC 9110 section 13.2.2:
 * If-Match, else If-Unmodified-Since; If-None-Match, else If-Modified-Since. Call it only where the
 * answer would have a status of 2xx (section 13.2.1). If-Range is http_if_range(). A stored
 * response without Last-Modified is compared by its Date (RFC 9111 section 4.3.2). A date that is
 * none, and a field that may come once and comes twice with different values, are ignored.
 *
 * Entity-tags that break the grammar are compared as they stand, and never match strongly. A
 * condition whose bit is not in `has`, of enum http_request_field, is as good as not sent.
 */
enum http_condition http_evaluate_conditions(struct span request_lines, uint32_t has,
                                             struct span stored_lines, int64_t now_s);

/*
 * Does the request have If-Match or If-Unmodified-Since, which are the origin's to evaluate (RFC
 * 9111 section 4.3.2)? Does it have any condition, If-Range included?
 */
bool http_has_origin_condition(struct span request_lines);
bool http_has_condition(struct span request_lines);

/*
 * May the Range of the request be applied to the stored response: has it no If-Range, or one that
 * matches strongly (RFC 9110 section 13.1.5)? A date matches only if it is that of a Last-Modified
 * at least a second before Date (section 8.8.2.2).
 */
bool http_if_range(struct span request_lines, struct span stored_lines, int64_t now_s);

/*
 * Appends If-None-Match and If-Modified-Since made from a stored response, as far as it has the
 * validators: RFC 9111 section 4.3.1. False if it has none; the buffer says if an append failed.
 * Conditions of the client that asks are to be removed: http_is_condition().
 */
bool http_write_validation(struct span stored_lines, int64_t now_s, struct buf *out);

/* Is it a name of a conditional field: If-Match, ..., If-Range? */
bool http_is_condition(struct span name);

/*
 * Does a 304 to http_write_validation() concern the stored response (RFC 9111 section 4.3.4)? Its
 * ETag, if any, is that of the stored response; otherwise its Last-Modified, if both have one, is.
 */
bool http_not_modified_concerns(struct span lines, struct span stored_lines, int64_t now_s);

/*
 * Appends the fields of a stored response that a 304 to a client carries: all but those that
 * describe the content (RFC 9110 section 15.4.5), and Last-Modified only where there is no ETag.
 */
void http_write_not_modified(struct span stored_lines, struct buf *out);

#endif
