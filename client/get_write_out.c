/*
 * --write-out of `sunproxy get`: curl's format, with the variables that the protocol can fill, and
 * some of our own.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "base/nearest.h"
#include "cli/output.h"
#include "client/exit_status.h"
#include "client/get.h"

typedef void put_variable(const struct get_answer *answer, const struct get_options *options);

/* The page of version 2; NULL if there is none. */
static const proxy_page *
page_of(const struct get_answer *answer)
{
    return answer->api == 2 && get_answer_ok(answer) ? &answer->result.v2.proxy_fetch_result_u.page
                                                     : NULL;
}

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
    static const char name[] = "content-type:";
    const proxy_page *page = page_of(answer);
    const char *at = page ? page->headers.proxy_headers_val : NULL;
    const char *end = at ? at + page->headers.proxy_headers_len : NULL;

    (void)options;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        const char *next = line_end ? line_end + 1 : end;

        if ((size_t)(next - at) >= sizeof(name) - 1 &&
            strncasecmp(at, name, sizeof(name) - 1) == 0) {
            for (at += sizeof(name) - 1; at < next && (*at == ' ' || *at == '\t');)
                at++;
            while (next > at && strchr(" \t\r\n", next[-1]))
                next--;
            put_span(span_of(at, (size_t)(next - at)));
            return;
        }
        at = next;
    }
}

static void
put_error(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    if (!get_answer_ok(answer))
        output_put(get_answer_sentence(answer));
}

static void
put_exit_code(const struct get_answer *answer, const struct get_options *options)
{
    printf("%d", get_answer_exit(answer, options));
}

static void
put_status(const struct get_answer *answer, const struct get_options *options)
{
    const proxy_page *page = page_of(answer);

    (void)options;
    printf("%03u", page ? page->http_status : 0);
}

static void
put_size(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    printf("%zu", get_answer_body(answer).len);
}

static void
put_time(const struct get_answer *answer, const struct get_options *options)
{
    (void)options;
    put_seconds((uint64_t)answer->us);
}

static void
put_time_server(const struct get_answer *answer, const struct get_options *options)
{
    const proxy_page *page = page_of(answer);

    (void)options;
    put_seconds(page ? page->total_us : 0);
}

/* 0 for a hit: what is in the cache was fetched for an earlier request. */
static void
put_time_origin(const struct get_answer *answer, const struct get_options *options)
{
    const proxy_page *page = page_of(answer);

    (void)options;
    put_seconds(page && page->source != PROXY_HIT ? page->fetch_us : 0);
}

static void
put_source(const struct get_answer *answer, const struct get_options *options)
{
    const proxy_page *page = page_of(answer);

    (void)options;
    fputs(page ? proxy_source_name(page->source) : "", stdout);
}

static void
put_age(const struct get_answer *answer, const struct get_options *options)
{
    const proxy_page *page = page_of(answer);

    (void)options;
    printf("%u", page ? page->age : 0);
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
    const proxy_page *page = page_of(answer);

    (void)options;
    if (page && page->final_url.proxy_url_len)
        put_span(span_of(page->final_url.proxy_url_val, page->final_url.proxy_url_len));
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
    {"content_type", put_content_type},
    {"errormsg", put_error},
    {"exitcode", put_exit_code},
    {"http_code", put_status},
    {"num_retries", put_retries},
    {"response_code", put_status},
    {"size_download", put_size},
    {"source", put_source},
    {"time_origin", put_time_origin},
    {"time_server", put_time_server},
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
