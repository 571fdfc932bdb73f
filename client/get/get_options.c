/*
 * The options of `sunproxy get`, and which of them go together.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/units.h"
#include "client/get/get.h"
#include "cli/output.h"
#include "http/cache_control.h"
#include "http/field.h"
#include "http/range.h"

/* ---- values ---------------------------------------------------------------------------------- */

/* "Name: value"; over HTTP also "Name:", which keeps a field from being sent, and "Name;". */
int
get_take_header(const struct option_row *row, void *field, const char *line)
{
    struct buf *headers = field;
    size_t len = strlen(line), name_len = strcspn(line, ":");

    (void)row;
    if (name_len == len && len != 0 && line[len - 1] == ';')
        name_len--;
    else if (name_len == len)
        name_len = 0;
    if (name_len == 0 || strpbrk(line, "\r\n")) {
        output_complain("a header is 'Name: value', not '%s'", line);
        return EX_USAGE;
    }
    buf_printf(headers, "%s\r\n", line);
    if (!buf_failed(headers))
        return EX_OK;
    output_complain("the headers are longer than %d bytes together", PROXY_MAX_HEADERS);
    return EX_USAGE;
}

/* row->low: enum get_data_kind. */
static int
add_data(const struct option_row *row, void *field, const char *text)
{
    if (get_data_add(field, (enum get_data_kind)row->low, text))
        return EX_OK;
    output_complain("out of memory");
    return EX_SOFTWARE;
}

static int
take_method(const struct option_row *row, void *field, const char *text)
{
    *(const char **)field = text;
    return http_is_token(span_str(text)) && strlen(text) <= PROXY_MAX_NAME
               ? EX_OK
               : options_wrong(row, "a method such as PUT", text);
}

/* One range or several, as in the field Range. */
static int
take_range(const struct option_row *row, void *field, const char *text)
{
    struct http_ranges ranges;
    struct buf line;
    bool right;

    *(const char **)field = text;
    buf_init(&line, PROXY_MAX_HEADERS);
    buf_printf(&line, "Range: bytes=%s\r\n", text);
    right =
        !strpbrk(text, "\r\n") && !buf_failed(&line) && http_ranges_read(&ranges, buf_span(&line));
    buf_free(&line);
    return right ? EX_OK : options_wrong(row, "a range of bytes such as 0-99, 100- or -50", text);
}

static int
take_seconds(const struct option_row *row, void *field, const char *text)
{
    uint64_t seconds;

    *(const char **)field = text;
    return units_parse_uint(text, 0, (uint64_t)HTTP_SECONDS_MAX, &seconds)
               ? EX_OK
               : options_wrong(row, "a number of seconds", text);
}

/* ---- the options ----------------------------------------------------------------------------- */

#define AT(field) offsetof(struct get_options, field)

