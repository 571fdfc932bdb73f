/*
 * Request lines as servers log them: "GET /index.html HTTP/1.1", and as sunproxyd logs calls over
 * RPC: "GET http://example.com/ RPC/2".
 */
#ifndef SUNPROXY_TRACE_FORMATS_REQUEST_LINE_H
#define SUNPROXY_TRACE_FORMATS_REQUEST_LINE_H

#include "trace/formats/lines.h"

/*
 * Splits a request line into method and target; the version is missing in HTTP/0.9, and a target
 * may contain blanks. False: it has no method or no target.
 */
bool request_line_split(struct span text, struct span *method, struct span *target);

/*
 * Sets method and URL of `request` from a request line; see lines_make_url() for `site`. A target
 * that is neither a URL nor a path ("GET index.html") becomes a path. LINE_ORPHAN if there is no
 * request in the text: "-", or the bytes of a client that does not speak HTTP.
 */
enum line_kind request_line_parse(struct line_reader *reader, struct span text,
                                  struct line_site site, struct trace_request *request);

#endif
