#include "server/http/http_origin_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "fetch/fetch.h"
#include "http/dot_segments.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/target.h"
#include "origins/origin_probe.h"
#include "server/http/http_origins.h"

#define BLANKS " \t"
#define MOST_WEIGHT 1000u
#define MOST_IN_FLIGHT 65536u
#define LEAST_INTERVAL_US ((int64_t)1000000)
#define LONGEST_TIME_US ((int64_t)3600 * 1000000)
#define LONGEST_INTERVAL_US ((int64_t)86400 * 1000000)

/* The URL, owned, without a slash at its end, if it can stand before a path. */
static bool
read_url(struct span text, const char *dashes, struct span *url, struct buf *why)
{
    char sentence[256], normal[FETCH_NORMAL_SIZE];
    bool has_user;

    if (fetch_check_url(text, &has_user, sentence, sizeof(sentence)) != FETCH_OK) {
        buf_printf(why, "%sorigin: \"%.*s\": %s", dashes, (int)text.len, text.ptr, sentence);
        return false;
    }
    if (has_user || memchr(text.ptr, '?', text.len) || memchr(text.ptr, '#', text.len)) {
        buf_printf(why, "%sorigin: \"%.*s\" has user information, a query or a fragment", dashes,
                   (int)text.len, text.ptr);
        return false;
    }
    text = fetch_normal_url(text, normal, sizeof(normal));
    if (text.ptr[text.len - 1] == '/')
        text.len--;
    *url = span_of(strndup(text.ptr, text.len), text.len);
    if (!url->ptr)
        buf_append_str(why, strerror(ENOMEM));
    return url->ptr != NULL;
}

/* Takes a word off the text, and the blanks behind it. */
static struct span
take_word(const char **text, const char *ends)
{
    struct span word = span_of(*text, strcspn(*text, ends));

    *text += word.len;
    *text += strspn(*text, BLANKS);
    return word;
}

/* Takes what is in front of a "|" off the text, and that; without one all of it, and text->ptr is
 * NULL then. */
static struct span
take_part(struct span *text)
{
    const char *end = memchr(text->ptr, '|', text->len);
    struct span part = span_of(text->ptr, end ? (size_t)(end - text->ptr) : text->len);

    *text = end ? span_of(end + 1, text->len - part.len - 1) : span_of(NULL, 0);
    return part;
}

/* A copy of the value, which ends with a zero byte; false if it is too long. */
static bool
copy_value(struct span value, char text[32])
{
    if (value.len >= 32)
        return false;
    snprintf(text, 32, "%.*s", (int)value.len, value.ptr);
    return true;
}

static bool
read_count(struct span value, uint64_t low, uint64_t high, unsigned *count)
{
    uint64_t number;
    char text[32];

    if (!copy_value(value, text) || !units_parse_uint(text, low, high, &number))
        return false;
    *count = (unsigned)number;
    return true;
}

/* "backup", "weight=N" or "max=N". */
static bool
read_attribute(struct span text, struct origin_member *member)
{
    static const struct span weight = {.ptr = "weight=", .len = 7}, max = {.ptr = "max=", .len = 4};

    if (span_equal(text, span_str("backup"))) {
        member->backup = true;
        return true;
    }
    if (span_starts_with(text, max))
        return read_count(span_of(text.ptr + max.len, text.len - max.len), 1, MOST_IN_FLIGHT,
                          &member->max);
    return span_starts_with(text, weight) &&
           read_count(span_of(text.ptr + weight.len, text.len - weight.len), 1, MOST_WEIGHT,
                      &member->weight);
}

/* A URL with its attributes: "http://a|weight=2|backup". */
static bool
read_member(struct span text, const char *dashes, struct origin_member *member, struct buf *why)
{
    if (!read_url(take_part(&text), dashes, &member->url, why))
        return false;
    while (text.ptr) {
        struct span part = take_part(&text);

        if (read_attribute(part, member))
            continue;
        buf_printf(why, "%sorigin: \"%.*s\" is not backup, weight=N up to %u, or max=N up to %u",
                   dashes, (int)part.len, part.ptr, MOST_WEIGHT, MOST_IN_FLIGHT);
        return false;
    }
    return true;
}

