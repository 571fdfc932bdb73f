/*
 * A rule as it is kept: the values of its keys. Private to rules/.
 */
#ifndef SUNPROXY_RULES_RULE_H
#define SUNPROXY_RULES_RULE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/networks.h"
#include "base/span.h"
#include "rules/name_list.h"

enum rule_key {
    /* conditions on the request, which its URL and its method decide, */
    RULE_HOST,
    RULE_HOST_LIST,
    RULE_PORT,
    RULE_PATH,
    RULE_METHOD,
    /* and on what else it has */
    RULE_PARAMETER,
    RULE_FIELD,
    RULE_COOKIE,
    /* and on the client, the time and the user */
    RULE_NETWORK,
    RULE_TIME,
    RULE_USER,
    RULE_USER_LIST,
    /* conditions on the response */
    RULE_STATUS,
    RULE_TYPE,
    RULE_RESPONSE_FIELD,
    /* actions on requests */
    RULE_PASS,
    RULE_DENY,
    RULE_REASON,
    RULE_REDIRECT,
    RULE_RATE,
    RULE_AUTHENTICATE,
    RULE_SET_FIELD,
    RULE_REMOVE_FIELD,
    RULE_REMOVE_PARAMETER,
    RULE_KEEP_PARAMETER,
    RULE_SORT_PARAMETERS,
    RULE_REMOVE_COOKIE,
    RULE_KEEP_COOKIE,
    /* actions on responses, */
    RULE_KEY_FIELD,
    RULE_KEY_COOKIE, /* of both */
    RULE_LIFETIME,
    RULE_DEFAULT_LIFETIME,
    RULE_GRACE,
    RULE_OVERRIDE,
    RULE_SET_RESPONSE_FIELD,
    RULE_REMOVE_RESPONSE_FIELD,
    RULE_REMOVE_RESPONSE_COOKIE,
    /* and on what clients get in their place */
    RULE_ERROR_PAGE,
    RULE_KEYS,
};

/* What a key has as a value; the spans point into the rule's text. */
struct rule_value {
    struct span name;    /* or the whole value */
    struct span pattern; /* or the value of a field; NULL pointer: none is written */
    int64_t number;      /* a time in microseconds, a status, a method, a flag, a rate */
    int64_t most;        /* of a range of numbers; of a rate, what may come at once */
};

struct rule_values {
    const struct rule_value *of;
    size_t count;
};

/* What a rule does with requests beside a verdict. */
enum rule_edits {
    RULE_EDITS_FIELDS = 1,
    RULE_EDITS_COOKIES = 2,
    RULE_EDITS_URL = 4,
};

struct rule {
    char *text;                /* owned, with what the spans point to */
    struct rule_value *values; /* owned, by their keys */
    uint16_t
        first[RULE_KEYS + 1]; /* of the values of a key; those of the last one end at the end */
    struct buf page;          /* the content of the file of RULE_ERROR_PAGE */
    struct name_list hosts;   /* of that of RULE_HOST_LIST */
    struct name_list users;   /* of that of RULE_USER_LIST */
    struct networks networks; /* of RULE_NETWORK */
    unsigned edits;           /* of enum rule_edits */
    _Atomic int64_t even_ns;  /* of RULE_RATE: rule_rate.h */
};

static inline struct rule_values
rule_values(const struct rule *rule, enum rule_key key)
{
    return (struct rule_values){
        .of = rule->values + rule->first[key],
        .count = (size_t)(rule->first[key + 1] - rule->first[key]),
    };
}

static inline bool
rule_has(const struct rule *rule, enum rule_key key)
{
    return rule->first[key + 1] != rule->first[key];
}

/* Has it one of these keys, from the first to the last? */
static inline bool
rule_has_any(const struct rule *rule, enum rule_key first, enum rule_key last)
{
    return rule->first[last + 1] != rule->first[first];
}

/* Does it refuse requests? */
static inline bool
rule_denies(const struct rule *rule)
{
    struct rule_values deny = rule_values(rule, RULE_DENY);

    return deny.count && deny.of[0].number;
}

/*
 * Reads a rule, as rules_add() has it. False with a sentence in `why` for each error; nothing is to
 * be freed then.
 */
bool rule_read(struct rule *rule, const char *text, struct buf *why);

void rule_free(struct rule *rule);

#endif
