/*
 * The head of an answer: its status line, what its fields say about the framing (RFC 9112 section
 * 6), and which of its lines go on to clients.
 *
 * A head whose framing could be read in two ways is refused, or else its answer is not to be stored
 * and its connection not to be used again: libcurl reads the framing too, and takes the last of two
 * Content-Length fields and "2abc" for 2.
 */
#ifndef SUNPROXY_FETCH_ANSWER_H
#define SUNPROXY_FETCH_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct status_line {
    unsigned version; /* 10 for HTTP/1.0, 11, 20 */
    unsigned status;  /* 100 to 999 */
};

/* "HTTP/1.1 200 OK" or "HTTP/2 200", with or without its end. False if it is something else. */
bool status_line_read(struct status_line *status, struct span line);

/* Interim responses, 204 and 304 have no body, whatever their fields say (RFC 9112 section 6.3). */
bool status_has_body(unsigned status);

struct answer_head {
    struct buf fields;      /* owned: the lines that go on, each ended by CR LF */
    int64_t content_length; /* -1: not stated, or void beside a Transfer-Encoding */
    bool chunked;           /* the body comes in chunks */
    bool binds;             /* it challenges by a scheme that authenticates a connection */
    bool ambiguous;         /* both a Content-Length and a Transfer-Encoding frame the body */
};

/*
 * Reads the field lines (without the status line) as they came with a message of this status and
 * version, interim ones included: folded lines are unfolded (RFC 9112 section 5.2), blanks before
 * the colon removed (section 5.1), control characters but NUL and CR blanked out (RFC 9110
 * section 5.5), hop-by-hop fields dropped (RFC 9110 section 7.6.1), as are fields for proxies other
 * than the challenge of a 407, and a Content-Length of a response whose status forbids it (RFC 9110
 * section 8.6). One Content-Length goes on, in decimal without zeros in front. Returns NULL, or a
 * static sentence on what is malformed beyond repair, or out of memory (*no_memory set). *head is
 * to be freed in any case.
 */
const char *answer_head_read(struct answer_head *head, const struct status_line *status,
                             struct span lines, bool *no_memory);

void answer_head_free(struct answer_head *head);

/* ---- the order of its parts ------------------------------------------------------------------ */

/*
 * libcurl's call-backs follow its own reading of what the origin sends, which is not ours in all
 * cases: it ends a head at any line that begins with CR or LF, for instance. Each call-back asks
 * here first, and what is out of order fails the fetch.
 */
enum answer_part {
    ANSWER_STATUS_LINE,
    ANSWER_FIELD_LINE,
    ANSWER_END_OF_INTERIM,  /* the empty line of an interim head */
    ANSWER_END_OF_HEAD,     /* that of the final head of an answer with a body */
    ANSWER_END_OF_BODILESS, /* that of the final head of one without */
    ANSWER_BYTES,           /* of the body */
    ANSWER_TRAILER_LINE,    /* of HTTP/2 alone: those of HTTP/1.1 are bytes of the body here */
};

/*
 * AWAITED -STATUS_LINE-> HEAD, HEAD -FIELD_LINE-> HEAD, HEAD -END_OF_INTERIM-> AWAITED,
 * HEAD -END_OF_HEAD-> BODY, HEAD -END_OF_BODILESS-> NO_BODY, BODY -BYTES-> BODY,
 * NO_BODY -TRAILER_LINE-> NO_BODY, BODY and TRAILERS -TRAILER_LINE-> TRAILERS. Any other part leads
 * to BROKEN, and none out of it.
 */
enum answer_state {
    ANSWER_AWAITED, /* no line of a head has come, or an interim head is complete */
    ANSWER_HEAD,
    ANSWER_BODY,
    ANSWER_NO_BODY,
    ANSWER_TRAILERS,
    ANSWER_BROKEN,
};

/* The part has come. False if it is out of order; *state is ANSWER_BROKEN then. */
bool answer_advance(enum answer_state *state, enum answer_part part);

/* Does a body follow the final head (RFC 9112 section 6.3)? From that on. */
static inline bool
answer_has_body(enum answer_state state)
{
    return state == ANSWER_BODY || state == ANSWER_TRAILERS;
}

/* Is the final head complete, and all in order since? */
static inline bool
answer_has_head(enum answer_state state)
{
    return state == ANSWER_BODY || state == ANSWER_NO_BODY || state == ANSWER_TRAILERS;
}

#endif
