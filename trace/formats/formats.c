#include "trace/formats/formats.h"

#include <strings.h>

#include "trace/formats/lines.h"

/*
 * In the order in which content is compared with them, from the most to the least particular: a
 * list of URLs is any text with a URL in it.
 */
const struct trace_format *const trace_formats[] = {
    &trace_format_request_db,
    &trace_format_firefox,
    &trace_format_safari,
    &trace_format_chrome,
    &trace_format_har,
    &trace_format_sunproxyd,
    &trace_format_caddy,
    &trace_format_traefik,
    &trace_format_nginx_json,
    &trace_format_zeek,
    &trace_format_w3c,
    &trace_format_access,
    &trace_format_haproxy,
    &trace_format_s3,
    &trace_format_alb,
    &trace_format_squid,
    &trace_format_ltsv,
    &trace_format_adaptsize,
    &trace_format_table,
    &trace_format_ids,
    &trace_format_wc98,
    &trace_format_oracle,
    &trace_format_cache2k,
    &trace_format_urls,
    NULL,
};

/* Of one name, the first format that the content is; else the first. */
const struct trace_alias trace_aliases[] = {
    {"sunproxyd", &trace_format_request_db},
    {"apache", &trace_format_access},
    {"combined", &trace_format_access},
    {"common", &trace_format_access},
    {"clf", &trace_format_access},
    {"ncsa", &trace_format_access},
    {"vhost_combined", &trace_format_access},
    {"lighttpd", &trace_format_access},
    {"nginx", &trace_format_access},
    {"nginx", &trace_format_nginx_json},
    {"traefik", &trace_format_access},
    {"iis", &trace_format_w3c},
    {"cloudfront", &trace_format_w3c},
    {"elb", &trace_format_alb},
    {"bro", &trace_format_zeek},
    {"csv", &trace_format_table},
    {"tsv", &trace_format_table},
    {"txt", &trace_format_ids},
    {"libcachesim", &trace_format_oracle},
    {"libcachesim", &trace_format_table},
    {"libcachesim", &trace_format_ids},
    {"oraclegeneral", &trace_format_oracle},
    {"webcachesim", &trace_format_adaptsize},
    {"worldcup", &trace_format_wc98},
    {"chromium", &trace_format_chrome},
    {"edge", &trace_format_chrome},
    {"brave", &trace_format_chrome},
    {"opera", &trace_format_chrome},
    {"vivaldi", &trace_format_chrome},
    {"list", &trace_format_urls},
    {NULL, NULL},
};

static bool
is_format(struct span head, const struct trace_format *format)
{
    struct span seen = format->is_text ? trace_behind_mark(head) : head;

    return format->sniff ? format->sniff(seen) : lines_sniff(seen, format->lines);
}

/* The next format of that name behind *at, or NULL. */
static const struct trace_format *
next_named(const char *name, size_t *at)
{
    size_t i = 0;

    for (size_t f = 0; trace_formats[f]; f++) {
        if (i++ >= *at && strcasecmp(trace_formats[f]->name, name) == 0) {
            *at = i;
            return trace_formats[f];
        }
    }
    for (size_t a = 0; trace_aliases[a].name; a++) {
        if (i++ >= *at && strcasecmp(trace_aliases[a].name, name) == 0) {
            *at = i;
            return trace_aliases[a].format;
        }
    }
    return NULL;
}

bool
trace_format_exists(const char *name)
{
    size_t at = 0;

    return strchr(name, '%') || next_named(name, &at) != NULL;
}

const struct trace_format *
trace_format_find(const char *name, struct span head)
{
    const struct trace_format *format, *first;
    size_t at = 0, behind_first;

    if (strchr(name, '%'))
        return &trace_format_pattern;
    first = next_named(name, &at);
    behind_first = at;
    /* Without a second format there is nothing to choose. */
    if (!first || !next_named(name, &at))
        return first;
    at = behind_first;
    for (format = first; format; format = next_named(name, &at)) {
        if (is_format(head, format))
            return format;
    }
    return first;
}

struct span
trace_behind_mark(struct span head)
{
    struct span mark = span_str("\xef\xbb\xbf");

    return span_starts_with(head, mark) ? span_of(head.ptr + mark.len, head.len - mark.len) : head;
}

const struct trace_format *
trace_format_sniff(struct span head)
{
    const struct trace_format *best = NULL;
    struct span text = trace_behind_mark(head);
    size_t most = 0;

    for (size_t i = 0; trace_formats[i]; i++) {
        if (is_format(head, trace_formats[i]))
            return trace_formats[i];
    }
    for (size_t i = 0; trace_formats[i]; i++) {
        size_t count = trace_formats[i]->lines ? lines_count(text, trace_formats[i]->lines) : 0;

        if (count > most) {
            most = count;
            best = trace_formats[i];
        }
    }
    return best;
}
