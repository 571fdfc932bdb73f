#include "http/update.h"

#include "http/cache_control.h"
#include "http/date.h"
#include "http/field.h"
#include "http/hop_by_hop.h"

/* What is left out of a set of lines. */
struct exclusions {
    struct http_connection_options connection;
    struct http_cache_control control; /* the fields that it names */
    bool named;                        /* these count */
    bool set_cookie;
};

static bool
read_connection(struct http_connection_options *options, struct span lines)
{
    struct span line, name, value;

    options->count = 0;
    while (http_next_line(&lines, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Connection") &&
            !http_connection_options_add(options, value))
            return false;
    return true;
}

/* The directives that count: those of the field for caches of the origin where it is honoured. */
static void
read_control(struct exclusions *exclusions, struct span lines,
             const struct http_storing_rules *rules)
{
    exclusions->named = rules->drops_named_fields;
    exclusions->set_cookie = rules->drops_set_cookie;
    if (!rules->cdn_cache_control || !http_cdn_cache_control_read(&exclusions->control, lines))
        http_cache_control_read_lines(&exclusions->control, lines);
}

static bool
is_stored(struct span name, const struct exclusions *exclusions)
{
    return !http_is_hop_by_hop(name, &exclusions->connection) && !http_is_proxy_field(name) &&
           !http_name_is(name, "Age") &&
           !(exclusions->set_cookie &&
             (http_name_is(name, "Set-Cookie") || http_name_is(name, "Set-Cookie2"))) &&
           !(exclusions->named && http_cache_control_names(&exclusions->control, name));
}

static void
write_line(struct span line, struct buf *out)
{
    buf_append(out, line.ptr, line.len);
    buf_append_str(out, "\r\n");
}

static void
write_date(int64_t wall_s, struct buf *out)
{
    char text[HTTP_DATE_SIZE];

    http_date_format(wall_s, text);
    buf_append_str(out, "Date: ");
    buf_append_str(out, text);
    buf_append_str(out, "\r\n");
}

bool
http_stored_fields(struct span lines, const struct http_storing_rules *rules, int64_t wall_s,
                   struct buf *out)
{
    struct exclusions exclusions;
    struct span rest = lines, line, name, value;

    if (!read_connection(&exclusions.connection, lines))
        return false;
    read_control(&exclusions, lines, rules);
    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) && is_stored(name, &exclusions))
            write_line(line, out);
    if (!http_first_value(lines, "Date").ptr)
        write_date(wall_s, out);
    return !buf_failed(out);
}

/* ---- updates ----------------------------------------------------------------------------------
 */

/* The names of the fields that a 304 changes. */
struct updates {
    struct span names[HTTP_UPDATES_MAX];
    size_t count;
};

/* Of the stored content rather than of the response: RFC 9111 section 3.2. */
static bool
is_of_content(struct span name)
{
    static const char *const names[] = {
        "Content-Length",
        "Content-Encoding",
        "Content-Range",
        NULL,
    };

    return http_name_is_one_of(name, names);
}

static bool
read_updates(struct updates *updates, struct span lines, const struct exclusions *exclusions)
{
    struct span line, name, value;

    updates->count = 0;
    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !is_stored(name, exclusions) ||
            is_of_content(name) || http_name_is_among(name, updates->names, updates->count))
            continue;
        if (updates->count == HTTP_UPDATES_MAX)
            return false;
        updates->names[updates->count++] = name;
    }
    return true;
}

bool
http_update_fields(struct span stored, struct span update, const struct http_storing_rules *rules,
                   int64_t wall_s, struct buf *out)
{
    struct exclusions exclusions, none = {.named = false};
    struct span rest = update, line, name, value;
    struct updates updates;

    if (!read_connection(&exclusions.connection, update))
        return false;
    read_control(&exclusions,
                 http_first_value(update, "Cache-Control").ptr ||
                         http_first_value(update, "CDN-Cache-Control").ptr
                     ? update
                     : stored,
                 rules);
    if (!read_updates(&updates, update, &exclusions))
        return false;
    /* What a Connection field lists belongs to its own message. */
    none.control = exclusions.control;
    none.named = exclusions.named;
    none.set_cookie = exclusions.set_cookie;
    while (http_next_line(&stored, &line)) {
        if (!http_split_field(line, &name, &value) || !is_stored(name, &none) ||
            http_name_is_among(name, updates.names, updates.count) || http_name_is(name, "Date"))
            continue;
        write_line(line, out);
    }
    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) &&
            http_name_is_among(name, updates.names, updates.count))
            write_line(line, out);
    if (!http_first_value(update, "Date").ptr)
        write_date(wall_s, out);
    return !buf_failed(out);
}
