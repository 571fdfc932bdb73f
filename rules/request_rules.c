/* What rules make of requests. */
#include "base/hash.h"
#include "base/uninitialized.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "http/request_head.h"
#include "http/target.h"
#include "rules/field_lines.h"
#include "rules/matching.h"
#include "rules/glob.h"
#include "rules/rule_rate.h"

/* ---- verdicts -------------------------------------------------------------------------------- */

struct writer {
    char *bytes;
    size_t size;
    size_t len;
    bool full;
};

static void
write(struct writer *w, struct span text)
{
    w->full = w->full || text.len > w->size - w->len;
    if (w->full)
        return;
    span_put(w->bytes + w->len, text);
    w->len += text.len;
}

/* Part of a URL. Browsers take a backslash for a slash. */
static void
write_part(struct writer *w, struct span text)
{
    for (size_t i = 0; i < text.len; i++)
        write(w, text.ptr[i] == '\\' ? span_str("%5C") : span_of(text.ptr + i, 1));
}

/* The text with its placeholders replaced. */
static void
write_location(struct writer *w, struct span text, const struct rules_url *url)
{
    const struct {
        const char *name;
        struct span value;
    } places[] = {
        {"{scheme}", url->scheme},
        {"{host}", url->authority},
        {"{path}", url->path},
        {"{query}", url->query.ptr ? span_of(url->query.ptr - 1, url->query.len + 1) : url->query},
    };

    while (text.len) {
        struct span value = span_of(text.ptr, 1);
        size_t taken = 1;

        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
            if (span_starts_with(text, span_str(places[i].name))) {
                value = places[i].value;
                taken = strlen(places[i].name);
            }
        if (taken > 1)
            write_part(w, value);
        else
            write(w, value);
        text = span_of(text.ptr + taken, text.len - taken);
    }
}

/* Two slashes at the begin would be followed by an authority, which is not a path's to name. */
static struct span
without_authority(struct span location, struct span text)
{
    while (location.len > 1 && location.ptr[0] == '/' && location.ptr[1] == '/' &&
           !span_starts_with(text, span_str("//")))
        location = span_of(location.ptr + 1, location.len - 1);
    return location;
}

/* Is it the URL, in any spelling, or that without scheme and authority? */
static bool
is_same(struct span location, struct span url, const struct rules_url *parts)
{
    char normal[RULES_LOCATION_MAX + HTTP_URL_EXTRA + HTTP_HOST_EXTRA];
    struct span spelt = http_normal_url(location, normal, sizeof(normal));
    size_t rest = parts->path.len + (parts->query.ptr ? parts->query.len + 1 : 0);

    return span_equal(spelt.ptr ? spelt : location, url) ||
           span_equal(location, span_of(parts->path.ptr, rest));
}

static void
deny(const struct rule *rule, struct rules_answer *answer)
{
    struct rule_values reason = rule_values(rule, RULE_REASON);

    answer->verdict = RULES_DENY;
    answer->status = (unsigned)rule_values(rule, RULE_DENY).of[0].number;
    answer->reason = reason.count ? reason.of[0].name : span_of("", 0);
    answer->by = rule;
}

/* A redirect does not apply to its own target. */
static void
redirect(const struct rule *rule, const struct rules_request *request, const struct rules_url *url,
         const struct writer *w, struct rules_answer *answer)
{
    struct rule_values values = rule_values(rule, RULE_REDIRECT);
    struct writer location = {.bytes = w->bytes, .size = RULES_LOCATION_MAX};

    if (!values.count)
        return;
    write_location(&location, values.of[0].name, url);
    answer->location =
        without_authority(span_of(location.bytes, location.len), values.of[0].name);
    if (!location.full && is_same(answer->location, request->url, url))
        return;
    answer->verdict = location.full ? RULES_DENY : RULES_REDIRECT;
    answer->status = location.full ? 414 : (unsigned)values.of[0].number;
    answer->by = rule;
}

static void
limit(struct rule *rule, int64_t now_us, bool takes, struct rules_answer *answer)
{
    struct rule_values rate = rule_values(rule, RULE_RATE);

    if (!rate.count ||
        (takes ? rate_take(&rule->even_ns, rate.of[0].number, rate.of[0].most, now_us)
               : rate_has(&rule->even_ns, rate.of[0].number, rate.of[0].most, now_us)))
        return;
    answer->verdict = RULES_LIMIT;
    answer->status = 429;
    answer->by = rule;
}

/* ---- names that stay ------------------------------------------------------------------------- */

static bool
cookie_stays(const struct rules *rules, const struct rules_set *set, struct span name)
{
    static const enum rule_key keep[] = {RULE_KEEP_COOKIE, RULE_KEY_COOKIE};

    return rules_name_stays(rules, set, RULE_REMOVE_COOKIE, keep, 2, name);
}

