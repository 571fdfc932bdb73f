#include "rules/matching.h"

#include <time.h>

#include "base/uninitialized.h"
#include "http/field.h"
#include "http/request_head.h"
#include "rules/glob.h"

#define LITERAL_LEAST 2u /* bytes of a literal that leaves out rules: all paths begin with "/" */

/* ---- the index ------------------------------------------------------------------------------- */

static void
add(struct rules *rules, enum rules_group group, size_t rule)
{
    rules->groups[rule / 64][group] |= UINT64_C(1) << (rule % 64);
}

/* A rule all of whose hosts have a literal is found by them. */
static bool
index_hosts(struct rules *rules, size_t number)
{
    struct rule_values hosts = rule_values(&rules->rules[number], RULE_HOST);

    if (!hosts.count)
        add(rules, RULES_ANY_HOST, number);
    for (size_t i = 0; i < hosts.count; i++)
        if (!affix_add(&rules->hosts, hosts.of[i].name, (uint32_t)number))
            return false;
    return true;
}

static bool
index_path(struct rules *rules, size_t number, struct span path)
{
    struct span prefix = glob_prefix(path), suffix = glob_suffix(path);

    if (prefix.len >= LITERAL_LEAST || prefix.len == path.len)
        return affix_add(&rules->prefixes, prefix, (uint32_t)number);
    if (suffix.len >= LITERAL_LEAST)
        return affix_add(&rules->suffixes, suffix, (uint32_t)number);
    add(rules, RULES_ANY_PATH, number);
    return true;
}

/* Puts a rule for requests into the kinds of those that have what it needs. */
static void
index_kinds(struct rules *rules, size_t number)
{
    const struct rule *rule = &rules->rules[number];
    const bool on_cookies =
        rule_has_any(rule, RULE_REMOVE_COOKIE, RULE_KEEP_COOKIE) || rule_has(rule, RULE_KEY_COOKIE);
    unsigned needs = 0;

    if (rule_has(rule, RULE_COOKIE) ||
        (on_cookies && !rule_has_any(rule, RULE_PASS, RULE_SORT_PARAMETERS)))
        needs |= RULES_WITH_COOKIE;
    if (rule_has(rule, RULE_PARAMETER) ||
        (!on_cookies && !rule_has_any(rule, RULE_PASS, RULE_REMOVE_FIELD)))
        needs |= RULES_WITH_QUERY;
    for (unsigned kind = 0; kind < RULES_KINDS; kind++)
        if ((kind & needs) == needs)
            add(rules, RULES_ON_REQUESTS + kind, number);
}

bool
rules_index(struct rules *rules)
{
    size_t number = rules->count - 1;
    const struct rule *rule = &rules->rules[number];
    struct rule_values paths = rule_values(rule, RULE_PATH);

    add(rules, RULES_ALL, number);
    if (rule_has_any(rule, RULE_PASS, RULE_KEEP_COOKIE) || rule_has(rule, RULE_KEY_COOKIE)) {
        index_kinds(rules, number);
        rules->act_on_requests = true;
    }
    rules->ask_for_users = rules->ask_for_users || rule_has(rule, RULE_AUTHENTICATE);
    if (rule_has_any(rule, RULE_KEY_FIELD, RULE_KEYS - 1)) {
        add(rules, RULES_ON_RESPONSES, number);
        rules->act_on_responses = true;
    }
    if (!paths.count)
        add(rules, RULES_ANY_PATH, number);
    for (size_t i = 0; i < paths.count; i++)
        if (!index_path(rules, number, paths.of[i].name))
            return false;
    return index_hosts(rules, number);
}

static void
index_reach(struct rules *rules, unsigned kind)
{
    struct rules_reach *reach = &rules->reach[kind];
    struct rules_set prefixes = {{0}}, suffixes = {{0}};

    affix_mark_users(&rules->prefixes, prefixes.words);
    affix_mark_users(&rules->suffixes, suffixes.words);
    for (size_t i = 0; i < (rules->count + 63) / 64; i++) {
        const uint64_t *groups = rules->groups[i], of = groups[RULES_ON_REQUESTS + kind],
                       any_path = of & groups[RULES_ANY_PATH];

        reach->all = reach->all || any_path & groups[RULES_ANY_HOST];
        reach->host = reach->host || any_path & ~groups[RULES_ANY_HOST];
        reach->prefix = reach->prefix || of & ~any_path & prefixes.words[i];
        reach->suffix = reach->suffix || of & ~any_path & suffixes.words[i];
    }
}

void
rules_index_finish(struct rules *rules)
{
    affix_sort(&rules->hosts);
    affix_sort(&rules->prefixes);
    affix_sort(&rules->suffixes);
    for (unsigned kind = 0; kind < RULES_KINDS; kind++)
        index_reach(rules, kind);
}

