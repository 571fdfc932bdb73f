#include "server/http/http_origins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/target.h"
#include "server/http/http_origin_row.h"

/* ---- rows ------------------------------------------------------------------------------------ */

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

/* Adds a row. */
static bool
add_row(struct http_origins *origins, const struct option_list *rows, size_t number,
        struct buf *why)
{
    struct http_origin *row = &origins->rows[origins->count];

    row->number = number;
    if (!http_origin_row_read(rows->items[number], option_place(rows, number), row, why) ||
        !find_servers(&origins->servers, &row->route, why)) {
        http_origin_row_free(row);
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
        http_origin_row_free(&origins->rows[i]);
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
