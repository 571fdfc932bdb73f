/*
 * sunproxy explain: what a running server would do with a request, and why.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/output.h"
#include "client/admin.h"
#include "client/commands.h"
#include "client/connect.h"
#include "client/explain_lines.h"
#include "client/get/get.h"

struct explain_options {
    struct server_options server;
    const char *method;
    struct buf headers;
    uint64_t last;
    const char *user;
    bool json;
};

#define AT(field) offsetof(struct explain_options, field)

static const struct option_row rows[] = {
    {"header", 'H', "LINE", get_take_header, AT(headers), 0, 0, NULL,
     "a header 'Name: value' of the request; may be repeated"},
    {"request", 'X', "METHOD", option_text, AT(method), 1, PROXY_MAX_NAME, NULL,
     "its method (default: GET)"},
    {"user", 0, "NAME", option_text, AT(user), 1, 255, NULL,
     "the user of the forward proxy that sends it"},
    {"last", 0, "N", option_uint, AT(last), 0, 64, "0",
     "also the last N requests for the URL that were no hits"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print an array of JSON objects with one member each"},
    {0},
};

static const struct option_group own = {.rows = rows};

static void
print_json(char *text)
{
    struct json json;
    struct buf out;

    buf_init(&out, (size_t)1 << 20);
    json_init(&json, &out);
    explain_json(&json, NULL, text);
    output_put(buf_str(&out));
    putchar('\n');
    buf_free(&out);
}

static int
ask(const struct explain_options *options, char *url)
{
    static char get[] = "";
    proxy_explain_args args = {
        .method = options->method ? (char *)(uintptr_t)options->method : get,
        .url = {.proxy_url_val = url, .proxy_url_len = (u_int)strlen(url)},
        .headers = {.proxy_headers_val = options->headers.data,
                    .proxy_headers_len = (u_int)options->headers.len},
        .last = (u_int)options->last,
    };
    struct server server;
    char *text;
    int status;
    struct rpc_client *client = server_find(&options->server, SERVER_ADMIN, &server, &status);

    if (!client)
        return status;
    status = admin_explain(client, options->server.timeout_us, &args, &text);
    rpc_client_close(client);
    if (status != EX_OK)
        return status;
    if (options->json)
        print_json(text);
    else
        explain_print(text);
    free(text);
    return EX_OK;
}

static int
explain(int argc, char **argv)
{
    struct explain_options options = {.json = false};
    void *const into[] = {&options, &options.server};
    int status;

    buf_init(&options.headers, PROXY_MAX_HEADERS);
    status = command_read(&command_explain, into, argc, argv);
    if (status == COMMAND_GO_ON && options.user)
        buf_printf(&options.headers, "Explain-User: %s\r\n", options.user);
    if (status == COMMAND_GO_ON)
        status = argc - optind == 1 ? ask(&options, argv[optind]) : command_usage(&command_explain);
    buf_free(&options.headers);
    return status;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "what a running server would do with a request, and why",
    .about = "usage: sunproxy explain [OPTION...] URL\n\n"
             "Prints the members of the origin, the rules that match, the key, what is stored,\n"
             "and whether the request would be a hit, or why not. Nothing is fetched or\n"
             "changed. For administrators, over the AF_UNIX socket.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage, or a URL that the server does not serve;\n"
             "69 no server; 74 output could not be written; 75 no answer in time;\n"
             "77 permission denied.\n",
    .most = 1,
    .run = explain,
};