/* The rules of the group whose literals the host and the path have. True if there is one. */
static bool
find(const struct rules *rules, const struct rules_url *url, enum rules_group of,
     struct rules_set *found)
{
    size_t words = (rules->count + 63) / 64;
    struct rules_set hosts UNINITIALIZED;
    bool any = false;

    for (size_t i = 0; i < words; i++) {
        hosts.words[i] = rules->groups[i][RULES_ANY_HOST];
        found->words[i] = rules->groups[i][RULES_ANY_PATH];
    }
    affix_find(&rules->hosts, url->host, hosts.words);
    affix_find(&rules->prefixes, url->plain, found->words);
    affix_find(&rules->suffixes, url->plain, found->words);
    for (size_t i = 0; i < words; i++) {
        found->words[i] &= hosts.words[i] & rules->groups[i][of];
        any = any || found->words[i];
    }
    return any;
}

struct rule *
rules_next(const struct rules *rules, const struct rules_set *set, struct rules_cursor *cursor)
{
    size_t words = (rules->count + 63) / 64, bit;

    while (!cursor->rest) {
        if (cursor->words == words)
            return NULL;
        cursor->rest = set->words[cursor->words++];
    }
    bit = (size_t)__builtin_ctzll(cursor->rest);
    cursor->rest &= cursor->rest - 1;
    return &rules->rules[(cursor->words - 1) * 64 + bit];
}

void
rules_leave_out(const struct rules *rules, struct rules_set *set, const struct rule *rule)
{
    const size_t number = (size_t)(rule - rules->rules);

    set->words[number / 64] &= ~(UINT64_C(1) << (number % 64));
}

void
rules_put_in(const struct rules *rules, struct rules_set *set, const struct rule *rule)
{
    const size_t number = (size_t)(rule - rules->rules);

    set->words[number / 64] |= UINT64_C(1) << (number % 64);
}

static bool
is_among(struct rule_values patterns, struct span name)
{
    for (size_t i = 0; i < patterns.count; i++)
        if (glob_matches(patterns.of[i].name, name))
            return true;
    return false;
}

