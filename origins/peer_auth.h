/*
 * How daemons that are each other's peers (origin_peers.h) prove that to each other: a field of
 * each request between them, PEER_FIELD, states who sends it, its number and its time, and has a
 * code of authentication (HMAC-SHA-256, RFC 2104) under a key that all of them share, over that, to
 * whom it is sent, the method, the target and what the request says. The response has a code over
 * that of the request. Bodies and other fields are not covered, nor is anything encrypted.
 *
 * A request is accepted once: the receiver keeps for each sender which of its last PEER_WINDOW
 * numbers have come. A sender that starts again counts anew, and states when it has started. A
 * process that was replaced sends on until its connections have ended, so the numbers of the last
 * PEER_PROCESSES are kept; one that is not known is refused once a later one is. What was sent
 * before the receiver has started, or at another time than now by PEER_TIME_US, is refused, so that
 * nothing has to be kept for longer. Clocks that differ by more exclude each other.
 *
 * A key file has a key in each line, at least PEER_KEY_LEAST bytes; empty lines and those that
 * begin with "#" do not count. The first key is sent with, and each is accepted, so that keys can
 * be changed one daemon after the other.
 */
#ifndef SUNPROXY_ORIGINS_PEER_AUTH_H
#define SUNPROXY_ORIGINS_PEER_AUTH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

#define PEER_FIELD "Proxy-Peer" /* "Proxy-": no front and no fetch passes it on */
#define PEER_CLIENT_FIELD "Proxy-Peer-Client" /* peer_auth_name()'s of the client that asks */
#define PEER_NAME_SIZE 17u
#define PEER_KEYS 4u
#define PEER_KEY_LEAST 16u
#define PEER_KEY_MOST 256u
#define PEER_CODE 32u                                /* bytes of a code */
#define PEER_WINDOW 65536u                           /* numbers of a sender that are kept */
#define PEER_TIME_US ((int64_t)30 * 1000000)         /* how far clocks and ways may differ */
#define PEER_START_US ((int64_t)2 * 1000000) /* after a start a request from before it is no sign */
#define PEER_SENDERS 64u                             /* processes that are known at a time */
#define PEER_PROCESSES 4u                            /* of them, those of one sender */
#define PEER_VALUE_SIZE (3 * 17 + 2 * PEER_CODE + 8) /* of the field, beside the sender's URL */

struct peer_keys {
    unsigned count; /* 0: there are none */
    struct span keys[PEER_KEYS];
};

/* Reads the content of a key file, which must stay. False with a sentence in `why`. */
bool peer_keys_read(struct peer_keys *keys, struct span text, struct buf *why);

/* What a code is over. */
struct peer_words {
    struct span from; /* the sender's URL, as all of them are told it, */
    struct span to;   /* and the receiver's */
    struct span method;
    struct span target;
    struct span says; /* PEER_NEWS_FIELD's value; may be empty */
};

/* A code; binary. */
struct peer_code {
    uint8_t bytes[PEER_CODE];
    unsigned key; /* the number of the key under which it was computed, or accepted */
};

/* What has been sent and received; safe on any thread. */
struct peer_auth;

/* NULL without memory. `wall_us` is the time of the start. */
struct peer_auth *peer_auth_create(int64_t wall_us);
void peer_auth_destroy(struct peer_auth *auth);

/* When it has started: what its numbers belong to. */
uint64_t peer_auth_incarnation(const struct peer_auth *auth);

/* Writes the value of the field for a request that is sent now, and its code. False if it does not
 * fit or no code can be computed. */
bool peer_auth_write(struct peer_auth *auth, const struct peer_keys *keys,
                     const struct peer_words *words, int64_t wall_us, struct buf *value,
                     struct peer_code *code);

/* A name for what these bytes identify, which tells a peer nothing else of it. Another process has
 * another one. */
void peer_auth_name(const struct peer_auth *auth, struct span bytes, char name[PEER_NAME_SIZE]);

/* Splits the value of the field: the sender's URL. Empty: it is malformed. */
struct span peer_auth_sender(struct span value);

enum peer_verdict {
    PEER_ACCEPTED,
    PEER_MALFORMED,
    PEER_FORGED, /* its code is another one under each of the keys */
    PEER_LATE,   /* the times differ too much, or it was sent before the start, */
    PEER_EARLY,  /* which was just now: no sign of clocks that differ */
    PEER_AGAIN,  /* it has come before, or is too old to know that */
};

/*
 * Checks the value of the field of a request that has come now; words->from is ignored. *code is
 * that of the request, for the response, and *incarnation that of the sender.
 */
enum peer_verdict peer_auth_check(struct peer_auth *auth, const struct peer_keys *keys,
                                  struct span value, const struct peer_words *words,
                                  int64_t wall_us, struct peer_code *code, uint64_t *incarnation);

/* A phrase for a log. */
const char *peer_verdict_text(enum peer_verdict verdict);

/* What a peer has done with a request. */
enum peer_outcome {
    PEER_NONE,   /* it is no response of a peer */
    PEER_SERVED, /* the response is the one to the request, */
    PEER_FAILED, /* or says why there is none: the origin may be asked */
};

/* Bytes of the value of a response's field. */
#define PEER_RESPONSE_SIZE (2 * PEER_CODE + 2)

/* Writes the value for the response to a request with this code, under the key of the request, which
 * its sender has; empty if none can be computed. */
struct span peer_response_write(const struct peer_keys *keys, const struct peer_code *request,
                                enum peer_outcome outcome, char text[PEER_RESPONSE_SIZE]);

/* What the value of a response's field says; an empty value is PEER_NONE. */
enum peer_outcome peer_response_read(const struct peer_keys *keys, const struct peer_code *request,
                                     struct span value);

#endif
