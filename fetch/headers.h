/*
 * Header blocks: what a client may send along, and what of an origin's answer goes on to it.
 */
#ifndef SUNPROXY_FETCH_HEADERS_H
#define SUNPROXY_FETCH_HEADERS_H

#include <curl/curl.h>

#include "base/buf.h"
#include "fetch/fetch.h"

#define HEADERS_MAX 65536u /* bytes of a client's header lines */

/*
 * The field lines as libcurl wants them, to be freed with curl_slist_free_all(). Without
 * `credentials`, Authorization and Cookie stay behind. False without memory.
 */
bool headers_to_list(struct span headers, bool credentials, struct curl_slist **list);

/* What the head of an answer says. */
struct answer_head {
    struct buf fields;      /* owned: the lines that go on, each ended by CR LF */
    char *location;         /* owned: of the first Location that says something, or NULL */
    int64_t content_length; /* of the body as it will come; -1: not stated, decoded, or void
                               beside a Transfer-Encoding */
    int64_t stated_length;  /* of the bytes on the wire, decoded or not; -1 likewise */
    bool coded;             /* there is a Content-Encoding other than identity */
};

/*
 * Reads the field lines of an answer (without its status line) as they came: folded lines are
 * unfolded (RFC 9112 section 5.2), hop-by-hop fields dropped (RFC 9110 section 7.6.1), and
 * Content-Length and Content-Encoding where the body is decoded on the way. Returns NULL, or a
 * static sentence on what is malformed beyond repair, or out of memory (*no_memory set). *head is
 * to be freed in any case.
 */
const char *answer_head_read(struct answer_head *head, struct span lines, bool *no_memory);

void answer_head_free(struct answer_head *head);

#endif
