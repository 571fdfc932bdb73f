/*
 * --write-out of `sunproxy get`: curl's format, with the variables that both protocols or one of
 * them can fill, and some of our own. What is not known is empty or 0.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/nearest.h"
#include "cli/output.h"
#include "client/exit_status.h"
#include "client/get/get_request.h"

typedef void put_variable(const struct get_answer *answer, const struct get_options *options);

static void
put_span(struct span text)
{
    char *copy = strndup(text.ptr ? text.ptr : "", text.len);

    output_put(copy ? copy : "");
    free(copy);
}

static void
put_seconds(uint64_t us)
{
    printf("%" PRIu64 ".%06" PRIu64, us / 1000000, us % 1000000);
}

static void
put_content_type(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_span(get_answer_field(answer, "Content-Type"));
}

static void
put_error(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    if (answer->failure.status != EX_OK)
        output_put(answer->failure.sentence);
}

static void
put_exit_code(const struct get_answer *answer, const struct get_options *options)
{
    printf("%d", get_answer_exit(answer, options));
}

static void
put_status(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%03u", answer->page.status);
}

static void
put_method(const struct get_answer *answer, const struct get_options *options)
{
    (void)answer;
    fputs(options->http ? get_request_method(options) : "GET", stdout);
}

static void
put_size(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%" PRIu64, answer->size);
}

static void
put_size_header(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%" PRIu64, answer->page.head_bytes);
}

static void
put_size_upload(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%" PRIu64, answer->sent);
}

static void
put_speed(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%.0f", answer->us > 0 ? (double)answer->size * 1e6 / (double)answer->us : 0.0);
}

static void
put_time(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_seconds((uint64_t)answer->us);
}

static void
put_time_head(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_seconds((uint64_t)answer->head_us);
}

static void
put_time_server(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_seconds(answer->page.total_us);
}

/* 0 for a hit: what is in the cache was fetched for an earlier request. */
static void
put_time_origin(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_seconds(answer->page.source != PROXY_HIT ? answer->page.fetch_us : 0);
}

static void
put_source(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    if (answer->page.source != GET_SOURCE_UNKNOWN)
        fputs(proxy_source_name((proxy_source)answer->page.source), stdout);
}

static void
put_cache_status(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    output_put(buf_str(&answer->page.cache_status));
}

static void
put_age(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%u", answer->page.age);
}

static void
put_redirects(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%u", answer->page.redirects);
}

static void
put_retries(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%u", answer->retries);
}

static void
put_url(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    output_put(answer->url);
}

static void
put_url_effective(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    if (answer->page.final_url.len)
        put_span(buf_span(&answer->page.final_url));
    else
        output_put(answer->url);
}

static void
put_url_number(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%zu", answer->number - 1); /* from 0, as curl does */
}

static const struct variable {
    const char *name;
    put_variable *put;
} variables[] = {
    {"age", put_age},
    {"cache_status", put_cache_status},
    {"content_type", put_content_type},
    {"errormsg", put_error},
    {"exitcode", put_exit_code},
    {"http_code", put_status},
    {"method", put_method},
    {"num_redirects", put_redirects},
    {"num_retries", put_retries},
    {"response_code", put_status},
    {"size_download", put_size},
    {"size_header", put_size_header},
    {"size_upload", put_size_upload},
    {"source", put_source},
    {"speed_download", put_speed},
    {"time_origin", put_time_origin},
    {"time_server", put_time_server},
    {"time_starttransfer", put_time_head},
    {"time_total", put_time},
    {"url", put_url},
    {"url_effective", put_url_effective},
    {"urlnum", put_url_number},
};

#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* The variable of "%{name}" at `at`, whose length goes into *len. NULL: none of ours. */
static const struct variable *
find_variable(const char *at, size_t *len)
{
    const char *end = strchr(at, '}');

    *len = end ? (size_t)(end - at) + 1 : 0;
    for (size_t i = 0; end && i < VARIABLES; i++)
        if (strlen(variables[i].name) == *len - 3 &&
            strncmp(variables[i].name, at + 2, *len - 3) == 0)
            return &variables[i];
    return NULL;
}

int
get_take_write_out(const struct option_row *row, void *field, const char *text)
{
    *(const char **)field = text;
    if (*text == '@')
        return options_wrong(row, "a format, which is not read from a file", text);
    for (const char *at = strstr(text, "%{"); at; at = strstr(at + 1, "%{")) {
        size_t len;

        if ((at > text && at[-1] == '%') || find_variable(at, &len))
            continue;
        if (len == 0)
            return options_wrong(row, "a format with a '}' behind each '%{'", text);

        char name[64], ask[80];
        struct nearest nearest = NEAREST_TO(name);

        snprintf(name, sizeof(name), "%.*s", (int)len - 3, at + 2);
        for (size_t i = 0; i < VARIABLES; i++)
            nearest_offer(&nearest, variables[i].name);
        output_complain("--%s: unknown variable '%s'%s", row->name, name,
                        nearest_ask(&nearest, ask, sizeof(ask)));
        return EX_USAGE;
    }
    return EX_OK;
}

void
get_write_out(const struct get_answer *answer, const struct get_options *options)
{
    static const char escapes[] = "n\nt\tr\r\\\\";

    for (const char *at = options->write_out; *at;) {
        const struct variable *variable;
        const char *escape;
        size_t len;

        if (at[0] == '%' && at[1] == '{' && (variable = find_variable(at, &len))) {
            variable->put(answer, options);
            at += len;
        } else if (at[0] == '%' && at[1] == '%') {
            putchar('%');
            at += 2;
        } else if (at[0] == '\\' && at[1] && (escape = strchr(escapes, at[1])) &&
                   (escape - escapes) % 2 == 0) {
            putchar(escape[1]);
            at += 2;
        } else {
            putchar(*at++);
        }
    }
}
