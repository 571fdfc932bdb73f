/*
 * The order in which the parts of an answer come.
 *
 * libcurl's call-backs follow its own reading of what the origin sends, which is not ours in all
 * cases: it ends a head at any line that begins with CR or LF, for instance. Each call-back asks
 * here first, and what is out of order fails the fetch.
 */
#ifndef SUNPROXY_FETCH_ANSWER_H
#define SUNPROXY_FETCH_ANSWER_H

#include <stdbool.h>

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
