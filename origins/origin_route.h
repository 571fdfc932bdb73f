/*
 * Where the requests of a row are fetched from: the members of an origin, each a URL that takes the
 * place of host and prefix in the client's URL. The route lies below the cache: responses have the
 * client's URL, whichever member has sent them.
 *
 * A request goes to a member that is in use: the first one, or as the row's balance has it; to a
 * backup only where no other can serve it. A member that fails is left for a while, which doubles
 * as long as it fails; then one request tries it, and the others follow when that has had a
 * response, few at first. The last member in use is left only after several failures one behind the
 * other, so that one URL that fails does not take the row down.
 *
 * A member may have a limit of what is in flight there. Requests go to others while it is reached,
 * or wait.
 *
 * A member is down for a row while it is left, has failed its probes, or is drained. While all are,
 * requests get no member, but for one in ORIGIN_ROUTE_TRIAL_US that tries the one whose time ends
 * first. nginx and HAProxy respond at once, too, when they have no server. The only member of a row
 * is never left: without another one that would turn one failed request into an outage, and a
 * member that responds with 503 says more than the proxy could. nginx does the same. So it is down
 * only by its probes, or drained.
 *
 * The state of a member is that of its server (origin_server.h), which other rows may share.
 *
 * Safe on any thread; what the caller sets is constant from then on.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_ROUTE_H
#define SUNPROXY_ORIGINS_ORIGIN_ROUTE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "origins/origin_budget.h"
#include "origins/origin_server.h"

#define ORIGIN_ROUTE_MEMBERS 16u

#define ORIGIN_ROUTE_URL 8208u /* bytes of any URL that is fetched, and more */

/* How long a member is left after its first failure, and at most. */
#define ORIGIN_ROUTE_LEFT_US ((int64_t)10 * 1000000)
#define ORIGIN_ROUTE_LONGEST_US ((int64_t)300 * 1000000)

/* How many failures one behind the other the last member in use is left after. */
#define ORIGIN_ROUTE_LAST_FAILURES 5u

/* How often a request tries a member where all are left. */
#define ORIGIN_ROUTE_TRIAL_US ((int64_t)1000000)

/* How many slow responses one behind the other a member is left after. */
#define ORIGIN_ROUTE_SLOW 5u

#define ORIGIN_ROUTE_QUEUE_US ((int64_t)1000000)

/* For how long a member that is used again gets fewer requests than its weight says. */
#define ORIGIN_ROUTE_WARM_US ((int64_t)20 * 1000000)

/* Which Host a member is sent. */
enum origin_host {
    ORIGIN_HOST_CLIENT, /* that of the client's URL */
    ORIGIN_HOST_MEMBER, /* that of the member's URL */
    ORIGIN_HOST_NAMED,  /* route->name */
};

/* A member is left, or is used again. Spans and text are valid during the call. */
struct origin_change {
    struct span url;
    int64_t left_us; /* for how long; 0: it is used again; ORIGIN_SERVER_DOWN: it is down */
    const char *reason;
};

/* Which member of those in use serves a request (origin_balance.h). */
enum origin_balance {
    ORIGIN_BALANCE_FIRST,
    ORIGIN_BALANCE_ROUND_ROBIN,
    ORIGIN_BALANCE_LEAST,
    ORIGIN_BALANCE_HASH,
};

struct origin_member {
    struct span url; /* as fetch_normal_url() spells it, without a slash at its end */
    unsigned weight; /* 0 counts as 1 */
    bool backup;     /* it is used where no member that is none can be */
    unsigned max;    /* what the row lets it have in flight; 0: any number */
    struct origin_server *server; /* a reference of the configuration */
    _Atomic int64_t account;       /* of its turns */
};

struct origin_route {
    struct span prefix; /* of the client's path, without a slash at its end */
    bool below;         /* the prefix was given with one: it must be followed by one */
    enum origin_host host;
    struct span name;
    enum origin_balance balance;
    bool at_once; /* a member that is used again has its whole share at once */
    struct origin_probes probes;
    struct origin_budget budget;
    int64_t slow_us;  /* a response that takes longer is slow; 0: none is */
    unsigned errors;  /* responses with status 5xx in succession that are a failure; 0: none are */
    int64_t queue_us; /* how long a request waits for a member that has a limit */
    _Atomic int64_t trial_due_us; /* while all members are left */
    void (*changed)(const struct origin_change *change); /* NULL: not wanted. [any thread] */
    unsigned count; /* of members: at least 1 */
    struct origin_member members[ORIGIN_ROUTE_MEMBERS];
};

/* What one request has tried. All zero: nothing. */
struct origin_choice {
    unsigned tried;  /* a bit for each member */
    unsigned member; /* the last one */
    bool trial;      /* that was left, and is tried by this request alone */
    bool refused;    /* another one would have been tried but for the budget */
    bool urgent;     /* it cannot wait: the next one has a place for it */
    bool unsent;     /* it has waited for the last one only: no budget is needed */
    uint64_t key;    /* hash of the request's URL, where the balance is by that */
};

/*
 * The key of a request for this URL. Before the first of the functions below.
 */
void origin_route_set_key(const struct origin_route *route, struct origin_choice *choice,
                          struct span url);

/*
 * Chooses the next member for a request. False: all that it has not tried are down, or the budget
 * of retries is used up (origin_budget.h). One that has as much in flight as it takes is chosen
 * where no other can be, to wait for it, and not for a request that is urgent.
 */
bool origin_route_next(struct origin_route *route, struct origin_choice *choice, int64_t now_us);

/* Is there a member that a request would be sent to now, if only to try it? */
bool origin_route_serves(const struct origin_route *route, int64_t now_us);

/* What keeps requests from the member now, for a person: "", "drained", "down" or "left for 7 s",
 * in `text`. */
const char *origin_route_state(const struct origin_route *route, unsigned member, int64_t now_us,
                               char *text, size_t size);

/* The first member that is in use, or the first of all; 0 without a route. */
unsigned origin_route_first(const struct origin_route *route);

/* In how many seconds a request that has got no member may find one: at least 1. */
unsigned origin_route_retry_after_s(const struct origin_route *route);

/* The member that was chosen has failed, for this reason. */
void origin_route_failed(struct origin_route *route, const struct origin_choice *choice,
                         int64_t now_us, const char *reason);

/* It serves: it is used again if it was left, and this was its trial. */
void origin_route_succeeded(struct origin_route *route, const struct origin_choice *choice,
                            int64_t now_us);

/*
 * It has sent a response of this status after this time. It has succeeded, unless this was one slow
 * response or one error too many, or a trial with such a response: then it is left, if another one
 * is in use.
 */
void origin_route_responded(struct origin_route *route, const struct origin_choice *choice,
                            unsigned status, int64_t took_us, int64_t now_us);

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

#endif
