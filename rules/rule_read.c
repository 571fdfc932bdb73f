/* The keys of rules, and how their values are read. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/nearest.h"
#include "base/token_bucket.h"
#include "base/units.h"
#include "http/conditional.h"
#include "http/field.h"
#include "http/hop_by_hop.h"
#include "http/known_fields.h"
#include "http/method.h"
#include "http/target.h"
#include "rules/matching.h"
#include "rules/rule.h"
#include "rules/rules.h"

#define VALUES_MAX 256u /* of one rule */

/* ---- values: false with the end of a sentence, "... is not ..." ------------------------------ */

typedef bool read_value(struct rule_value *value, char *text, const char **wrong);

static bool
read_pattern(struct rule_value *value, char *text, const char **wrong)
{
    (void)wrong;
    value->name = span_str(text);
    return true;
}

/* As URLs have it: in lower case, without a dot at its end, and IPv6 as RFC 5952 writes it, but an
 * IPv4-mapped address as IPv4. */
static bool
read_host(struct rule_value *value, char *text, const char **wrong)
{
    char *name = strncmp(text, "*.", 2) == 0 ? text + 2 : text, url[512];
    struct http_authority authority;
    size_t len;

    *wrong = "is neither the name of a host, without a port, nor \"*.\" and the end of names";
    if (!http_authority_read(span_str(name), &authority) || authority.port ||
        authority.host.len > 253)
        return false;
    len = http_write_url(url, sizeof(url), false, authority.host, 0, span_str("/"));
    if (len < 9 || len - 8 > strlen(name)) {
        *wrong = "is an address that is written longer: write it as RFC 5952 does";
        return false;
    }
    memcpy(name, url + 7, len - 8);
    name[len - 8] = '\0';
    value->name = name == text ? rules_plain_host(span_str(text)) : span_str(text + 1);
    return true;
}

static bool
read_path(struct rule_value *value, char *text, const char **wrong)
{
    value->name = span_str(text);
    *wrong =
        "begins neither with \"/\" nor with \"*\", or has a \"?\": queries have the key parameter";
    return (*text == '/' || *text == '*') && !strchr(text, '?');
}

static bool
read_method(struct rule_value *value, char *text, const char **wrong)
{
    value->number = http_method_of(span_str(text));
    *wrong = "is not a method, such as GET";
    return *text && value->number != HTTP_OTHER;
}

static bool
read_name(struct rule_value *value, char *text, const char **wrong)
{
    value->name = span_str(text);
    *wrong = "is not the name of a field";
    return http_is_token(value->name);
}

/* "NAME" or "NAME=PATTERN". */
static bool
read_pair(struct rule_value *value, char *text, const char **wrong)
{
    char *equals = strchr(text, '=');

    value->name = equals ? span_of(text, (size_t)(equals - text)) : span_str(text);
    if (equals)
        value->pattern = span_str(equals + 1);
    *wrong = "is not of the form NAME or NAME=PATTERN";
    return value->name.len != 0;
}

/* "NAME" or "NAME: PATTERN". */
static bool
read_field(struct rule_value *value, char *text, const char **wrong)
{
    char *colon = strchr(text, ':');

    value->name = colon ? span_of(text, (size_t)(colon - text)) : span_str(text);
    if (colon)
        value->pattern = http_trim(span_str(colon + 1));
    *wrong = "is not of the form NAME or NAME: PATTERN";
    return http_is_token(value->name);
}

/* A field that frames a message or names its server is not an operator's to edit, nor what is
 * between a client and the proxy, or within the proxy. */
static bool
is_of_message(struct span name)
{
    static const char *const names[] = {
        "Connection",
        "Content-Length",
        "Content-Range",
        "Host",
        "Keep-Alive",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Upgrade",
        "Transfer-Encoding",
        "Expect",
        "Via",
        "Max-Forwards",
        "Age",
        "Date",
        "Content-Encoding",
        "Vary",
        HTTP_ORIGIN_CONTROL,
        NULL,
    };

    return http_name_is_one_of(name, names) ||
           (name.len >= 6 && strncasecmp(name.ptr, "Proxy-", 6) == 0);
}