static bool
parameter_stays(const struct rules *rules, const struct rules_set *set, struct span name)
{
    static const enum rule_key keep[] = {RULE_KEEP_PARAMETER};

    return rules_name_stays(rules, set, RULE_REMOVE_PARAMETER, keep, 1,
                            rules_plain_parameter(name));
}

/* ---- the URL and the fields ------------------------------------------------------------------ */

/* What the rules of the set do. */
static unsigned
edits_of(const struct rules *rules, const struct rules_set *set)
{
    struct rules_cursor cursor = {0};
    const struct rule *rule;
    unsigned edits = 0;

    while ((rule = rules_next(rules, set, &cursor)))
        edits |= rule->edits;
    return edits;
}

/* Are the parameters sorted by the first rule that says so? */
static bool
sorts(const struct rules *rules, const struct rules_set *set)
{
    struct rules_cursor cursor = {0};
    const struct rule *rule;

    while ((rule = rules_next(rules, set, &cursor)))
        if (rule_has(rule, RULE_SORT_PARAMETERS))
            return rule_values(rule, RULE_SORT_PARAMETERS).of[0].number;
    return false;
}

#define SORTED_MAX 64u /* parameters; of more the order stays */

static size_t
count_parameters(struct span query)
{
    struct span parameter, name;
    size_t count = 0;

    while (rules_next_parameter(&query, &parameter, &name))
        count++;
    return count;
}

/* By name; of one name the order stays. */
static void
sort(struct span *parameters, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct span moved = parameters[i], name, name_before;
        size_t at = i;

        for (; at > 0; at--) {
            struct span rest = moved, before = parameters[at - 1], whole;

            (void)rules_next_parameter(&rest, &whole, &name);
            (void)rules_next_parameter(&before, &whole, &name_before);
            if (span_compare(name_before, name) <= 0)
                break;
            parameters[at] = parameters[at - 1];
        }
        parameters[at] = moved;
    }
}

/* The URL as the rules of the set spell it: itself, or in the writer. */
static struct span
edit_url(const struct rules *rules, const struct rules_set *set, struct span url,
         const struct rules_url *parts, struct writer *w)
{
    struct span sorted[SORTED_MAX], query = parts->query, parameter, name;
    size_t begin = w->len, count = 0;
    bool sorting = sorts(rules, set) && count_parameters(query) <= SORTED_MAX;
    const char *between = "?";

    write(w, span_of(url.ptr, (size_t)(parts->path.ptr + parts->path.len - url.ptr)));
    while (rules_next_parameter(&query, &parameter, &name)) {
        if (!parameter.len || !parameter_stays(rules, set, name))
            continue;
        if (sorting) {
            sorted[count++] = parameter;
            continue;
        }
        write(w, span_str(between));
        write(w, parameter);
        between = "&";
    }
    sort(sorted, count);
    for (size_t i = 0; i < count; i++, between = "&") {
        write(w, span_str(between));
        write(w, sorted[i]);
    }
    return w->full ? url : span_of(w->bytes + begin, w->len - begin);
}

/* Does a cookie of the request stay? */
static bool
has_cookie_left(const struct rules *rules, const struct rules_set *set, struct span lines)
{
    static const struct span field = {"Cookie", sizeof("Cookie") - 1};
    struct span line, cookies, cookie, name;

    while (http_next_line(&lines, &line))
        if (http_line_is(line, field, &cookies))
            while (rules_next_cookie(&cookies, &cookie, &name))
                if (cookie_stays(rules, set, name))
                    return true;
    return false;
}

/* The fields that the request has, as far as that is known by a bit, once it has been edited. */
static uint32_t
fields_left(const struct rules *rules, const struct rules_set *set, unsigned edits,
            const struct rules_request *request)
{
    struct rules_cursor cursor = {0};
    uint32_t has = request->has;
    const struct rule *rule;

    if ((has & HTTP_HAS_COOKIE) && edits & RULE_EDITS_COOKIES &&
        !has_cookie_left(rules, set, request->lines))
        has &= ~(uint32_t)HTTP_HAS_COOKIE;
    while (edits & RULE_EDITS_FIELDS && (rule = rules_next(rules, set, &cursor))) {
        struct rule_values removed = rule_values(rule, RULE_REMOVE_FIELD),
                           added = rule_values(rule, RULE_SET_FIELD);

        for (size_t i = 0; i < removed.count; i++)
            has &= ~http_request_field_of(removed.of[i].name);
        for (size_t i = 0; i < added.count; i++)
            has |= http_request_field_of(added.of[i].name);
    }
    return has;
}

/*
 * Does a rule change a field of some requests for the URL only, without that it is a part of the
 * key? What makes the difference may be a parameter that is removed.
 */
