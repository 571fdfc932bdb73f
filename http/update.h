/*
 * Fields of stored responses: which are stored (RFC 9111 section 3.1), and how a 304 updates them
 * (section 3.2). Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_UPDATE_H
#define SUNPROXY_HTTP_UPDATE_H

#include <stdint.h>

#include "base/buf.h"
#include "http/storing.h"

#define HTTP_UPDATES_MAX 128u /* fields of a 304, a bound on the search for each stored one */

/*
 * Appends the lines of a response that are stored, each ended by CR LF, and Date of `wall_s` if the
 * response has none (RFC 9110 section 6.6.1). Left out: hop-by-hop fields, those that Connection
 * lists, Proxy-*, and Age, which is written anew for each use; where the rules say so, those that
 * no-cache and private name, and Set-Cookie.
 *
 * False if Connection lists too many fields to be searched, with out->failed unset: the response is
 * not stored. Without memory the buffer says so, too.
 */
bool http_stored_fields(struct span lines, const struct http_storing_rules *rules, int64_t wall_s,
                        struct buf *out);

/*
 * Appends the fields of a stored response as the 304 with `update` has them changed: each field of
 * the 304 replaces the stored lines of its name. Not changed are Content-Length, Content-Encoding
 * and Content-Range, which belong to the stored content; otherwise as http_stored_fields().
 *
 * The result is evaluated again, with `update` as http_received.validated_by. It may name other
 * fields in Vary than before (http_vary_equal()), for which the stored response was not selected.
 *
 * False, with out->failed unset, also if the 304 has more than HTTP_UPDATES_MAX fields.
 */
bool http_update_fields(struct span stored, struct span update,
                        const struct http_storing_rules *rules, int64_t wall_s, struct buf *out);

#endif