static bool
read_edited(struct rule_value *value, char *text, const char **wrong)
{
    if (!read_name(value, text, wrong))
        return false;
    *wrong = "is a field that a rule does not change";
    return !is_of_message(value->name);
}

/* "NAME: VALUE". */
static bool
read_set(struct rule_value *value, char *text, const char **wrong)
{
    if (!read_field(value, text, wrong) || !value->pattern.ptr || !http_is_value(value->pattern)) {
        *wrong = "is not of the form NAME: VALUE";
        return false;
    }
    *wrong = "sets a field that a rule does not change, or a range or condition of a client";
    return !is_of_message(value->name) && !http_is_condition(value->name) &&
           !http_name_is(value->name, "Range");
}

/* "404" or "5xx". */
static bool
read_statuses(struct rule_value *value, char *text, const char **wrong)
{
    uint64_t number;

    *wrong = "is not a status, such as 404 or 5xx";
    if (strlen(text) == 3 && text[0] >= '2' && text[0] <= '5' && strcasecmp(text + 1, "xx") == 0) {
        value->number = (text[0] - '0') * 100;
        value->most = value->number + 99;
        return true;
    }
    if (!units_parse_uint(text, 200, 599, &number))
        return false;
    value->number = value->most = (int64_t)number;
    return true;
}

static bool
read_denial(struct rule_value *value, char *text, const char **wrong)
{
    uint64_t number;

    /* The others have fields that say what would be accepted instead. */
    *wrong = "is neither \"no\" nor a status from 400 to 599 other than 401, 407 and 426";
    if (strcasecmp(text, "no") == 0)
        return true;
    if (!units_parse_uint(text, 400, 599, &number) || number == 401 || number == 407 ||
        number == 426)
        return false;
    value->number = (int64_t)number;
    return true;
}

static bool
read_reason(struct rule_value *value, char *text, const char **wrong)
{
    value->name = span_str(text);
    *wrong = "is not one line of at most 500 bytes of UTF-8";
    return value->name.len <= 500 && json_is_utf8(value->name) && http_is_value(value->name);
}

/* "[STATUS] TARGET". */
static bool
read_redirect(struct rule_value *value, char *text, const char **wrong)
{
    char *blank = strpbrk(text, " \t");
    uint64_t number = 302;

    *wrong = "is not of the form [301|302|303|307|308] URL";
    if (blank) {
        *blank = '\0';
        if (!units_parse_uint(text, 301, 308, &number) || (number > 303 && number < 307))
            return false;
        text = blank + 1 + strspn(blank + 1, " \t");
    }
    value->number = (int64_t)number;
    value->name = span_str(text);
    return (*text == '/' || *text == '{' || strstr(text, "://")) && http_is_value(value->name) &&
           text[strcspn(text, " \t")] == '\0' && value->name.len < RULES_LOCATION_MAX / 2;
}

static bool
read_yes(struct rule_value *value, char *text, const char **wrong)
{
    value->number = strcasecmp(text, "yes") == 0;
    *wrong = "is not yes or no";
    return value->number || strcasecmp(text, "no") == 0;
}

static bool
read_time(struct rule_value *value, char *text, const char **wrong)
{
    *wrong = "is not a time, such as 500ms, 30s or 5m, of at most 365d";
    return units_parse_duration(text, &value->number) && value->number >= 0 &&
           value->number <= (int64_t)365 * 86400 * 1000000;
}

/* "N" or "N:BURST" a second. */
static bool
read_rate(struct rule_value *value, char *text, const char **wrong)
{
    char *colon = strchr(text, ':');
    uint64_t rate, burst;

    *wrong = "is not a rate a second, such as 100 or 100:250";
    if (colon)
        *colon = '\0';
    if (!units_parse_uint(text, 1, 1000000, &rate))
        return false;
    burst = rate;
    if (colon && !units_parse_uint(colon + 1, 1, 1000000000, &burst))
        return false;
    value->number = (int64_t)rate;
    value->most = (int64_t)burst;
    return true;
}

