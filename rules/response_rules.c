/* What rules make of responses. */
#include "base/hash.h"
#include "base/uninitialized.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "rules/field_lines.h"
#include "rules/glob.h"
#include "rules/matching.h"

/* ---- responses ------------------------------------------------------------------------------- */

/* Of the first rule that has the key; with what that overrides, unless NULL. */
static void
set_time(struct http_storing_rules *storing, enum http_decided which, const struct rule *rule,
         enum rule_key key, int64_t *time_us, unsigned *overrides)
{
    struct rule_values values = rule_values(rule, key), words = rule_values(rule, RULE_OVERRIDE);

    if (!values.count || storing->decided & which)
        return;
    *time_us = values.of[0].number;
    storing->decided |= which;
    for (size_t i = 0; overrides && i < words.count; i++)
        *overrides |= (unsigned)words.of[i].number;
}

static void
add_key_name(struct http_storing_rules *storing, struct span name)
{
    if (storing->key_count <= HTTP_VARY_MAX &&
        !http_name_is_among(name, storing->key_names, storing->key_count))
        storing->key_names[storing->key_count++] = name;
}

/* Errors, and redirects that are for one request (302, 303, 307), last as long as others only where
 * a rule is about them. */
static bool
concerns_lifetime(const struct rule *rule, unsigned status)
{
    return (status < 400 && http_status_is_heuristic(status)) || rule_has(rule, RULE_STATUS);
}

void
rules_set_storing(const struct rules *rules, const struct rules_response *response,
                  struct http_storing_rules *storing)
{
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;

    if (!rules_match_response(rules, response, &set))
        return;
    while ((rule = rules_next(rules, &set, &cursor))) {
        struct rule_values names = rule_values(rule, RULE_KEY_FIELD);

        set_time(storing, HTTP_DECIDED_GRACE, rule, RULE_GRACE, &storing->grace_us, NULL);
        if (concerns_lifetime(rule, response->status)) {
            set_time(storing, HTTP_DECIDED_LIFETIME, rule, RULE_LIFETIME, &storing->lifetime_us,
                     &storing->overrides);
            set_time(storing, HTTP_DECIDED_DEFAULT, rule, RULE_DEFAULT_LIFETIME,
                     &storing->default_us, &storing->default_overrides);
        }
        for (size_t i = 0; i < names.count; i++)
            add_key_name(storing, names.of[i].name);
        if (rule_has(rule, RULE_KEY_COOKIE))
            add_key_name(storing, span_str("Cookie"));
    }
}

/* What says how the response is stored: of that, the origin's own counts. */
static bool
is_control(struct span name)
{
    static const char *const names[] = {"Cache-Control", "Expires", "Pragma", "CDN-Cache-Control",
                                        NULL};

    return http_name_is_one_of(name, names);
}

struct edit {
    const struct rules *rules;
    const struct rules_set *set;
};

static bool
is_removed_cookie(const void *context, struct span line)
{
    static const struct span field = {"Set-Cookie", sizeof("Set-Cookie") - 1};
    const struct edit *edit = context;
    struct span value, cookie, name;

    return http_line_is(line, field, &value) && rules_next_cookie(&value, &cookie, &name) &&
           !rules_name_stays(edit->rules, edit->set, RULE_REMOVE_RESPONSE_COOKIE, NULL, 0, name);
}

/* True: a field was changed that says how the response is stored. */
static bool
edit_lines(const struct rule *rule, enum rules_edit purpose, struct buf *lines)
{
    struct rule_values removed = rule_values(rule, RULE_REMOVE_RESPONSE_FIELD),
                       added = rule_values(rule, RULE_SET_RESPONSE_FIELD);
    bool control = false;

    for (size_t i = 0; i < removed.count; i++) {
        control = control || is_control(removed.of[i].name);
        if (purpose == RULES_EDIT_ALL || !is_control(removed.of[i].name))
            lines_remove_name(lines, removed.of[i].name);
    }
    for (size_t i = 0; i < added.count; i++) {
        control = control || is_control(added.of[i].name);
        if (purpose == RULES_EDIT_ALL || !is_control(added.of[i].name))
            lines_set(lines, added.of[i].name, added.of[i].pattern);
    }
    return control;
}

/* Appends what the origin has said about storing, in lines of a name of their own; one at least. */
static void
keep_control(struct span lines, struct buf *out)
{
    struct span line, name, value;
    bool any = false;

    lines_remove_name(out, span_str(HTTP_ORIGIN_CONTROL));
    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !is_control(name))
            continue;
        buf_printf(out, "%s: %.*s\r\n", HTTP_ORIGIN_CONTROL, (int)line.len, line.ptr);
        any = true;
    }
    if (!any)
        buf_printf(out, "%s:\r\n", HTTP_ORIGIN_CONTROL);
}

bool
rules_edit_response(const struct rules *rules, const struct rules_response *response,
                    enum rules_edit purpose, struct span lines, struct buf *out)
{
    struct rules_cursor cursor = {0}, again = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;
    bool edits = false, control = false;