bool
rules_name_stays(const struct rules *rules, const struct rules_set *set, enum rule_key remove,
                 const enum rule_key *keep, size_t keep_count, struct span name)
{
    struct rules_cursor cursor = {0};
    bool kept = false, others = false;
    const struct rule *rule;

    while ((rule = rules_next(rules, set, &cursor))) {
        if (is_among(rule_values(rule, remove), name))
            return false;
        for (size_t i = 0; i < keep_count; i++) {
            others = others || rule_has(rule, keep[i]);
            kept = kept || is_among(rule_values(rule, keep[i]), name);
        }
    }
    return kept || !others;
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* A name, or the end of one behind a dot. */
static bool
host_holds(struct span value, struct span host)
{
    if (value.ptr[0] != '.')
        return http_same_name(value, host);
    return host.len > value.len && http_same_name(value, span_from(host, host.len - value.len));
}

static bool
port_holds(const struct rule *rule, const struct rules_url *url)
{
    struct rule_values ports = rule_values(rule, RULE_PORT);
    struct span digits = url->port;
    int64_t port = span_equal(url->scheme, span_str("https")) ? 443 : 80;

    if (digits.len)
        port = 0;
    for (size_t i = 0; i < digits.len; i++)
        port = port * 10 + (digits.ptr[i] - '0');
    for (size_t i = 0; i < ports.count; i++)
        if (ports.of[i].number <= port && port <= ports.of[i].most)
            return true;
    return ports.count == 0;
}

/* By host, port, path and method. */
static bool
url_holds(const struct rule *rule, const struct rules_url *url, enum http_method method)
{
    struct rule_values hosts = rule_values(rule, RULE_HOST), paths = rule_values(rule, RULE_PATH),
                       methods = rule_values(rule, RULE_METHOD);
    size_t i;

    for (i = 0; i < hosts.count && !host_holds(hosts.of[i].name, url->host); i++)
        ;
    if (hosts.count && i == hosts.count)
        return false;
    if (rule_has(rule, RULE_HOST_LIST) && !name_list_has_host(&rule->hosts, url->host))
        return false;
    if (rule_has(rule, RULE_PORT) && !port_holds(rule, url))
        return false;
    for (i = 0; i < paths.count && !glob_matches(paths.of[i].name, url->plain); i++)
        ;
    if (paths.count && i == paths.count)
        return false;
    for (i = 0; i < methods.count && methods.of[i].number != (int64_t)method; i++)
        ;
    return !methods.count || i < methods.count;
}

/* Does a value with this name or pattern stand for that of "NAME=VALUE"? */
static bool
pair_holds(const struct rule_value *value, struct span pair, struct span name)
{
    struct span text = name.len < pair.len ? span_from(pair, name.len + 1) : span_of("", 0);

    return glob_matches(value->name, name) &&
           (!value->pattern.ptr || glob_matches(value->pattern, text));
}

static bool
parameter_holds(const struct rule_value *value, struct span query)
{
    struct span parameter, name;

    while (rules_next_parameter(&query, &parameter, &name)) {
        parameter = rules_plain_parameter(parameter);
        if (pair_holds(value, parameter, span_until(parameter, '=')))
            return true;
    }
    return false;
}

static bool
cookie_holds(const struct rule_value *value, struct span lines)
{
    static const struct span field = {"Cookie", sizeof("Cookie") - 1};
    struct span line, cookies, cookie, name;

    while (http_next_line(&lines, &line))
        if (http_line_is(line, field, &cookies))
            while (rules_next_cookie(&cookies, &cookie, &name))
                if (pair_holds(value, cookie, name))
                    return true;
    return false;
}

static bool
field_holds(const struct rule_value *value, struct span lines)
{
    struct span line, text;

    while (http_next_line(&lines, &line))
        if (http_line_is(line, value->name, &text) &&
            (!value->pattern.ptr || glob_matches_any_case(value->pattern, text)))
            return true;
    return false;
}

static bool
any_holds(const struct rule *rule, enum rule_key key, struct span in,
          bool (*holds)(const struct rule_value *value, struct span in))
{
    struct rule_values values = rule_values(rule, key);

    for (size_t i = 0; i < values.count; i++)
        if (holds(&values.of[i], in))
            return true;
    return values.count == 0;
}

bool
rule_holds_query(const struct rule *rule, struct span query)
{
    return any_holds(rule, RULE_PARAMETER, query, parameter_holds);
}

/* The local time of now. */
static bool
time_holds(const struct rule *rule)
{
    struct rule_values times = rule_values(rule, RULE_TIME);
    struct tm tm;
    int64_t minute;
    time_t now;

    if (!times.count)
        return true;
    now = time(NULL);
    localtime_r(&now, &tm);
    minute = tm.tm_hour * 60 + tm.tm_min;
    for (size_t i = 0; i < times.count; i++) {
        int64_t from = times.of[i].most / 2048, to = times.of[i].most % 2048;
        bool within = from <= to ? from <= minute && minute < to : from <= minute || minute < to;
        /* What began yesterday. */
        int day = from > to && minute < to ? (tm.tm_wday + 6) % 7 : tm.tm_wday;

        if (within && times.of[i].number >> day & 1)
            return true;
    }
    return false;
}

static bool
network_holds(const struct rule *rule, const struct sockaddr *client)
{
    return !rule_has(rule, RULE_NETWORK) ||
           (client && networks_have_address(&rule->networks, client));
}

static bool
user_holds(const struct rule *rule, struct span user)
{
    struct rule_values users = rule_values(rule, RULE_USER);
    size_t i;

    if (!user.ptr)
        return !rule_has_any(rule, RULE_USER, RULE_USER_LIST);
    for (i = 0; i < users.count && !glob_matches(users.of[i].name, user); i++)
        ;
    return (!users.count || i < users.count) &&
           (!rule_has(rule, RULE_USER_LIST) || name_list_has(&rule->users, user));
}

static bool
request_holds(const struct rule *rule, const void *message, const struct rules_url *url)
{
    const struct rules_request *request = message;
    const struct span lines = request->lines;
    const bool has_cookie = request->has & HTTP_HAS_COOKIE;

    return url_holds(rule, url, request->method) && network_holds(rule, request->client) &&
           user_holds(rule, request->user) && time_holds(rule) &&
           rule_holds_query(rule, url->query) && any_holds(rule, RULE_FIELD, lines, field_holds) &&
           any_holds(rule, RULE_COOKIE, has_cookie ? lines : span_of(NULL, 0), cookie_holds);
}

static bool
status_holds(const struct rule *rule, unsigned status)
{
    struct rule_values values = rule_values(rule, RULE_STATUS);

    for (size_t i = 0; i < values.count; i++)
        if (values.of[i].number <= (int64_t)status && (int64_t)status <= values.of[i].most)
            return true;
    return values.count == 0;
}

static bool
type_holds(const struct rule_value *value, struct span type)
{
    return glob_matches_any_case(value->name, http_trim(span_until(type, ';')));
}

static bool
response_holds(const struct rule *rule, const void *message, const struct rules_url *url)
{
    const struct rules_response *response = message;

    return url_holds(rule, url, response->method) && status_holds(rule, response->status) &&
           (!rule_has(rule, RULE_TYPE) ||
            any_holds(rule, RULE_TYPE, http_first_value(response->lines, "Content-Type"),
                      type_holds)) &&
           any_holds(rule, RULE_RESPONSE_FIELD, response->lines, field_holds);
}

/* Takes out of the set the rules whose conditions do not hold. True if one is left. */
static bool
narrow(const struct rules *rules, struct rules_set *set, const struct rules_url *url,
       bool (*holds)(const struct rule *rule, const void *message, const struct rules_url *url),
       const void *message)
{
    bool any = false;

    for (size_t i = 0; i < (rules->count + 63) / 64; i++) {
        for (uint64_t rest = set->words[i]; rest; rest &= rest - 1) {
            size_t bit = (size_t)__builtin_ctzll(rest);

            if (holds(&rules->rules[i * 64 + bit], message, url))
                any = true;
            else
                set->words[i] &= ~(UINT64_C(1) << bit);
        }
    }
    return any;
}

bool
rules_match_request(const struct rules *rules, const struct rules_request *request,
                    const struct rules_url *url, struct rules_set *found)
{
    return find(rules, url, RULES_ON_REQUESTS + rules_kind(request, url), found) &&
           narrow(rules, found, url, request_holds, request);
}

bool
rules_match_response(const struct rules *rules, const struct rules_response *response,
                     struct rules_set *found)
{
    struct rules_url url;

    if (!rules->act_on_responses)
        return false;
    rules_url_split(response->url, &url);
    return find(rules, &url, RULES_ON_RESPONSES, found) &&
           narrow(rules, found, &url, response_holds, response);
}

void
rules_visit(const struct rules *rules, const struct rules_request *request,
            void (*visit)(void *context, size_t rule), void *context)
{
    struct rules_url url;

    rules_url_split(request->url, &url);
    for (size_t i = 0; i < rules->count; i++)
        if (request_holds(&rules->rules[i], request, &url))
            visit(context, i);
}

static bool
url_alone_holds(const struct rule *rule, const void *message, const struct rules_url *url)
{
    const enum http_method *method = message;

    return url_holds(rule, url, *method);
}

bool
rules_match_url(const struct rules *rules, struct span url, enum http_method method,
                struct rules_set *found)
{
    struct rules_url parts;

    rules_url_split(url, &parts);
    return find(rules, &parts, RULES_ALL, found) &&
           narrow(rules, found, &parts, url_alone_holds, &method);
}

/* ---- rules about one URL --------------------------------------------------------------------- */

bool
rule_switches_url(const struct rule *rule)
{
    struct rule_values methods = rule_values(rule, RULE_METHOD);
    size_t i;

    for (i = 0; i < methods.count && methods.of[i].number != HTTP_GET; i++)
        ;
    return rule->edits & RULE_EDITS_URL && rule_has_any(rule, RULE_FIELD, RULE_USER_LIST) &&
           (!methods.count || i < methods.count);
}

static bool
hosts_meet(struct span a, struct span b)
{
    return http_same_name(a, b) || host_holds(a, b) || host_holds(b, a);
}

static bool
paths_meet(struct span a, struct span b)
{
    struct span begin_a = glob_prefix(a), begin_b = glob_prefix(b);

    if (begin_a.len == a.len || begin_b.len == b.len)
        return begin_a.len == a.len ? glob_matches(b, a) : glob_matches(a, b);
    return span_starts_with(begin_a, begin_b) || span_starts_with(begin_b, begin_a);
}

static bool
values_meet(struct rule_values a, struct rule_values b, bool (*meet)(struct span a, struct span b))
{
    for (size_t i = 0; i < a.count; i++)
        for (size_t k = 0; k < b.count; k++)
            if (meet(a.of[i].name, b.of[k].name))
                return true;
    return a.count == 0 || b.count == 0;
}

bool
rules_may_meet(const struct rule *a, const struct rule *b)
{
    return values_meet(rule_values(a, RULE_HOST), rule_values(b, RULE_HOST), hosts_meet) &&
           values_meet(rule_values(a, RULE_PATH), rule_values(b, RULE_PATH), paths_meet);
}

bool
rules_have_key(const struct rules *rules, const struct rules_url *url, struct span name)
{
    for (size_t i = 0; i < rules->count; i++) {
        const struct rule *rule = &rules->rules[i];
        struct rule_values names = rule_values(rule, RULE_KEY_FIELD);
        bool has = rule_has(rule, RULE_KEY_COOKIE) && http_name_is(name, "Cookie");

        for (size_t k = 0; k < names.count; k++)
            has = has || http_same_name(names.of[k].name, name);
        if (has && url_holds(rule, url, HTTP_GET))
            return true;
    }
    return false;
}