static bool
read_override(struct rule_value *value, char *text, const char **wrong)
{
    static const struct {
        const char *name;
        unsigned bit;
    } words[] = {
        {"no-store", HTTP_OVERRIDE_NO_STORE}, {"private", HTTP_OVERRIDE_PRIVATE},
        {"no-cache", HTTP_OVERRIDE_NO_CACHE}, {"set-cookie", HTTP_OVERRIDE_SET_COOKIE},
        {"cookie", HTTP_OVERRIDE_COOKIE},     {"authorization", HTTP_OVERRIDE_AUTHORIZATION},
    };

    *wrong = "is not one of no-store, private, no-cache, set-cookie, cookie and authorization";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(text, words[i].name) == 0)
            value->number = words[i].bit;
    return value->number != 0;
}

static bool
read_file(struct rule_value *value, char *text, const char **wrong)
{
    value->name = span_str(text);
    *wrong = "is not the absolute path of a file";
    return *text == '/';
}

/* "443" or "8000-8999". */
static bool
read_port(struct rule_value *value, char *text, const char **wrong)
{
    char *dash = strchr(text, '-');
    uint64_t low, high;

    *wrong = "is neither a port nor two with a dash between them";
    if (dash)
        *dash = '\0';
    if (!units_parse_uint(text, 1, 65535, &low))
        return false;
    high = low;
    if (dash && !units_parse_uint(dash + 1, low, 65535, &high))
        return false;
    value->number = (int64_t)low;
    value->most = (int64_t)high;
    return true;
}

static bool
read_network(struct rule_value *value, char *text, const char **wrong)
{
    struct networks networks = {.count = 0};
    char sentence[256];
    bool ok = networks_add(&networks, text, sentence, sizeof(sentence));

    networks_free(&networks);
    value->name = span_str(text);
    *wrong = "is not a network, such as 192.0.2.0/24";
    return ok;
}

/* The number of a day, Sunday 0; -1: it is none. */
static int
day_of(struct span text)
{
    static const char days[] = "sunmontuewedthufrisat";

    for (int day = 0; day < 7; day++)
        if (text.len == 3 && strncasecmp(text.ptr, days + day * 3, 3) == 0)
            return day;
    return -1;
}

/* "mon" or "mon-fri": a bit for each day. 0: it is neither. */
static unsigned
read_days(struct span text)
{
    int from = day_of(span_of(text.ptr, text.len < 3 ? 0 : 3)), to = from;
    unsigned days = 0;

    if (text.len == 7 && text.ptr[3] == '-')
        to = day_of(span_of(text.ptr + 4, 3));
    else if (text.len != 3)
        return 0;
    if (from < 0 || to < 0)
        return 0;
    for (int day = from; days |= 1u << day, day != to; day = (day + 1) % 7)
        ;
    return days;
}

/* "08:30": minutes. -1: it is none. */
static int
read_minutes(const char *text)
{
    int hours, minutes, end = 0;

    if (sscanf(text, "%2d:%2d%n", &hours, &minutes, &end) != 2 || end != 5 || text[0] == '-' ||
        hours < 0 || minutes < 0 || minutes > 59 || hours * 60 + minutes > 24 * 60)
        return -1;
    return hours * 60 + minutes;
}

/* "[DAY[-DAY]] [HH:MM-HH:MM]": the days, and of these minutes the first, times 2,048, and the last.
 */
