/*
 * What `sunproxy get` asks for over HTTP: the method, the field lines, and the URL in the form that
 * a proxy takes. Safe on any thread.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_REQUEST_H
#define SUNPROXY_CLIENT_GET_GET_REQUEST_H

#include <curl/curl.h>

#include "client/get/get.h"

/* The method of the first request. */
const char *get_request_method(const struct get_options *options);

/* ---- the target ------------------------------------------------------------------------------ */

/* A URL; all zeros: none. */
struct get_target {
    CURLU *parsed;
    char *url;         /* in absolute form (RFC 9112 section 3.2.2): no user, no fragment; ASCII */
    char *host;        /* with the port, if the URL states one */
    char *credentials; /* "user:password" of the URL; NULL: none */
};

/*
 * Parses a URL, in UTF-8; a host beyond ASCII needs a locale with that. NULL, or a sentence that
 * says why it cannot be fetched; then nothing is to be freed.
 */
const char *get_target_parse(struct get_target *target, const char *url);

/*
 * Follows a redirect, whose Location may be relative. *elsewhere: it leads to another scheme, host
 * or port, where credentials must not go. A sentence as above if it cannot be followed, and then
 * the target is free.
 */
const char *get_target_follow(struct get_target *target, struct span location, bool *elsewhere);

void get_target_free(struct get_target *target);

/* ---- fields ---------------------------------------------------------------------------------- */

struct get_fields {
    const struct get_target *target;
    bool has_body;
    int64_t length; /* of the body in bytes; -1: not known */
    bool elsewhere; /* after a redirect to another server: without the user's credentials */
};

/*
 * The field lines of a request, as libcurl takes them: "Name:" keeps libcurl from sending a field
 * of its own, "Name;" sends an empty one. A line of --header replaces the field of that name that
 * would be sent without it. NULL without memory, or if they are too long. The caller's, freed with
 * curl_slist_free_all().
 */
struct curl_slist *get_request_lines(const struct get_options *options,
                                     const struct get_fields *fields);

#endif