    if (!rules_match_response(rules, response, &set))
        return false;
    while (!edits && (rule = rules_next(rules, &set, &cursor)))
        edits = rule_has_any(rule, RULE_SET_RESPONSE_FIELD, RULE_REMOVE_RESPONSE_COOKIE);
    if (!edits)
        return false;
    buf_append(out, lines.ptr, lines.len);
    lines_remove(out, is_removed_cookie, &(struct edit){.rules = rules, .set = &set});
    while ((rule = rules_next(rules, &set, &again)))
        control = edit_lines(rule, purpose, out) || control;
    if (control && purpose == RULES_EDIT_ALL)
        keep_control(lines, out);
    return true;
}

bool
rules_restore_response(struct span lines, struct buf *out)
{
    struct span rest = lines, line, name, value;

    if (!http_first_value(lines, HTTP_ORIGIN_CONTROL).ptr)
        return false;
    while (http_next_line(&rest, &line)) {
        bool split = http_split_field(line, &name, &value);

        if (split && is_control(name))
            continue;
        if (split && http_name_is(name, HTTP_ORIGIN_CONTROL)) {
            line = value;
            if (!http_split_field(line, &name, &value) || !is_control(name))
                continue;
        }
        buf_append(out, line.ptr, line.len);
        buf_append_str(out, "\r\n");
    }
    return true;
}

static const char *
type_of(struct span name)
{
    static const struct {
        const char *pattern, *type;
    } types[] = {
        {"*.html", "text/html; charset=utf-8"},
        {"*.json", "application/json"},
        {"*.xml", "application/xml"},
    };

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (glob_matches(span_str(types[i].pattern), name))
            return types[i].type;
    return "text/plain; charset=utf-8";
}

struct rules_page
rules_error_page(const struct rules *rules, const struct rules_response *response)
{
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;

    if (!rules_match_response(rules, response, &set))
        return (struct rules_page){.type = NULL};
    while ((rule = rules_next(rules, &set, &cursor)))
        if (rule_has(rule, RULE_ERROR_PAGE))
            return (struct rules_page){
                .body = buf_span(&rule->page),
                .type = type_of(rule_values(rule, RULE_ERROR_PAGE).of[0].name),
            };
    return (struct rules_page){.type = NULL};
}

/* ---- changes --------------------------------------------------------------------------------- */

bool
rules_have_same_files(const struct rules *a, size_t number_a, const struct rules *b,
                      size_t number_b)
{
    return a->rules[number_a].hosts.digest == b->rules[number_b].hosts.digest &&
           a->rules[number_a].users.digest == b->rules[number_b].users.digest;
}

uint64_t
rules_digest_of_files(const struct rules *rules, size_t number)
{
    const struct rule *rule = &rules->rules[number];

    return hash64_uint(hash64_uint(rule->hosts.digest) ^ rule->users.digest);
}

static bool
names_set_cookie(const struct rule *rule, enum rule_key key)
{
    struct rule_values values = rule_values(rule, key);

    for (size_t i = 0; i < values.count; i++)
        if (http_name_is(values.of[i].name, "Set-Cookie"))
            return true;
    return false;
}

/* Does it let in what is one client's otherwise? */
static bool
lets_in(const struct rule *rule)
{
    return rule_has(rule, RULE_OVERRIDE) || rule_has(rule, RULE_REMOVE_RESPONSE_COOKIE) ||
           names_set_cookie(rule, RULE_REMOVE_RESPONSE_FIELD) ||
           names_set_cookie(rule, RULE_SET_RESPONSE_FIELD);
}

bool
rules_let_in(const struct rules *rules, struct span url)
{
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;

    if (!rules_match_url(rules, url, HTTP_GET, &set))
        return false;
    while ((rule = rules_next(rules, &set, &cursor)))
        if (lets_in(rule))
            return true;
    return false;
}

enum rules_concern
rules_concern(const struct rules *rules, size_t from, size_t to, enum http_method method,
              struct span url)
{
    enum rules_concern concern = RULES_CONCERN_NOT;
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;

    if (!rules_match_url(rules, url, method, &set))
        return concern;
    while ((rule = rules_next(rules, &set, &cursor))) {
        const size_t number = (size_t)(rule - rules->rules);

        if (number < from || number >= to)
            continue;
        if (rule->edits & (RULE_EDITS_FIELDS | RULE_EDITS_COOKIES) ||
            rule_has_any(rule, RULE_KEY_FIELD, RULE_KEY_COOKIE) ||
            rule_has_any(rule, RULE_SET_RESPONSE_FIELD, RULE_REMOVE_RESPONSE_COOKIE))
            return RULES_CONCERN_CONTENT;
        if (rule_has_any(rule, RULE_LIFETIME, RULE_OVERRIDE))
            concern = RULES_CONCERN_STORING;
    }
    return concern;
}
