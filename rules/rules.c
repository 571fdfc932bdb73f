#include "rules/rules.h"

#include <stdlib.h>

#include "base/array.h"
#include "http/field.h"
#include "rules/matching.h"

struct rules *
rules_create(void)
{
    struct rules *rules = calloc(1, sizeof(*rules));

    if (rules)
        rules->hosts.at_end = rules->suffixes.at_end = true;
    return rules;
}

void
rules_free(struct rules *rules)
{
    if (!rules)
        return;
    for (size_t i = 0; i < rules->count; i++)
        rule_free(&rules->rules[i]);
    free(rules->rules);
    affix_free(&rules->hosts);
    affix_free(&rules->prefixes);
    affix_free(&rules->suffixes);
    free(rules);
}

bool
rules_add(struct rules *rules, const char *text, struct buf *why)
{
    if (rules->count == RULES_MAX) {
        buf_printf(why, "there are more than %u rules", RULES_MAX);
        return false;
    }
    if (!array_extend(&rules->rules, sizeof(*rules->rules), rules->count, &rules->capacity)) {
        buf_append_str(why, "out of memory");
        return false;
    }
    if (!rule_read(&rules->rules[rules->count], text, why))
        return false;
    rules->count++;
    if (rules_index(rules))
        return true;
    buf_append_str(why, "out of memory");
    return false;
}

/* ---- rules that contradict others ------------------------------------------------------------ */

/* Is the field a part of the key by any of the rules? */
static bool
is_of_key(const struct rules *rules, struct span name)
{
    for (size_t i = 0; i < rules->count; i++) {
        struct rule_values fields = rule_values(&rules->rules[i], RULE_KEY_FIELD);

        for (size_t k = 0; k < fields.count; k++)
            if (http_same_name(fields.of[k].name, name))
                return true;
        if (rule_has(&rules->rules[i], RULE_KEY_COOKIE) && http_name_is(name, "Cookie"))
            return true;
    }
    return false;
}

static bool
passes(const struct rule *rule)
{
    struct rule_values pass = rule_values(rule, RULE_PASS);

    return (pass.count && pass.of[0].number) || rule_denies(rule) || rule_has(rule, RULE_REDIRECT);
}

/* An edit of a field of requests that the key does not have; NULL: there is none. */
static const struct rule_value *
find_unkeyed(const struct rules *rules, const struct rule *rule)
{
    static const enum rule_key edits[] = {RULE_SET_FIELD, RULE_REMOVE_FIELD};

    for (size_t e = 0; e < 2; e++) {
        struct rule_values values = rule_values(rule, edits[e]);

        for (size_t i = 0; i < values.count; i++)
            if (!is_of_key(rules, values.of[i].name))
                return &values.of[i];
    }
    return NULL;
}

/* Has a rule with this condition a field that a rule changes, so that a stored response differs? */
static bool
is_edited(const struct rules *rules, struct span name)
{
    static const enum rule_key edits[] = {RULE_SET_RESPONSE_FIELD, RULE_REMOVE_RESPONSE_FIELD};

    for (size_t i = 0; i < rules->count; i++)
        for (size_t e = 0; e < 2; e++) {
            struct rule_values values = rule_values(&rules->rules[i], edits[e]);

            for (size_t k = 0; k < values.count; k++)
                if (http_same_name(values.of[k].name, name))
                    return true;
        }
    return false;
}

/* Fields that a response does not keep. */
static bool
is_unstored(struct span name)
{
    static const char *const names[] = {"Set-Cookie",        "Connection", "Keep-Alive", "Upgrade",
                                        "Transfer-Encoding", "Trailer",    NULL};

    return http_name_is_one_of(name, names);
}

static bool
check(const struct rules *rules, const struct rule *rule, const char *place, struct buf *why)
{
    const struct rule_value *unkeyed = NULL;
    struct rule_values fields = rule_values(rule, RULE_RESPONSE_FIELD);

    if (rule_has_any(rule, RULE_FIELD, RULE_USER_LIST) && !passes(rule))
        unkeyed = find_unkeyed(rules, rule);
    if (unkeyed) {
        buf_end_line(why);
        buf_printf(why,
                   "%srule: it changes the field %.*s of some requests for a URL: name it in "
                   "key-field, or let them pass",
                   place, (int)unkeyed->name.len, unkeyed->name.ptr);
        return false;
    }
    if (rule_has(rule, RULE_TYPE) && is_edited(rules, span_str("Content-Type"))) {
        buf_end_line(why);
        buf_printf(why, "%srule: type: another rule changes the field Content-Type", place);
        return false;
    }
    for (size_t i = 0; i < fields.count; i++) {
        if (!is_edited(rules, fields.of[i].name) && !is_unstored(fields.of[i].name))
            continue;
        buf_end_line(why);
        buf_printf(why,
                   "%srule: response-field: another rule changes the field %.*s, or stored "
                   "responses do not have it",
                   place, (int)fields.of[i].name.len, fields.of[i].name.ptr);
        return false;
    }
    return true;
}

