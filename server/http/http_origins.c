#include "server/http/http_origins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "fetch/fetch.h"
#include "http/field.h"
#include "http/octet.h"
#include "http/target.h"
#include "origins/origin_probe.h"

#define BLANKS " \t"
#define MOST_WEIGHT 1000u
#define MOST_IN_FLIGHT 65536u
#define LEAST_INTERVAL_US ((int64_t)1000000)
#define LONGEST_TIME_US ((int64_t)3600 * 1000000)
#define LONGEST_INTERVAL_US ((int64_t)86400 * 1000000)

/* ---- reading rows ---------------------------------------------------------------------------- */

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
    return !http_origins_path_leads_up(prefix);
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

static bool
read_row(const char *text, const char *dashes, struct http_origin *row, struct buf *why)
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

/* The lowest limit of all rows holds. */
static void
limit_server(struct origin_server *server, unsigned max)
{
    unsigned limit = atomic_load(&server->limit);

    if (max && (!limit || max < limit))
        atomic_store(&server->limit, max);
}

/* The servers of its members. */
static bool
find_servers(struct origin_servers *servers, struct origin_route *route, struct buf *why)
{
    for (unsigned i = 0; i < route->count; i++) {
        struct span path, authority = origin_route_client(route->members[i].url, &path);

        route->members[i].server = origin_servers_add(servers, authority, &route->probes);
        if (!route->members[i].server) {
            buf_append_str(why, strerror(ENOMEM));
            return false;
        }
        limit_server(route->members[i].server, route->members[i].max);
    }
    return true;
}

/* ---- their order ----------------------------------------------------------------------------- */

