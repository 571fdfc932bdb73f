/*
 * Which rules match: an index by hosts and paths, and the conditions of those that it finds.
 * Private to rules/.
 */
#ifndef SUNPROXY_RULES_MATCHING_H
#define SUNPROXY_RULES_MATCHING_H

#include "rules/affix.h"
#include "rules/rule.h"
#include "rules/rules.h"

#define RULES_WORDS (RULES_MAX / 64u)

/* A bit for each rule. Only the words that the rules need are set. */
struct rules_set {
    uint64_t words[RULES_WORDS];
};

/* What a request has and some rules need: the bits of its class. */
enum { RULES_WITH_COOKIE = 1, RULES_WITH_QUERY = 2, RULES_CLASSES = 4 };

/* What the index knows of all rules. */
enum rules_group {
    RULES_ANY_HOST, /* the tables cannot leave these out by the host, */
    RULES_ANY_PATH, /* or by the path */
    RULES_ON_RESPONSES, /* they have actions on those */
    RULES_ALL,
    RULES_ON_REQUESTS, /* they have an effect on requests of class 0; then those of the others */
    RULES_GROUPS = RULES_ON_REQUESTS + RULES_CLASSES
};

/* Which of the literals find rules of a group: most requests have none, and are done with that. */
struct rules_reach {
    bool all; /* a rule is found without one */
    bool host;
    bool prefix;
    bool suffix;
};

struct rules {
    bool act_on_requests;
    bool act_on_responses;
    bool ask_for_users; /* there is the action authenticate */
    struct rules_reach reach[RULES_CLASSES]; /* of requests of each class */
    struct rule *rules;
    size_t count;
    size_t capacity;
    struct affix_table hosts;    /* literals of hosts, for the rules that have some */
    struct affix_table prefixes; /* and of paths */
    struct affix_table suffixes;
    uint64_t groups[RULES_WORDS][RULES_GROUPS]; /* a bit for each rule; by words for one line of
                                                   the processor's cache */
};

/* A URL taken apart. */
struct rules_url {
    struct span scheme;
    struct span host; /* without the port; of an IPv4-mapped address that of IPv4 */
    struct span port; /* digits, if one is stated */
    struct span authority;
    struct span path;
    struct span plain; /* the path for conditions: rules_url_split() */
    struct span query; /* without the "?"; NULL pointer: none */
};

/*
 * Conditions are about a path as origins may understand it: with unreserved characters decoded,
 * without dot segments (RFC 3986 section 6.2.2) and with one slash where there are several. If the
 * path is another one than that, `plain` is in memory of this thread until the next call.
 */
void rules_url_split(struct span url, struct rules_url *parts);

/*
 * A parameter, or its name, as an origin understands it: with unreserved characters decoded. If
 * that is another text, it is in memory of this thread until the next call.
 */
struct span rules_plain_parameter(struct span parameter);

/* The host in an IPv4-mapped IPv6 address is the IPv4 address; another host is itself. */
struct span rules_plain_host(struct span host);

/* Puts the last rule into the index. False without memory. */
bool rules_index(struct rules *rules);
void rules_index_finish(struct rules *rules);

/* Sets `found` to the rules whose conditions on requests hold; true if there is one. */
bool rules_match_request(const struct rules *rules, const struct rules_request *request,
                         const struct rules_url *url, struct rules_set *found);

/* The same for the conditions on responses, and those on requests that rules beside them have. */
bool rules_match_response(const struct rules *rules, const struct rules_response *response,
                          struct rules_set *found);

/* The rules that concern any request for the URL with the method, whatever else it has and the
 * response is. */
bool rules_match_url(const struct rules *rules, struct span url, enum http_method method,
                     struct rules_set *found);

/* Does the rule spell URLs of some of the requests for a URL with GET? */
bool rule_switches_url(const struct rule *rule);

/* May there be a URL that both rules are about? */
bool rules_may_meet(const struct rule *a, const struct rule *b);

/* Takes a rule out of the set, or puts it in. */
void rules_leave_out(const struct rules *rules, struct rules_set *set, const struct rule *rule);
void rules_put_in(const struct rules *rules, struct rules_set *set, const struct rule *rule);

/* Do the conditions on parameters hold for the query? */
bool rule_holds_query(const struct rule *rule, struct span query);

/* How far a walk through a set is; all zero: at its begin. */
struct rules_cursor {
    size_t words;  /* that have been read */
    uint64_t rest; /* of the last one, the rules that are to come */
};

/*
 * Is the field a part of the key of responses for the URL, by a rule for requests with GET?
 */
bool rules_have_key(const struct rules *rules, const struct rules_url *url, struct span name);

/* The next rule of the set; NULL: there is none. */
struct rule *rules_next(const struct rules *rules, const struct rules_set *set,
                        struct rules_cursor *cursor);

/*
 * Does a name stay, unless rules of the set have it, or a pattern for it, at the key `remove`, or
 * others but not it at one of the keys `keep`?
 */
bool rules_name_stays(const struct rules *rules, const struct rules_set *set, enum rule_key remove,
                      const enum rule_key *keep, size_t keep_count, struct span name);

/* The next "NAME=VALUE" of a query, or of the value of a Cookie; false at the end. */
bool rules_next_parameter(struct span *query, struct span *parameter, struct span *name);
bool rules_next_cookie(struct span *cookies, struct span *cookie, struct span *name);

#endif