static bool
edits_unkeyed(const struct rules *rules, const struct rule *rule, const struct rules_url *url,
              bool edits_url)
{
    static const enum rule_key keys[] = {RULE_SET_FIELD, RULE_REMOVE_FIELD};

    if (!(rule->edits & RULE_EDITS_FIELDS) || !(rule_has_any(rule, RULE_FIELD, RULE_USER_LIST) ||
                                                (edits_url && rule_has(rule, RULE_PARAMETER))))
        return false;
    for (size_t k = 0; k < 2; k++) {
        struct rule_values values = rule_values(rule, keys[k]);

        for (size_t i = 0; i < values.count; i++)
            if (!rules_have_key(rules, url, values.of[i].name))
                return true;
    }
    return false;
}

/* The response of a request that has such an edit is no other's. */
static bool
must_pass(const struct rules *rules, const struct rules_set *set, unsigned edits,
          const struct rules_url *url)
{
    struct rules_cursor cursor = {0};
    const struct rule *rule;

    while (edits & RULE_EDITS_FIELDS && (rule = rules_next(rules, set, &cursor)))
        if (edits_unkeyed(rules, rule, url, edits & RULE_EDITS_URL))
            return true;
    return false;
}

/* For a request that a rule may concern. */
static __attribute__((noinline)) void
apply_found(const struct rules *rules, const struct rules_request *request,
            const struct rules_url *url, bool takes, struct writer *w, struct rules_answer *answer)
{
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    struct rule *rule;
    unsigned edits = 0;
    bool decided = false, allowed = false;

    if (!rules_match_request(rules, request, url, &set))
        return;
    while (!answer->by && (rule = rules_next(rules, &set, &cursor))) {
        struct rule_values pass = rule_values(rule, RULE_PASS);

        if (pass.count && !decided) {
            answer->passes = pass.of[0].number;
            decided = true;
        }
        edits |= rule->edits;
        if (!allowed && rule_denies(rule))
            deny(rule, answer);
        else
            redirect(rule, request, url, w, answer);
        allowed = allowed || rule_has(rule, RULE_DENY);
        if (!answer->by)
            limit(rule, request->now_us, takes, answer);
    }
    if (answer->by)
        return;
    answer->passes = answer->passes || must_pass(rules, &set, edits, url);
    answer->edits = edits & (RULE_EDITS_FIELDS | RULE_EDITS_COOKIES);
    answer->has = answer->edits ? fields_left(rules, &set, edits, request) : request->has;
    if (edits & RULE_EDITS_URL && url->query.ptr && http_method_is_safe(request->method))
        answer->url = edit_url(rules, &set, request->url, url, w);
}

/* Most requests are of no rule's concern: for them it is short, and has little memory. */
static inline void
apply(const struct rules *rules, const struct rules_request *request, bool takes, char *bytes,
      size_t size, struct rules_answer *answer)
{
    struct rules_url url UNINITIALIZED;

    *answer = (struct rules_answer){.url = request->url, .has = request->has};
    if (!rules->act_on_requests)
        return;
    rules_url_split(request->url, &url);
    if (rules_may_match(rules, request, &url))
        apply_found(rules, request, &url, takes, &(struct writer){.bytes = bytes, .size = size},
                    answer);
}

bool
rules_demand_user(const struct rules *rules, const struct rules_request *request)
{
    struct rules_request unknown = *request;
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    const struct rule *rule;
    struct rules_url url;

    unknown.user = span_of(NULL, 0);
    if (!rules->ask_for_users)
        return true;
    rules_url_split(request->url, &url);
    if (!rules_match_request(rules, &unknown, &url, &set))
        return true;
    while ((rule = rules_next(rules, &set, &cursor)))
        if (rule_has(rule, RULE_AUTHENTICATE))
            return rule_values(rule, RULE_AUTHENTICATE).of[0].number;
    return true;
}

void
rules_apply(const struct rules *rules, const struct rules_request *request, char *bytes,
            size_t size, struct rules_answer *answer)
{
    apply(rules, request, true, bytes, size, answer);
}

void
rules_peek(const struct rules *rules, const struct rules_request *request, char *bytes, size_t size,
           struct rules_answer *answer)
{
    apply(rules, request, false, bytes, size, answer);
}

struct span
rules_edit_url(const struct rules *rules, const struct rules_request *request, char *bytes,
               size_t size)
{
    struct writer w = {.bytes = bytes, .size = size};
    struct rules_url parts;
    struct rules_set set UNINITIALIZED;

    rules_url_split(request->url, &parts);
    if (!parts.query.ptr || !rules->act_on_requests || !http_method_is_safe(request->method) ||
        !rules_match_request(rules, request, &parts, &set) ||
        !(edits_of(rules, &set) & RULE_EDITS_URL))
        return request->url;
    return edit_url(rules, &set, request->url, &parts, &w);
}