static int
compare_lengths(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

/* Rows for any host come last. */
static int
compare_hosts(struct span a, struct span b)
{
    int order;

    if (!a.len || !b.len)
        return compare_lengths(!a.len, !b.len);
    order = strncasecmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : compare_lengths(a.len, b.len);
}

/* By bytes, so that what begins with a prefix follows it, up to the first that does not. */
static int
compare_paths(struct span a, struct span b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

    return order ? order : compare_lengths(a.len, b.len);
}

static int
compare_places(const struct http_origin *a, const struct http_origin *b)
{
    int order = compare_hosts(a->host, b->host);

    if (!order)
        order = compare_paths(a->route.prefix, b->route.prefix);
    return order ? order : a->route.below - b->route.below;
}

/* Equal ones stay in the order in which they were given. */
static int
compare_rows(const void *a, const void *b)
{
    const struct http_origin *first = a, *second = b;
    int order = compare_places(first, second);

    return order ? order : compare_lengths(first->number, second->number);
}

/* Does every path that the row matches begin with the other one's prefix? */
static bool
lies_below(const struct http_origin *row, const struct http_origin *other)
{
    return compare_hosts(row->host, other->host) == 0 &&
           span_starts_with(row->route.prefix, other->route.prefix);
}

/* Finds for each row the next one above it. */
static void
nest(struct http_origins *origins)
{
    for (size_t i = 0; i < origins->count; i++) {
        struct http_origin *row = &origins->rows[i], *above = i ? row - 1 : NULL;

        while (above && !lies_below(row, above))
            above = above->above;
        row->above = above;
    }
}

/* False with a line in `why` for each row whose host and prefix an earlier one has. */
static bool
check_duplicates(const struct http_origins *origins, const struct option_list *rows,
                 struct buf *why)
{
    bool ok = true;

    for (size_t i = 1; i < origins->count; i++) {
        size_t number = origins->rows[i].number;

        if (compare_places(&origins->rows[i - 1], &origins->rows[i]) != 0)
            continue;
        buf_end_line(why);
        buf_printf(why,
                   "%sorigin: \"%s\": an earlier row has that host and prefix (URLs of one row are "
                   "separated by commas)",
                   option_place(rows, number), rows->items[number]);
        ok = false;
    }
    return ok;
}

static void
free_members(struct origin_route *route)
{
    for (unsigned i = 0; i < route->count; i++)
        free((char *)(uintptr_t)route->members[i].url.ptr);
}

/* Adds a row. */
static bool
add_row(struct http_origins *origins, const struct option_list *rows, size_t number,
        struct buf *why)
{
    struct http_origin *row = &origins->rows[origins->count];

    row->number = number;
    if (!read_row(rows->items[number], option_place(rows, number), row, why) ||
        !find_servers(&origins->servers, &row->route, why)) {
        free_members(&row->route);
        *row = (struct http_origin){.number = 0};
        return false;
    }
    origins->count++;
    return true;
}

bool
http_origins_init(struct http_origins *origins, const struct option_list *rows, struct buf *why)
{
    bool ok = true;

    *origins = (struct http_origins){0};
    if (rows->count == 0)
        return true;
    origins->rows = calloc(rows->count, sizeof(*origins->rows));
    if (!origins->rows) {
        buf_append_str(why, strerror(ENOMEM));
        return false;
    }
    for (size_t i = 0; i < rows->count; i++) {
        buf_end_line(why);
        ok = add_row(origins, rows, i, why) && ok;
    }
    qsort(origins->rows, origins->count, sizeof(*origins->rows), compare_rows);
    ok = check_duplicates(origins, rows, why) && ok;
    if (!ok) {
        http_origins_free(origins);
        return false;
    }
    nest(origins);
    return true;
}

void
http_origins_free(struct http_origins *origins)
{
    for (size_t i = 0; i < origins->count; i++)
        free_members(&origins->rows[i].route);
    free(origins->rows);
    origin_servers_free(&origins->servers);
    *origins = (struct http_origins){0};
}

static int
compare_for_same(const void *a, const void *b)
{
    return compare_places(a, b);
}

struct http_origin *
http_origins_find_same(const struct http_origins *origins, const struct http_origin *row)
{
    return origins->count ? bsearch(row, origins->rows, origins->count, sizeof(*origins->rows),
                                    compare_for_same)
                          : NULL;
}

void
http_origins_inherit(struct http_origins *origins, const struct http_origins *from)
{
    for (size_t i = 0; i < origins->count; i++) {
        struct origin_route *route = &origins->rows[i].route;
        const struct http_origin *before =
            http_origins_find_same(from, &origins->rows[i]);

        if (before)
            origin_budget_inherit(&route->budget, &before->route.budget);
        for (unsigned n = 0; n < route->count; n++) {
            struct origin_server *server =
                origin_servers_find(&from->servers, route->members[n].server);

            if (server)
                route->members[n].server = server;
        }
    }
    origin_servers_inherit(&origins->servers, &from->servers);
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool
has_prefix(const struct origin_route *route, struct span path)
{
    /* "?query" stands for "/?query". */
    bool no_path = path.len == 0 || path.ptr[0] == '?';

    if (route->prefix.len == 0)
        return true;
    if (no_path || !span_starts_with(path, route->prefix))
        return false;
    if (path.len == route->prefix.len)
        return !route->below;
    return path.ptr[route->prefix.len] == '/' ||
           (path.ptr[route->prefix.len] == '?' && !route->below);
}

/*
 * Does the text begin with this character, as it stands or escaped by these digits (the second one
 * in lower case)? Its length then; otherwise 0.
 */
static size_t
length_of(struct span text, char c, const char *digits)
{
    if (text.len && text.ptr[0] == c)
        return 1;
    return text.len >= 3 && text.ptr[0] == '%' && text.ptr[1] == digits[0] &&
                   (text.ptr[2] | 0x20) == (digits[1] | 0x20)
               ? 3
               : 0;
}

/* The same for what some origin takes for the end of a segment. */
static size_t
separator_length(struct span text)
{
    size_t slash = length_of(text, '/', "2f");

    return slash ? slash : length_of(text, '\\', "5c");
}

/* Is it ".." up to the end of the segment, or to its parameters (RFC 3986 section 3.3)? */
static bool
leads_up(struct span text)
{
    for (unsigned dots = 0; dots < 2; dots++) {
        size_t dot = length_of(text, '.', "2e");

        if (!dot)
            return false;
        text = span_of(text.ptr + dot, text.len - dot);
    }
    return text.len == 0 || separator_length(text) || length_of(text, ';', "3b");
}

/* Takes a segment off a path, which begins with a slash. */
static struct span
take_segment(struct span *path)
{
    const char *begin = path->ptr + 1, *end = path->ptr + path->len;
    const char *slash = memchr(begin, '/', (size_t)(end - begin));
    struct span segment = span_of(begin, (size_t)((slash ? slash : end) - begin));

    *path = span_of(begin + segment.len, path->len - 1 - segment.len);
    return segment;
}

/* The number of dots, one or two, of which the segment consists; otherwise 0. */
static unsigned
count_dots(struct span segment)
{
    unsigned dots = 0;

    while (segment.len && dots < 3) {
        size_t dot = length_of(segment, '.', "2e");

        if (!dot)
            return 0;
        dots++;
        segment = span_of(segment.ptr + dot, segment.len - dot);
    }
    return dots < 3 ? dots : 0;
}

static bool
has_two_dots(struct span path)
{
    while (path.len)
        if (count_dots(take_segment(&path)) == 2)
            return true;
    return false;
}

/* Most paths have nothing of the kind. */
static bool
has_dots_or_escape(struct span path)
{
    const char *end = path.ptr + path.len, *dot = path.ptr;

    if (memchr(path.ptr, '%', path.len))
        return true;
    while ((dot = memchr(dot, '.', (size_t)(end - dot))) && ++dot < end)
        if (*dot == '.')
            return true;
    return false;
}

struct span
http_origins_clean_path(struct span path, char *out)
{
    const char *query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    size_t len = query ? (size_t)(query - path.ptr) : path.len;
    struct span rest = span_of(path.ptr, len);
    char *end = out;

    if (!len || path.ptr[0] != '/' || !has_dots_or_escape(rest) || !has_two_dots(rest))
        return path;
    while (rest.len) {
        struct span segment = take_segment(&rest);
        unsigned dots = count_dots(segment);

        if (dots == 2)
            while (end > out && *--end != '/')
                continue;
        if (!dots || !rest.len)
            *end++ = '/';
        if (!dots)
            end = span_put(end, segment);
    }
    end = span_put(end, span_of(path.ptr + len, path.len - len));
    return span_of(out, (size_t)(end - out));
}

bool
http_origins_path_leads_up(struct span path)
{
    const char *query = memchr(path.ptr, '?', path.len);
    struct span rest = span_of(path.ptr, query ? (size_t)(query - path.ptr) : path.len);
    bool begins = true; /* a segment */

    if (!has_dots_or_escape(rest))
        return false;
    while (rest.len) {
        size_t separator = separator_length(rest);

        if (begins && leads_up(rest))
            return true;
        begins = separator != 0;
        rest =
            span_of(rest.ptr + (separator ? separator : 1), rest.len - (separator ? separator : 1));
    }
    return false;
}

/* The row for exactly this host. */
static struct http_origin *
find_for_host(const struct http_origins *origins, struct span host, struct span path)
{
    const char *query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    const struct span only = span_of(path.ptr, query ? (size_t)(query - path.ptr) : path.len);
    size_t low = 0, high = origins->count;
    struct http_origin *row;

    /* The last one whose place is not behind that of the path: it, or one above it, matches. */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_hosts(origins->rows[middle].host, host);

        if (!order)
            order = compare_paths(origins->rows[middle].route.prefix, only);
        if (order <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    row = low ? &origins->rows[low - 1] : NULL;
    if (row && compare_hosts(row->host, host) != 0)
        return NULL;
    while (row && !has_prefix(&row->route, path))
        row = row->above;
    return row;
}

struct http_origin *
http_origins_find(const struct http_origins *origins, struct span host, struct span path)
{
    struct http_origin *row = host.len ? find_for_host(origins, host, path) : NULL;

    return row ? row : find_for_host(origins, span_of(NULL, 0), path);
}

/* Host and port of a request that names none. */
static struct http_authority
default_authority(const struct http_origin *row)
{
    struct http_authority authority = {.host = row->host};
    struct span path, url = origin_route_client(row->route.members[0].url, &path);
    const char *host = memmem(url.ptr, url.len, "://", 3);

    if (!authority.host.len && host)
        (void)http_authority_read(span_of(host + 3, (size_t)(url.ptr + url.len - host - 3)),
                                  &authority);
    return authority;
}

size_t
http_origin_write_url(const struct http_origin *row, const struct http_origin_request *request,
                      char *out, size_t size)
{
    struct http_authority authority = {.host = request->host, .port = request->port};

    if (!authority.host.len)
        authority = default_authority(row);
    if (request->path.len + origin_route_longest(&row->route) > size)
        return 0;
    return http_write_url(out, size, request->https, authority.host, authority.port, request->path);
}