/* Members, separated by commas. */
static bool
read_members(const char **text, const char *dashes, struct origin_route *route, struct buf *why)
{
    do {
        if (**text == ',')
            *text += 1 + strspn(*text + 1, BLANKS);
        if (route->count == ORIGIN_ROUTE_MEMBERS) {
            buf_printf(why, "%sorigin: more than %u URLs in one row", dashes, ORIGIN_ROUTE_MEMBERS);
            return false;
        }
        if (!read_member(take_word(text, BLANKS ","), dashes, &route->members[route->count++],
                         why))
            return false;
    } while (**text == ',');
    return true;
}

static bool
read_host(struct span value, struct origin_route *route)
{
    struct http_authority authority;

    if (span_equal(value, span_str("client")))
        route->host = ORIGIN_HOST_CLIENT;
    else if (span_equal(value, span_str("origin")))
        route->host = ORIGIN_HOST_MEMBER;
    else
        route->host = ORIGIN_HOST_NAMED;
    route->name = value;
    return route->host != ORIGIN_HOST_NAMED || http_authority_read(value, &authority);
}

static bool
read_balance(struct span value, struct origin_route *route)
{
    static const char *const names[] = {
        [ORIGIN_BALANCE_FIRST] = "first",
        [ORIGIN_BALANCE_ROUND_ROBIN] = "round-robin",
        [ORIGIN_BALANCE_LEAST] = "least",
        [ORIGIN_BALANCE_HASH] = "hash",
    };

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (span_equal(value, span_str(names[i]))) {
            route->balance = (enum origin_balance)i;
            return true;
        }
    return false;
}

/* A path, in characters of a request's target. */
static bool
read_probe(struct span value, struct origin_route *route)
{
    for (size_t i = 0; i < value.len; i++)
        if (!http_octet_is(value.ptr[i], HTTP_OCTET_TARGET))
            return false;
    route->probes.path = value;
    return value.len && value.ptr[0] == '/';
}

static bool
read_probe_interval(struct span value, struct origin_route *route)
{
    char text[32];

    return copy_value(value, text) && units_parse_duration(text, &route->probes.interval_us) &&
           route->probes.interval_us >= LEAST_INTERVAL_US &&
           route->probes.interval_us <= LONGEST_INTERVAL_US;
}

static bool
read_probe_status(struct span value, struct origin_route *route)
{
    return read_count(value, 200, 599, &route->probes.status);
}

static bool
read_probe_fall(struct span value, struct origin_route *route)
{
    return read_count(value, 1, 100, &route->probes.fall);
}

static bool
read_probe_rise(struct span value, struct origin_route *route)
{
    return read_count(value, 1, 100, &route->probes.rise);
}

static bool
read_time(struct span value, int64_t *us)
{
    char text[32];

    return copy_value(value, text) && units_parse_duration(text, us) && *us <= LONGEST_TIME_US;
}

static bool
read_queue(struct span value, struct origin_route *route)
{
    return read_time(value, &route->queue_us);
}

static bool
read_slow(struct span value, struct origin_route *route)
{
    return read_time(value, &route->slow_us);
}

static bool
read_errors(struct span value, struct origin_route *route)
{
    return read_count(value, 1, 1000, &route->errors);
}