/* Leaves of the set the rules that spell the URL in some requests with GET. Takes those out of it
 * that spell it by more than the URL: their number. */
static unsigned
take_switches(const struct rules *rules, struct rules_set *set, struct span query,
              const struct rule *switches[RULES_SWITCHES_MAX])
{
    struct rules_cursor cursor = {0};
    const struct rule *rule;
    unsigned count = 0;

    while ((rule = rules_next(rules, set, &cursor))) {
        const bool spells = rule->edits & RULE_EDITS_URL && rule_holds_query(rule, query);

        if (spells && !rule_switches_url(rule))
            continue;
        rules_leave_out(rules, set, rule);
        if (spells && count < RULES_SWITCHES_MAX)
            switches[count++] = rule;
    }
    return count;
}

void
rules_visit_keys(const struct rules *rules, struct span url, char *bytes, size_t size,
                 void (*visit)(void *context, struct span key), void *context)
{
    const struct rule *switches[RULES_SWITCHES_MAX] = {NULL};
    uint64_t seen[1u << RULES_SWITCHES_MAX];
    struct rules_set always UNINITIALIZED;
    struct rules_url parts;
    unsigned count, keys = 0;

    rules_url_split(url, &parts);
    if (!parts.query.ptr || !rules->act_on_requests ||
        !rules_match_url(rules, url, HTTP_GET, &always))
        return;
    count = take_switches(rules, &always, parts.query, switches);
    for (unsigned choice = 0; choice < 1u << count; choice++) {
        struct writer w = {.bytes = bytes, .size = size};
        struct rules_set set = always;
        struct span key;
        uint64_t hash;
        unsigned i;

        for (i = 0; i < count; i++)
            if (choice >> i & 1)
                rules_put_in(rules, &set, switches[i]);
        key = edits_of(rules, &set) ? edit_url(rules, &set, url, &parts, &w) : url;
        hash = hash64_bytes(key);
        for (i = 0; i < keys && seen[i] != hash; i++)
            ;
        if (i < keys || span_equal(key, url))
            continue;
        seen[keys++] = hash;
        visit(context, key);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static char *
move(char *to, struct span text)
{
    memmove(to, text.ptr, text.len);
    return to + text.len;
}

/* Moves what stays of a line of cookies, with what separated it and the end of the line behind its
 * text, so that it only becomes shorter. Nothing, if none stays. */
static char *
move_cookies(const struct rules *rules, const struct rules_set *set, struct span line, size_t text,
             struct span cookies, char *to)
{
    char *const begin = to;
    struct span cookie, name;
    bool any = false;

    to = move(to, span_of(line.ptr, (size_t)(cookies.ptr - line.ptr)));
    while (rules_next_cookie(&cookies, &cookie, &name)) {
        const bool blank = cookie.ptr[-1] == ' ';

        if (!cookie_stays(rules, set, name))
            continue;
        if (any) {
            *to++ = ';';
            if (blank)
                *to++ = ' ';
        }
        to = move(to, cookie);
        any = true;
    }
    return any ? move(to, span_of(line.ptr + text, line.len - text)) : begin;
}

/* Removes cookies, and lines with their last one. */
static void
edit_cookies(const struct rules *rules, const struct rules_set *set, struct buf *lines)
{
    static const struct span field = {"Cookie", sizeof("Cookie") - 1};
    struct span rest = buf_span(lines), line, cookies;
    char *to = lines->data;

    while (http_next_whole_line(&rest, &line)) {
        struct span text = line;

        while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
            text.len--;
        to = http_line_is(text, field, &cookies)
                 ? move_cookies(rules, set, line, text.len, cookies, to)
                 : move(to, line);
    }
    if (to)
        buf_truncate(lines, (size_t)(to - lines->data));
}

void
rules_edit_fields(const struct rules *rules, const struct rules_request *request, struct buf *lines)
{
    struct rules_cursor cursor = {0};
    struct rules_set set UNINITIALIZED;
    struct rules_url url;
    const struct rule *rule;

    rules_url_split(request->url, &url);
    if (!rules_match_request(rules, request, &url, &set))
        return;
    if (edits_of(rules, &set) & RULE_EDITS_COOKIES)
        edit_cookies(rules, &set, lines);
    while ((rule = rules_next(rules, &set, &cursor))) {
        struct rule_values removed = rule_values(rule, RULE_REMOVE_FIELD),
                           added = rule_values(rule, RULE_SET_FIELD);

        for (size_t i = 0; i < removed.count; i++)
            lines_remove_name(lines, removed.of[i].name);
        for (size_t i = 0; i < added.count; i++)
            lines_set(lines, added.of[i].name, added.of[i].pattern);
    }
}