static bool
read_times(struct rule_value *value, char *text, const char **wrong)
{
    size_t word = strcspn(text, " \t");
    unsigned days = read_days(span_of(text, word));
    int from = 0, to = 24 * 60;

    *wrong = "is not of the form DAY-DAY HH:MM-HH:MM, such as mon-fri 08:00-18:00";
    if (days)
        text += word + strspn(text + word, " \t");
    if (*text) {
        if (strlen(text) != 11 || text[5] != '-')
            return false;
        from = read_minutes((char[]){text[0], text[1], text[2], text[3], text[4], '\0'});
        to = read_minutes(text + 6);
    } else if (!days) {
        return false;
    }
    value->number = days ? days : 0x7f;
    value->most = from * 2048 + to;
    return from >= 0 && to >= 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

#define REPEATED(name, argument, help, kind) \
    {                                        \
        name, argument, help, true, kind     \
    }
#define SINGLE(name, argument, help, kind) \
    {                                      \
        name, argument, help, false, kind  \
    }

static const struct section_key keys[RULE_KEYS + 1] = {
    [RULE_HOST] =
        REPEATED("host", "NAME|*.NAME", "if the host of the URL is one of these", SECTION_TEXT),
    [RULE_HOST_LIST] =
        SINGLE("host-list", "FILE", "if it is in the list of this file, or below a name there",
               SECTION_TEXT),
    [RULE_PORT] = REPEATED("port", "N|N-N", "if its port is", SECTION_TEXT),
    [RULE_PATH] = REPEATED("path", "PATTERN", "if its path is, without the query; * is any bytes",
                           SECTION_TEXT),
    [RULE_METHOD] = REPEATED("method", "NAME", "if the method is", SECTION_TEXT),
    [RULE_PARAMETER] = REPEATED("parameter", "NAME[=PATTERN]",
                                "if the query has a parameter of this name", SECTION_TEXT),
    [RULE_FIELD] =
        REPEATED("field", "NAME[: PATTERN]", "if the request has this field", SECTION_TEXT),
    [RULE_COOKIE] = REPEATED("cookie", "NAME[=PATTERN]",
                             "if it has a cookie of this name, which may have *", SECTION_TEXT),
    [RULE_NETWORK] = REPEATED("network", "CIDR", "if the client's address is there", SECTION_TEXT),
    [RULE_TIME] =
        REPEATED("time", "DAY-DAY HH:MM-HH:MM", "if it is that time of the week", SECTION_TEXT),
    [RULE_USER] = REPEATED("user", "PATTERN", "if the user of the request is", SECTION_TEXT),
    [RULE_USER_LIST] =
        SINGLE("user-list", "FILE", "if it is in the list of this file", SECTION_TEXT),
    [RULE_STATUS] = REPEATED("status", "N|Nxx", "if the status of the response is", SECTION_TEXT),
    [RULE_TYPE] =
        REPEATED("type", "PATTERN", "if its Content-Type is, without parameters", SECTION_TEXT),
    [RULE_RESPONSE_FIELD] = REPEATED("response-field", "NAME[: PATTERN]",
                                     "if the response has this field", SECTION_TEXT),
    [RULE_PASS] = SINGLE("pass", "yes|no", "the cache is passed by", SECTION_TEXT),
    [RULE_DENY] =
        SINGLE("deny", "STATUS|no", "it is refused; no: not by later rules", SECTION_TEXT),
    [RULE_REASON] = SINGLE("reason", "TEXT", "that the page of a denial states", SECTION_TEXT),
    [RULE_REDIRECT] = SINGLE(
        "redirect", "[STATUS] URL",
        "answered so; it may have {scheme}, {host}, {path}, {query} with its ?", SECTION_TEXT),
    [RULE_RATE] = SINGLE("rate", "N[:BURST]", "a second of all that match; else 429", SECTION_TEXT),
    [RULE_AUTHENTICATE] =
        SINGLE("authenticate", "yes|no", "the request needs a user", SECTION_TEXT),
    [RULE_SET_FIELD] =
        REPEATED("set-field", "NAME: VALUE", "of the request to the origin", SECTION_TEXT),
    [RULE_REMOVE_FIELD] = REPEATED("remove-field", "NAME", "likewise", SECTION_TEXT),
    [RULE_REMOVE_PARAMETER] = REPEATED("remove-parameter", "PATTERN", "of the query", SECTION_TEXT),
    [RULE_KEEP_PARAMETER] =
        REPEATED("keep-parameter", "PATTERN", "all others are removed", SECTION_TEXT),
    [RULE_SORT_PARAMETERS] = SINGLE("sort-parameters", "yes|no", "by their names", SECTION_TEXT),
    [RULE_REMOVE_COOKIE] = REPEATED("remove-cookie", "PATTERN", "of the request", SECTION_TEXT),
    [RULE_KEEP_COOKIE] = REPEATED("keep-cookie", "PATTERN", "all others are removed", SECTION_TEXT),
    [RULE_KEY_FIELD] = REPEATED("key-field", "NAME",
                                "of the request; its value is a part of the key", SECTION_TEXT),
    [RULE_KEY_COOKIE] =
        REPEATED("key-cookie", "NAME", "likewise; all others are removed", SECTION_TEXT),
    [RULE_LIFETIME] = SINGLE("lifetime", "TIME", "whatever the response states", SECTION_TEXT),
    [RULE_DEFAULT_LIFETIME] = SINGLE("default-lifetime", "TIME", "if it states none", SECTION_TEXT),
    [RULE_GRACE] =
        SINGLE("grace", "TIME", "it is used stale meanwhile, or if the origin fails", SECTION_TEXT),
    [RULE_OVERRIDE] =
        REPEATED("override", "WORD", "that does not keep it from being stored", SECTION_TEXT),
    [RULE_SET_RESPONSE_FIELD] =
        REPEATED("set-response-field", "NAME: VALUE", "of the response", SECTION_TEXT),
    [RULE_REMOVE_RESPONSE_FIELD] =
        REPEATED("remove-response-field", "NAME", "likewise", SECTION_TEXT),
    [RULE_REMOVE_RESPONSE_COOKIE] =
        REPEATED("remove-response-cookie", "PATTERN", "that it would set", SECTION_TEXT),
    [RULE_ERROR_PAGE] =
        SINGLE("error-page", "FILE", "what clients get with such a status", SECTION_TEXT),
};

static read_value *const readers[RULE_KEYS] = {
    [RULE_HOST] = read_host,
    [RULE_HOST_LIST] = read_file,
    [RULE_PORT] = read_port,
    [RULE_PATH] = read_path,
    [RULE_METHOD] = read_method,
    [RULE_PARAMETER] = read_pair,
    [RULE_FIELD] = read_field,
    [RULE_COOKIE] = read_pair,
    [RULE_NETWORK] = read_network,
    [RULE_TIME] = read_times,
    [RULE_USER] = read_pattern,
    [RULE_USER_LIST] = read_file,
    [RULE_STATUS] = read_statuses,
    [RULE_TYPE] = read_pattern,
    [RULE_RESPONSE_FIELD] = read_field,
    [RULE_PASS] = read_yes,
    [RULE_DENY] = read_denial,
    [RULE_REASON] = read_reason,
    [RULE_REDIRECT] = read_redirect,
    [RULE_RATE] = read_rate,
    [RULE_AUTHENTICATE] = read_yes,
    [RULE_SET_FIELD] = read_set,
    [RULE_REMOVE_FIELD] = read_edited,
    [RULE_REMOVE_PARAMETER] = read_pattern,
    [RULE_KEEP_PARAMETER] = read_pattern,
    [RULE_SORT_PARAMETERS] = read_yes,
    [RULE_REMOVE_COOKIE] = read_pattern,
    [RULE_KEEP_COOKIE] = read_pattern,
    [RULE_KEY_FIELD] = read_name,
    [RULE_KEY_COOKIE] = read_pattern,
    [RULE_LIFETIME] = read_time,
    [RULE_DEFAULT_LIFETIME] = read_time,
    [RULE_GRACE] = read_time,
    [RULE_OVERRIDE] = read_override,
    [RULE_SET_RESPONSE_FIELD] = read_set,
    [RULE_REMOVE_RESPONSE_FIELD] = read_edited,
    [RULE_REMOVE_RESPONSE_COOKIE] = read_pattern,
    [RULE_ERROR_PAGE] = read_file,
};

const struct section_key *
rules_keys(void)
{
    return keys;
}

bool
rules_check_value(const struct section_key *key, const char *text, struct buf *why)
{
    struct rule_value value = {.number = 0};
    const char *wrong = "is empty";
    char *copy = strdup(text);
    bool ok = copy && *copy && readers[key - keys](&value, copy, &wrong);

    if (!copy)
        buf_append_str(why, "out of memory");
    else if (!ok)
        buf_printf(why, "%s: \"%s\" %s", key->name, text, wrong);
    free(copy);
    return ok;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* What is read of one key. */
struct pair {
    enum rule_key key;
    struct rule_value value;
};

struct reading {
    struct pair pairs[VALUES_MAX];
    size_t count;
    struct buf *why;
    bool ok;
};

static enum rule_key
find_key(const char *name)
{
    enum rule_key key = 0;

    while (key < RULE_KEYS && strcmp(keys[key].name, name) != 0)
        key++;
    return key;
}

/* A sentence in a line of its own. */
static void
begin_error(struct reading *r)
{
    if (!r->ok)
        buf_append_str(r->why, "; ");
    r->ok = false;
}

static void
explain_key(struct reading *r, const char *name)
{
    struct nearest nearest = NEAREST_TO(name);
    char ask[80];

    begin_error(r);
    for (enum rule_key key = 0; key < RULE_KEYS; key++)
        nearest_offer(&nearest, keys[key].name);
    buf_printf(r->why, "\"%s\" is no key of a rule%s", name,
               nearest_ask(&nearest, ask, sizeof(ask)));
}

static bool
is_repeated(const struct reading *r, enum rule_key key)
{
    for (size_t i = 0; !keys[key].repeats && i < r->count; i++)
        if (r->pairs[i].key == key)
            return true;
    return false;
}

static void
read_one(struct reading *r, enum rule_key key, char *text)
{
    struct pair pair = {.key = key};
    const char *wrong;
    struct buf sentence;

    buf_init(&sentence, 65536);
    if (is_repeated(r, key)) {
        begin_error(r);
        buf_printf(r->why, "%s is there twice", keys[key].name);
    } else if (r->count == VALUES_MAX) {
        begin_error(r);
        buf_printf(r->why, "a rule has at most %u values", VALUES_MAX);
    } else if (!rules_check_value(&keys[key], text, &sentence)) {
        begin_error(r);
        buf_append(r->why, sentence.data, sentence.len);
    } else {
        (void)readers[key](&pair.value, text, &wrong);
        r->pairs[r->count++] = pair;
    }
    buf_free(&sentence);
}

static char *
trim(char *text)
{
    size_t len;

    text += strspn(text, " \t\r\n");
    for (len = strlen(text); len && strchr(" \t\r\n", text[len - 1]);)
        text[--len] = '\0';
    return text;
}

/* Ends the first "KEY = VALUE" of the text, without its backslashes; returns what follows. */
static char *
cut(char *text)
{
    char *out = text;

    for (; *text && *text != ';'; text++) {
        if (*text == '\\' && (text[1] == ';' || text[1] == '\\'))
            text++;
        *out++ = *text;
    }
    if (*text)
        text++;
    *out = '\0';
    return text;
}

static void
read_pairs(struct reading *r, char *text)
{
    while (*text) {
        char *rest = cut(text), *equals = strchr(text, '='), *name;

        name = trim(text);
        if (*name && !equals) {
            begin_error(r);
            buf_printf(r->why, "\"%s\" is not of the form KEY = VALUE", name);
        } else if (*name) {
            *equals = '\0';
            name = trim(name);
            if (find_key(name) == RULE_KEYS)
                explain_key(r, name);
            else
                read_one(r, find_key(name), trim(equals + 1));
        }
        text = rest;
    }
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool
acts(const struct rule *rule)
{
    return rule_has_any(rule, RULE_PASS, RULE_KEYS - 1);
}

/* May the rule's actions stand beside its conditions? */
static void
check(struct reading *r, const struct rule *rule)
{
    bool on_response = rule_has_any(rule, RULE_STATUS, RULE_RESPONSE_FIELD);

    if (!r->ok)
        return;
    if (!acts(rule)) {
        begin_error(r);
        buf_append_str(r->why, "the rule has no action");
    } else if (on_response && (rule_has_any(rule, RULE_PASS, RULE_KEEP_COOKIE) ||
                               rule_has(rule, RULE_KEY_COOKIE) || rule_has(rule, RULE_KEY_FIELD))) {
        begin_error(r);
        buf_append_str(r->why, "a condition on the response stands beside an action on requests");
    } else if (rule_has_any(rule, RULE_PARAMETER, RULE_USER_LIST) &&
               rule_has_any(rule, RULE_KEY_FIELD, RULE_KEYS - 1)) {
        begin_error(r);
        buf_append_str(
            r->why, "an action on responses, which all requests for a URL share, stands "
                    "beside a condition on a parameter, a field, a cookie, a network, the time or "
                    "a user");
    } else if (rule_has(rule, RULE_AUTHENTICATE) && rule_has_any(rule, RULE_USER, RULE_USER_LIST)) {
        begin_error(r);
        buf_append_str(r->why, "authenticate stands beside a condition on the user: whether a "
                               "request needs a user is decided before its user is known");
    } else if (rule_has(rule, RULE_REASON) && !rule_denies(rule)) {
        begin_error(r);
        buf_append_str(r->why, "reason stands beside deny");
    } else if (rule_has(rule, RULE_ERROR_PAGE) && !rule_has(rule, RULE_STATUS)) {
        begin_error(r);
        buf_append_str(r->why, "error-page stands beside status");
    } else if (rule_has(rule, RULE_OVERRIDE) &&
               !rule_has_any(rule, RULE_LIFETIME, RULE_DEFAULT_LIFETIME)) {
        begin_error(r);
        buf_append_str(r->why, "override stands beside lifetime or default-lifetime");
    }
}

static bool
arrange(struct rule *rule, const struct reading *r)
{
    size_t count = 0;

    rule->values = calloc(r->count ? r->count : 1, sizeof(*rule->values));
    if (!rule->values)
        return false;
    for (enum rule_key key = 0; key < RULE_KEYS; key++) {
        rule->first[key] = (uint16_t)count;
        for (size_t i = 0; i < r->count; i++)
            if (r->pairs[i].key == key)
                rule->values[count++] = r->pairs[i].value;
    }
    rule->first[RULE_KEYS] = (uint16_t)count;
    return true;
}

static unsigned
edits_of(const struct rule *rule)
{
    bool cookies =
        rule_has_any(rule, RULE_REMOVE_COOKIE, RULE_KEEP_COOKIE) || rule_has(rule, RULE_KEY_COOKIE);

    return (rule_has_any(rule, RULE_SET_FIELD, RULE_REMOVE_FIELD) ? RULE_EDITS_FIELDS : 0u) |
           (cookies ? RULE_EDITS_COOKIES : 0u) |
           (rule_has_any(rule, RULE_REMOVE_PARAMETER, RULE_SORT_PARAMETERS) ? RULE_EDITS_URL : 0u);
}

/* False without memory: what they are has been checked. */
static bool
add_networks(struct rule *rule)
{
    struct rule_values values = rule_values(rule, RULE_NETWORK);
    char sentence[256], text[64];

    for (size_t i = 0; i < values.count; i++) {
        snprintf(text, sizeof(text), "%.*s", (int)values.of[i].name.len, values.of[i].name.ptr);
        if (!networks_add(&rule->networks, text, sentence, sizeof(sentence)))
            return false;
    }
    return true;
}

bool
rule_read(struct rule *rule, const char *text, struct buf *why)
{
    struct reading reading = {.why = why, .ok = true};

    *rule = (struct rule){.text = strdup(text)};
    buf_init(&rule->page, RULES_PAGE_MAX);
    if (rule->text)
        read_pairs(&reading, rule->text);
    if (!rule->text || !arrange(rule, &reading) || !add_networks(rule)) {
        buf_append_str(why, "out of memory");
        reading.ok = false;
    } else {
        check(&reading, rule);
        rule->edits = edits_of(rule);
    }
    if (!reading.ok)
        rule_free(rule);
    return reading.ok;
}

void
rule_free(struct rule *rule)
{
    free(rule->text);
    free(rule->values);
    buf_free(&rule->page);
    name_list_free(&rule->hosts);
    name_list_free(&rule->users);
    networks_free(&rule->networks);
}
