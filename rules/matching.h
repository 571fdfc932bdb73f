/*
 * Which rules match: an index by hosts and paths, and the conditions of those that it finds.
 * Private to rules/.
 */
#ifndef SUNPROXY_RULES_MATCHING_H
#define SUNPROXY_RULES_MATCHING_H

#include "http/request_head.h"
#include "rules/affix.h"
#include "rules/url_split.h"
#include "rules/rule.h"
#include "rules/rules.h"

#define RULES_WORDS (RULES_MAX / 64u)

/* A bit for each rule. Only the words that the rules need are set. */
struct rules_set {
    uint64_t words[RULES_WORDS];
};

/* What a request has and some rules need: the bits of its kind. */
enum { RULES_WITH_COOKIE = 1, RULES_WITH_QUERY = 2, RULES_KINDS = 4 };

/* What the index knows of all rules. */
enum rules_group {
    RULES_ANY_HOST,     /* the tables cannot leave these out by the host, */
    RULES_ANY_PATH,     /* or by the path */
    RULES_ON_RESPONSES, /* they have actions on those */
    RULES_ALL,
    RULES_ON_REQUESTS, /* of kind 0, of which they change something; then of kinds 1 to 3 */
    RULES_GROUPS = RULES_ON_REQUESTS + RULES_KINDS
};

/* What finds the rules for requests of a kind. Most requests have no such literal: none applies. */
struct rules_reach {
    bool all;    /* a rule is found without a literal */
    bool host;   /* one is found by a literal of a host, */
    bool prefix; /* by one that paths begin with, */
    bool suffix; /* or end with */
};

struct rules {
    bool act_on_requests;
    bool act_on_responses;
    bool ask_for_users;                    /* there is the action authenticate */
    struct rules_reach reach[RULES_KINDS]; /* of requests of each kind */
    struct rule *rules;
    size_t count;
    size_t capacity;
    struct affix_table hosts;    /* literals of hosts, for the rules that have some */
    struct affix_table prefixes; /* and of paths */
    struct affix_table suffixes;
    uint64_t groups[RULES_WORDS][RULES_GROUPS]; /* a bit for each rule; by words for one line of
                                                   the processor's cache */
};

/* Puts the last rule into the index. False without memory. */
bool rules_index(struct rules *rules);
void rules_index_finish(struct rules *rules);

/* The kind of a request. */
static inline unsigned
rules_kind(const struct rules_request *request, const struct rules_url *url)
{
    return (request->has & HTTP_HAS_COOKIE ? RULES_WITH_COOKIE : 0u) |
           (url->query.ptr ? RULES_WITH_QUERY : 0u);
}

/* May rules_match_request() find a rule? False for most requests that are of no rule's concern. */
static inline bool
rules_may_match(const struct rules *rules, const struct rules_request *request,
                const struct rules_url *url)
{
    const struct rules_reach reach = rules->reach[rules_kind(request, url)];

    return reach.all || (reach.prefix && affix_may_find(&rules->prefixes, url->plain)) ||
           (reach.suffix && affix_may_find(&rules->suffixes, url->plain)) ||
           (reach.host && affix_may_find(&rules->hosts, url->host));
}

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

#endif
