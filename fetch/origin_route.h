/*
 * Where the requests of a row are fetched from: the members of an origin, each a URL that takes the
 * place of host and prefix in the client's URL. The route lies below the cache: responses have the
 * client's URL, whichever member has sent them.
 *
 * A request goes to the first member that is in use. One that fails is left for a while, which
 * doubles as long as it fails; then one request tries it, and the others follow when that has had a
 * response. Where all members are left, a request goes to the one whose time ends first.
 *
 * Safe on any thread; what the caller sets is constant from then on.
 */
#ifndef SUNPROXY_FETCH_ORIGIN_ROUTE_H
#define SUNPROXY_FETCH_ORIGIN_ROUTE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "fetch/fetch.h"

#define ORIGIN_ROUTE_MEMBERS 16u

/* How long a member is left after its first failure, and at most. */
#define ORIGIN_ROUTE_LEFT_US ((int64_t)10 * 1000000)
#define ORIGIN_ROUTE_LONGEST_US ((int64_t)300 * 1000000)

/* Which Host a member is sent. */
enum origin_host {
    ORIGIN_HOST_CLIENT, /* that of the client's URL */
    ORIGIN_HOST_MEMBER, /* that of the member's URL */
    ORIGIN_HOST_NAMED,  /* route->name */
};

/* A member is left, or is used again. Spans and text are valid during the call. */
struct origin_change {
    struct span url;
    int64_t left_us; /* for how long; 0: it is used again */
    const char *reason;
};

struct origin_member {
    struct span url;              /* as fetch_normal_url() spells it, without a slash at its end */
    _Atomic int64_t left_until_us; /* of the monotonic clock; 0: it is in use */
    _Atomic unsigned failures;    /* one behind the other, while it is left */
};

struct origin_route {
    struct span prefix; /* of the client's path, without a slash at its end */
    bool below;         /* the prefix was given with one: it must be followed by one */
    enum origin_host host;
    struct span name;
    void (*changed)(const struct origin_change *change); /* NULL: not wanted. [any thread] */
    unsigned count; /* of members: at least 1 */
    struct origin_member members[ORIGIN_ROUTE_MEMBERS];
};

/* What one request has tried. All zero: nothing. */
struct origin_choice {
    unsigned tried;  /* a bit for each member */
    unsigned member; /* the last one */
    bool trial;      /* that was left, and is tried by this request alone */
};

/* Chooses the next member for a request. False: it has tried all of them. */
bool origin_route_next(struct origin_route *route, struct origin_choice *choice, int64_t now_us);

/* The first member that is in use, or the first of all; 0 without a route. */
unsigned origin_route_first(const struct origin_route *route);

/* Has the request another member to try? */
bool origin_route_has_next(const struct origin_route *route, const struct origin_choice *choice);

/* The member that was chosen has failed, for this reason: it is left from now on, unless it was
 * left already, or is the only one. */
void origin_route_failed(struct origin_route *route, const struct origin_choice *choice,
                         int64_t now_us, const char *reason);

/* It has sent a response: it is used again if it was left. */
void origin_route_succeeded(struct origin_route *route, const struct origin_choice *choice);

/*
 * The request has ended before it could reach the member, and not by the member's fault: if it was
 * to try it, the next request does.
 */
void origin_route_give_back(struct origin_route *route, const struct origin_choice *choice,
                            int64_t now_us);

/* The URL of a client without what it has behind the authority, and that: a path with a query, or
 * empty. */
struct span origin_route_client(struct span url, struct span *path);

/*
 * Writes the URL of a member for a path of the client's, which has the prefix. Returns the number
 * of bytes; 0 if they are more than `size`.
 */
size_t origin_route_write_url(const struct origin_route *route, unsigned member, struct span path,
                              char *out, size_t size);

/* By how many bytes such a URL may be longer than the path at most. */
size_t origin_route_longest(const struct origin_route *route);

/* Host and port of a client's URL, as it states them. */
struct span origin_route_authority(struct span url);

/*
 * Does a reference name the URL of a member, or one below it? *rest is what follows it. Where
 * members are sent a Host that is named, they may take that for their own, with either scheme.
 */
bool origin_route_names_member(const struct origin_route *route, struct span reference,
                               struct span *rest);

/* Writes the client's path for what follows the URL of a member; at most that and the prefix and
 * one byte. Returns the end. */
char *origin_route_write_path(const struct origin_route *route, struct span rest, char *out);

/*
 * Appends the client's URL for a reference in a response of a member to a request for `client_url`.
 * False, with nothing appended, if it leads elsewhere.
 */
bool origin_route_resolve(const struct origin_route *route, unsigned member, struct span client_url,
                          struct span reference, struct buf *out);

/* ---- attempts -------------------------------------------------------------------------------- */

/*
 * The attempts of a fetch: the members of a row that a request is sent to, one after the other. A
 * request that was not sent goes on to the next member, whatever its method. One that may be
 * repeated, without a body, does so as well after 502, 503 or 504, after a connection that broke
 * before the head, and once after a timeout. Each member is tried once at most. A request without a
 * row has one attempt.
 *
 * On the thread of the fetch; pure but for the state of the members.
 */

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
    struct origin_choice choice;
    enum attempt_stage stage;
    unsigned timeouts; /* of members that have not responded in time */
};

/* Chooses the first member. */
void attempt_begin(struct attempt *attempt, const struct request *request, int64_t now_us);

/* The response has this status. False: it is passed over. */
bool attempt_counts(struct attempt *attempt, const struct request *request, unsigned status,
                    int64_t now_us);

/* How an attempt has ended. */
struct attempt_end {
    enum fetch_error error;
    const char *sentence;
    bool had_turn; /* it has not waited all the time */
    bool supplied; /* something of the request's body was taken */
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

#endif