static const struct option_row rows[] = {
    {"http", 0, "ADDRESS", option_text, AT(http), 0, 0, NULL,
     "fetch over HTTP from this front of the server: HOST:PORT or unix:PATH (default: the "
     "environment variable SUNPROXY_HTTP, otherwise RPC)"},
    {"output", 'o', "FILE", option_text, AT(output), 0, 0, NULL,
     "write to a file, for one URL only; into a folder, or to a name that ends in /, one file per "
     "page: 0001-example.com_index.html. A file is complete or does not exist"},
    {"remote-name", 'O', NULL, option_flag, AT(remote_name), 0, 0, NULL,
     "write each page to a file in this folder, named as the end of its URL's path"},
    {"include", 'i', NULL, option_flag, AT(include), 0, 0, NULL,
     "print status line and headers before the body"},
    {"head", 'I', NULL, option_flag, AT(head), 0, 0, NULL,
     "print status line and headers only: over HTTP with the method HEAD, over RPC with GET"},
    {"write-out", 'w', "FORMAT", get_take_write_out, AT(write_out), 0, 0, NULL,
     "print FORMAT after each page, as curl does: %{http_code}, %{size_download}, %{time_total}, "
     "%{source}, ..."},
    {"verbose", 'v', NULL, option_flag, AT(verbose), 0, 0, NULL,
     "print outcome and times of each page to standard error; over HTTP also the heads of "
     "requests and responses"},
    {"silent", 's', NULL, option_flag, AT(silent), 0, 0, NULL,
     "do not print errors for failed fetches, nor a progress line"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print one JSON object per URL, one per line, for failures too"},
    {"request", 'X', "METHOD", take_method, AT(method), 0, 0, NULL, "method of the request (HTTP)"},
    {"data", 'd', "DATA", add_data, AT(data), GET_DATA_FORM, 0, NULL,
     "send DATA with POST, or the file of @FILE without line ends, - being standard input; "
     "several are joined by & (HTTP)"},
    {"data-binary", 0, "DATA", add_data, AT(data), GET_DATA_BINARY, 0, NULL,
     "the same with the file as it is (HTTP)"},
    {"data-raw", 0, "DATA", add_data, AT(data), GET_DATA_RAW, 0, NULL,
     "the same without a meaning of @ (HTTP)"},
    {"header", 'H', "LINE", get_take_header, AT(headers), 0, 0, NULL,
     "send 'Name: value'; over RPC to the origin, past the cache; over HTTP 'Name:' removes a "
     "field, and 'Name;' sends an empty one"},
    {"range", 'r', "RANGE", take_range, AT(range), 0, 0, NULL,
     "only these bytes: 0-99, 100- or -50 (HTTP)"},
    {"max-age", 0, "SECONDS", take_seconds, AT(max_age), 0, 0, NULL,
     "take no stored response that is older than SECONDS (HTTP)"},
    {"only-if-cached", 0, NULL, option_flag, AT(only_if_cached), 0, 0, NULL,
     "take only a stored response; exit status 79 without one (HTTP)"},
    {"no-cache", 0, NULL, option_flag, AT(no_cache), 0, 0, NULL,
     "take a stored response only after the origin has confirmed it (HTTP)"},
    {"no-store", 0, NULL, option_flag, AT(no_store), 0, 0, NULL,
     "bypass the cache and store nothing"},
    {"fail", 'f', NULL, option_flag, AT(fail), 0, 0, NULL,
     "an HTTP status of 400 or more is a failure: no body, exit status 22"},
    {"location", 'L', NULL, option_flag, AT(location), 0, 0, NULL,
     "follow redirects; over RPC the server follows them in any case"},
    {"retry", 0, "N", option_uint, AT(retry), 0, 1000, "0",
     "repeat up to N times after a timeout, an overload, or HTTP status 408, 429, 500, 502, 503 "
     "or 504; after 1 s, then twice as long each time, up to 64 s"},
    {"jobs", 'j', "N", option_uint, AT(jobs), 1, 1024, "8",
     "number of concurrent requests, over RPC on one connection"},
    {"api", 0, "1|2", option_choice, AT(api), 1, 0, NULL,
     "version of the protocol over RPC (default: 2)"},
    {0},
};

const struct option_group get_option_group = {.rows = rows, .hints = get_curl_options};

/* ---- combinations ---------------------------------------------------------------------------- */

/* A given option, and the name to complain about. */
struct given {
    bool is;
    const char *name;
};

/* The names of the given ones, as "--data and --range". Empty: none is given. */
static const char *
list_given(const struct given *options, char *text, size_t size)
{
    size_t len = 0, left = 0;

    for (const struct given *each = options; each->name; each++)
        left += each->is;
    *text = '\0';
    for (const struct given *each = options; each->name && len < size; each++)
        if (each->is) {
            left--;
            len += (size_t)snprintf(text + len, size - len, "%s%s", each->name,
                                    left > 1    ? ", "
                                    : left == 1 ? " and "
                                                : "");
        }
    return text;
}

static bool
has_line_without_colon(const struct get_options *options)
{
    struct span rest = buf_span(&options->headers), line;

    while (http_next_line(&rest, &line))
        if (!memchr(line.ptr, ':', line.len))
            return true;
    return false;
}

static bool
check_rpc(struct get_options *options)
{
    char names[256];
    const struct given needs_http[] = {
        {options->method != NULL, "--request"},
        {options->data.count != 0, "--data"},
        {options->range != NULL, "--range"},
        {options->max_age != NULL, "--max-age"},
        {options->only_if_cached, "--only-if-cached"},
        {options->no_cache, "--no-cache"},
        {has_line_without_colon(options), "--header 'Name;'"},
        {false, NULL},
    };

    if (options->api == 0)
        options->api = 2;
    if (*list_given(needs_http, names, sizeof(names))) {
        output_complain("the RPC protocol has no %s: name the server's HTTP front with --http "
                        "HOST:PORT or --http unix:PATH",
                        names);
        return false;
    }
    if (options->api == 1 && (options->include || options->head || options->no_store ||
                              options->fail || options->headers.len != 0)) {
        output_complain("version 1 of the protocol has neither headers nor statuses nor flags: "
                        "--include, --head, --header, --no-store and --fail need --api 2");
        return false;
    }
    return true;
}

static bool
check_http(const struct get_options *options)
{
    char names[128];
    const struct given of_rpc[] = {
        {options->server.socket != NULL, "--socket"},
        {options->server.host != NULL, "--host"},
        {options->server.port != 0, "--port"},
        {options->api != 0, "--api"},
        {false, NULL},
    };

    if (*list_given(of_rpc, names, sizeof(names))) {
        output_complain("--http names the server: %s cannot be given with it", names);
        return false;
    }
    if (options->head && options->data.count != 0) {
        output_complain("--head sends no data: --data cannot be given with it");
        return false;
    }
    if (options->data.uses_stdin && options->retry != 0) {
        output_complain("--retry cannot send standard input again: give --data a file");
        return false;
    }
    return true;
}

/* SUNPROXY_HTTP counts if the command line names no server. */
static void
apply_environment(struct get_options *options)
{
    const char *text = getenv("SUNPROXY_HTTP");

    if (!options->http && !options->server.socket && !options->server.host &&
        options->server.port == 0 && options->api == 0 && text && *text)
        options->http = text;
}

bool
get_check_options(struct get_options *options)
{
    apply_environment(options);
    if (options->http ? !check_http(options) : !check_rpc(options))
        return false;
    if (options->json && (options->include || options->head)) {
        output_complain("--json prints status and headers: --include and --head do not go with it");
        return false;
    }
    if (options->json && options->write_out) {
        output_complain("--json prints what --write-out can: only one of them can be given");
        return false;
    }
    if (options->output && options->remote_name) {
        output_complain("--output and --remote-name exclude each other");
        return false;
    }
    return true;
}
