/*
 * Segments "." and ".." in the paths of requests (RFC 3986 section 5.2.4), as rows of --origin are
 * matched with them.
 */
#ifndef SUNPROXY_HTTP_DOT_SEGMENTS_H
#define SUNPROXY_HTTP_DOT_SEGMENTS_H

#include <stdbool.h>

#include "base/span.h"

/*
 * The path of a request as rows are matched with it, responses are keyed and origins are asked:
 * that without dot segments (RFC 3986 sections 5.2.4 and 6.2.2.3), if it has a segment "..", be it
 * written with "%2e"; any other path is as it was sent. So a segment "." alone stays, which leads
 * nowhere, and which apt sends for a flat repository. `out` has space for the path, and may have
 * it then.
 */
struct span http_path_clean(struct span path, char *out);

/*
 * Has a path what some origins take for a segment ".."? One that removes it would serve what is
 * outside of the row. Some drop the parameters of a segment ("..;x", RFC 3986 section 3.3) before
 * they look, and some decode "%2f", or take a backslash for a slash. The query does not count.
 */
bool http_path_leads_up(struct span path);

#endif
