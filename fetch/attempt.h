/*
 * The attempts of a fetch: the members of a row that a request is sent to, one after the other. A
 * request that was not sent goes on to the next member, whatever its method. One that may be
 * repeated, without a body, does so as well after 502, 503 or 504, after a connection that broke
 * before the head, and once after a timeout. One that has waited too long for a member with a limit
 * goes on to another one that has a place. Each member is tried once at most, and none that is
 * down (origin_route.h). A request without a row has one attempt.
 *
 * Before them, peers may be asked (origin_peers.h): one that fails, or whose response is not a
 * peer's, or says that it has none, is passed over. The request is one that may be repeated.
 *
 * On the thread of the fetch; pure but for the state of the members.
 */
#ifndef SUNPROXY_FETCH_ATTEMPT_H
#define SUNPROXY_FETCH_ATTEMPT_H

#include "fetch/fetch.h"
#include "origins/origin_peers.h"

/*
 * OPEN -status-> COUNTS or PASSED_OVER; OPEN, COUNTS -FETCH_REPEAT-> REPEATS. An end leads from
 * OPEN and PASSED_OVER to OPEN with the next member, if there is one, and from REPEATS to OPEN with
 * the same one.
 */
enum attempt_stage {
    ATTEMPT_OPEN,        /* no response has come */
    ATTEMPT_COUNTS,      /* the response is the one of the fetch: no other member is tried */
    ATTEMPT_PASSED_OVER, /* the response is that of a member that fails */
    ATTEMPT_REPEATS,     /* the consumer has no use for the response, and wants another one */
};

/* All zero: none has begun. */
struct attempt {
    struct origin_peers
        *peers;            /* of which the choice is one; NULL: it is a member of the row, or
                              there is none. Set before attempt_begin(), where they are asked */
    struct peer_code code; /* of the request at a peer */
    struct origin_choice choice;
    struct origin_choice next; /* ATTEMPT_PASSED_OVER: of the attempt that follows */
    enum attempt_stage stage;
    unsigned timeouts; /* of members that have not responded in time */
    bool counted;      /* as one in flight of its member */
};

/* The row of the members that are asked now; NULL: there is none. */
static inline struct origin_route *
attempt_route(const struct attempt *attempt, const struct request *request)
{
    return attempt->peers ? attempt->peers->route : request->route;
}

/* The member that is asked now, of a row. */
static inline const struct origin_member *
attempt_member(const struct attempt *attempt, const struct request *request)
{
    return &attempt_route(attempt, request)->members[attempt->choice.member];
}

/* Chooses the first member. False: all of them are down. */
bool attempt_begin(struct attempt *attempt, const struct request *request, int64_t now_us);

/* The response has come. False: it is passed over. */
bool attempt_counts(struct attempt *attempt, const struct request *request,
                    const struct fetch_response *response, int64_t now_us);

/* How an attempt has ended. */
struct attempt_end {
    enum fetch_error error;
    const char *sentence;
    bool had_turn; /* it has not waited all the time */
    bool supplied; /* something of the request's body was taken */
    bool continues; /* the consumer has a response of a peer, which another one may continue */
};

/* The attempt has ended. True: another one begins, with the member that is chosen. */
bool attempt_goes_on(struct attempt *attempt, const struct request *request,
                     const struct attempt_end *end, int64_t now_us);

/* The URL of the request at the member, in *text if it is another one. A URL that is too long is
 * empty. */
struct attempt_text {
    char url[FETCH_NORMAL_SIZE];
    char client[FETCH_NORMAL_SIZE];
};
struct span attempt_url(const struct attempt *attempt, const struct request *request,
                        struct attempt_text *text);

/* The Host that the member is sent, perhaps in *text; empty: that of the URL. */
struct span attempt_host(const struct request *request, struct attempt_text *text);

/* The value of PEER_CLIENT_FIELD for the request at a peer; empty without a client. */
struct span attempt_name_client(const struct attempt *attempt, const struct request *request,
                                char name[PEER_NAME_SIZE]);

/* Writes the value of PEER_FIELD for the request at a peer. False without memory. */
bool attempt_write_proof(struct attempt *attempt, const struct request *request, struct buf *value);

#endif
