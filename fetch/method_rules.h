/*
 * What the method of a request implies (RFC 9110 section 9).
 */
#ifndef SUNPROXY_FETCH_METHOD_RULES_H
#define SUNPROXY_FETCH_METHOD_RULES_H

#include "fetch/fetch.h"

#define METHOD_MAX 64u /* bytes */

/*
 * Checks the method and whether it allows the request's body. FETCH_OK, or FETCH_BAD_METHOD with a
 * sentence in `why`.
 */
enum fetch_error method_check(const struct fetch_request *request, char *why, size_t why_size);

/*
 * May the request be sent a second time when the first one had no response? Its method is safe
 * (section 9.2.1) and its body can be repeated. PUT and DELETE are idempotent, but a second one may
 * undo what another client has written meanwhile, or respond that there is nothing to delete.
 */
bool method_may_repeat(const struct fetch_request *request);

/* May a redirect of it be followed unasked: is it a GET or HEAD without a body (section 15.4)? */
bool method_may_follow(const struct fetch_request *request);

#endif