static const struct {
    struct span name;
    bool (*read)(struct span value, struct origin_route *route);
    const char *values;
} keys[] = {
    {{.ptr = "host=", .len = 5}, read_host, "host=client, host=origin or host=NAME[:PORT]"},
    {{.ptr = "balance=", .len = 8},
     read_balance,
     "balance=first, balance=round-robin, balance=least or balance=hash"},
    {{.ptr = "probe=", .len = 6}, read_probe, "probe=/PATH"},
    {{.ptr = "probe-interval=", .len = 15},
     read_probe_interval,
     "probe-interval=TIME, from a second to a day"},
    {{.ptr = "probe-status=", .len = 13}, read_probe_status, "probe-status=N from 200 to 599"},
    {{.ptr = "probe-fall=", .len = 11}, read_probe_fall, "probe-fall=N from 1 to 100"},
    {{.ptr = "probe-rise=", .len = 11}, read_probe_rise, "probe-rise=N from 1 to 100"},
    {{.ptr = "queue=", .len = 6}, read_queue, "queue=TIME, up to an hour"},
    {{.ptr = "errors=", .len = 7}, read_errors, "errors=N from 1 to 1000"},
    {{.ptr = "slow=", .len = 5}, read_slow, "slow=TIME, up to an hour"},
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

/* What follows the URLs: keys with values. */
static bool
read_keys(const char *text, const char *dashes, struct origin_route *route, struct buf *why)
{
    while (*text) {
        struct span word = take_word(&text, BLANKS);
        size_t i = 0;

        while (i < KEYS && !span_starts_with(word, keys[i].name))
            i++;
        if (i < KEYS &&
            keys[i].read(span_of(word.ptr + keys[i].name.len, word.len - keys[i].name.len), route))
            continue;
        buf_printf(why, "%sorigin: \"%.*s\" is not %s", dashes, (int)word.len, word.ptr,
                   i < KEYS ? keys[i].values : "a host=, balance= or probe= of the row");
        return false;
    }
    return true;
}

/* Can the path of a request begin so? One with ".." is refused. */
static bool
is_prefix(struct span prefix)
{
    for (size_t i = 0; i < prefix.len; i++)
        if (!http_octet_is(prefix.ptr[i], HTTP_OCTET_TARGET) || prefix.ptr[i] == '?')
            return false;
    return !http_path_leads_up(prefix);
}

static struct span
trim(const char *from, const char *to)
{
    while (from < to && strchr(BLANKS, *from))
        from++;
    while (from < to && strchr(BLANKS, to[-1]))
        to--;
    return span_of(from, (size_t)(to - from));
}

/* What is in front of the "=": the row's host and prefix. */
static bool
read_pattern(struct span text, struct http_origin *row)
{
    const char *slash = memchr(text.ptr, '/', text.len);
    size_t host_len = slash ? (size_t)(slash - text.ptr) : 0;
    struct http_authority host = {0};

    if (!slash || memchr(text.ptr, ':', host_len) ||
        (host_len && !http_authority_read(span_of(text.ptr, host_len), &host)))
        return false;
    row->host = host.host;
    row->route.prefix = span_of(slash, text.len - host_len);
    return true;
}

bool
http_origin_row_read(const char *text, const char *dashes, struct http_origin *row, struct buf *why)
{
    const char *equals = strchr(text, '=');
    struct span *prefix = &row->route.prefix;

    if (!equals || !read_pattern(trim(text, equals), row) ||
        equals[1 + strspn(equals + 1, BLANKS)] == '\0') {
        buf_printf(why, "%sorigin: \"%s\" is not [HOST]/PREFIX=URL[,URL...]", dashes, text);
        return false;
    }
    if (!is_prefix(*prefix)) {
        buf_printf(why, "%sorigin: \"%.*s\" begins the path of no request that is served", dashes,
                   (int)prefix->len, prefix->ptr);
        return false;
    }
    row->route.below = prefix->ptr[prefix->len - 1] == '/';
    prefix->len -= row->route.below;
    text = equals + 1 + strspn(equals + 1, BLANKS);
    row->route.probes = (struct origin_probes){.interval_us = ORIGIN_PROBE_INTERVAL_US,
                                               .fall = ORIGIN_PROBE_FALL,
                                               .rise = ORIGIN_PROBE_RISE};
    row->route.queue_us = ORIGIN_ROUTE_QUEUE_US;
    return read_members(&text, dashes, &row->route, why) &&
           read_keys(text, dashes, &row->route, why);
}

void
http_origin_row_free(struct http_origin *row)
{
    struct origin_route *route = &row->route;

    for (unsigned i = 0; i < route->count; i++)
        free((char *)(uintptr_t)route->members[i].url.ptr);
    *row = (struct http_origin){.number = 0};
}
