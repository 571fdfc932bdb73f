/*
 * Reads replies from a stream as they arrive, in pieces of any size, and checks of each what shows
 * a hit from anything else: framing, the call's number, the accepted and successful state, where
 * the page came from (not over HTTP), and its length. Of a body no byte is looked at, so that it
 * need not even be copied out of the kernel.
 */
#ifndef SUNPROXY_TESTS_BENCH_REPLY_H
#define SUNPROXY_TESTS_BENCH_REPLY_H

#include <stdint.h>

#include "base/span.h"
#include "tests/bench/call.h"

/* What is wrong with a reply; zero: nothing. */
enum reply_flaw {
    REPLY_GOOD = 0,
    REPLY_NOT_A_REPLY, /* not the framing or the message type of the protocol: the stream is lost */
    REPLY_DENIED,      /* MSG_DENIED, or accepted without SUCCESS */
    REPLY_FAILED,      /* the server says that it has no page: not PROXY_OK, or no VALUE */
    REPLY_NOT_A_HIT,   /* a page, but not from the cache */
    REPLY_WRONG_LENGTH, /* of the body, or of the whole */
    REPLY_WRONG_NUMBER, /* an xid that is not waited for (checked by the caller) */
};

/* In a few words, for a person. */
const char *reply_strflaw(enum reply_flaw flaw);

/* What all replies of a run should be. */
struct reply_expected {
    enum call_protocol protocol;
    uint32_t body_len; /* of a page or value; for CALL_BARE, of the whole record with its mark */
    bool any_source;   /* a miss will do: the cache is being filled */
};

/* A whole reply. */
struct reply {
    enum reply_flaw flaw;
    uint32_t xid; /* of the RPC protocols but CALL_BARE */
    uint32_t wire_len;
    uint32_t headers_len; /* of the page, where the protocol has them */
};

/* Where the reading of one stream stands. Zeroed at first. */
struct reply_reader {
    struct reply reply;
    uint32_t record_left; /* bytes of the record that are still to come */
    uint32_t skip;        /* of those, the bytes to be passed over unseen */
    uint32_t value;       /* memcached and HTTP: a number under way */
    uint8_t step;
    uint8_t have;    /* bytes of `word` */
    bool ready;      /* the reply is whole */
    bool has_length; /* HTTP: the response has stated its length */
    unsigned char word[4];
};

/*
 * Takes bytes off the front of *bytes until a reply is whole (true, and *reply is set) or none are
 * left (false). After REPLY_NOT_A_REPLY the stream makes no sense any more and is not to be read
 * on.
 */
bool reply_read(struct reply_reader *reader, const struct reply_expected *expected,
                struct span *bytes, struct reply *reply);

/* How many of the next bytes are not examined, and the word that n of these have passed. */
static inline size_t
reply_skippable(const struct reply_reader *reader)
{
    return reader->skip;
}

void reply_skip(struct reply_reader *reader, size_t n);

#endif