/* ---- rules that spell one URL ---------------------------------------------------------------- */

/* The number of these rules that may be about a URL of one of them, itself included. */
static size_t
count_meeting(const struct rule *const *switches, size_t count, const struct rule *rule)
{
    size_t meeting = 0;

    for (size_t i = 0; i < count; i++)
        meeting += rules_may_meet(switches[i], rule);
    return meeting;
}

/*
 * Removes rules that meet few others until none is left, or each meets too many: no URL has too
 * many unless that is so. Returns what is left.
 */
static size_t
leave_crowded(const struct rule **switches, size_t count)
{
    size_t before;

    do {
        before = count;
        for (size_t i = 0; i < count;)
            if (count_meeting(switches, count, switches[i]) <= RULES_SWITCHES_MAX)
                switches[i] = switches[--count];
            else
                i++;
    } while (count != before);
    return count;
}

/* A purge finds the keys of a URL by trying all combinations of the rules that spell it. */
static bool
check_switches(const struct rules *rules, const char *(*place)(void *context, size_t rule),
               void *context, struct buf *why)
{
    const struct rule **switches = calloc(rules->count + 1, sizeof(struct rule *));
    size_t count = 0;

    if (!switches) {
        buf_append_str(why, "out of memory");
        return false;
    }
    for (size_t i = 0; i < rules->count; i++)
        if (rule_switches_url(&rules->rules[i]))
            switches[count++] = &rules->rules[i];
    count = leave_crowded(switches, count);
    if (count) {
        buf_end_line(why);
        buf_printf(why,
                   "%srule: more than %u rules may change the parameters of one URL under "
                   "conditions on fields, cookies, networks, times or users: name their hosts or "
                   "paths, or put some into one",
                   place(context, (size_t)(switches[0] - rules->rules)), RULES_SWITCHES_MAX);
    }
    free(switches);
    return count == 0;
}

bool
rules_know_users(const struct rules *rules)
{
    for (size_t i = 0; i < rules->count; i++)
        if (rule_has_any(&rules->rules[i], RULE_USER, RULE_USER_LIST) ||
            rule_has(&rules->rules[i], RULE_AUTHENTICATE))
            return true;
    return false;
}

bool
rules_finish(struct rules *rules, const char *(*place)(void *context, size_t rule), void *context,
             struct buf *why)
{
    bool ok = true;

    rules_index_finish(rules);
    for (size_t i = 0; i < rules->count; i++)
        ok = check(rules, &rules->rules[i], place(context, i), why) && ok;
    return check_switches(rules, place, context, why) && ok;
}

/* False with a sentence. */
static bool
load_list(struct rule *rule, enum rule_key key, rules_reader *read, void *context, struct buf *why)
{
    const enum name_list_kind kind = key == RULE_HOST_LIST ? NAME_LIST_HOSTS : NAME_LIST_USERS;
    struct name_list *list = key == RULE_HOST_LIST ? &rule->hosts : &rule->users;
    const char *path = rule_values(rule, key).of[0].name.ptr;
    struct buf content;
    bool ok;

    buf_init(&content, RULES_LIST_MAX);
    ok = read(context, path, &content, why) &&
         name_list_init(list, kind, buf_span(&content), path, why);
    buf_free(&content);
    return ok;
}

bool
rules_load(struct rules *rules, rules_reader *read, void *context, struct buf *why)
{
    bool ok = true;

    for (size_t i = 0; i < rules->count; i++) {
        struct rule *rule = &rules->rules[i];

        buf_end_line(why);
        for (enum rule_key key = 0; key < RULE_KEYS; key++)
            if ((key == RULE_HOST_LIST || key == RULE_USER_LIST) && rule_has(rule, key))
                ok = load_list(rule, key, read, context, why) && ok;
        buf_end_line(why);
        if (rule_has(rule, RULE_ERROR_PAGE))
            ok = read(context, rule_values(rule, RULE_ERROR_PAGE).of[0].name.ptr, &rule->page,
                      why) &&
                 ok;
    }
    return ok;
}
