/*
 * sunproxy get: fetches pages through the server.
 */
#include "client/get.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "client/exit_status.h"
#include "cli/output.h"
#include "client/commands.h"

static int
add_header(const struct option_row *row, void *field, const char *line)
{
    struct buf *headers = field;
    const char *colon = strchr(line, ':');

    (void)row;
    if (!colon || colon == line || strpbrk(line, "\r\n")) {
        output_complain("a header is 'Name: value', not '%s'", line);
        return EX_USAGE;
    }
    buf_printf(headers, "%s\r\n", line);
    if (!buf_failed(headers))
        return EX_OK;
    output_complain("the headers are longer than %d bytes together", PROXY_MAX_HEADERS);
    return EX_USAGE;
}

#define AT(field) offsetof(struct get_options, field)

static const struct option_row rows[] = {
    {"output", 'o', "FILE", option_text, AT(output), 0, 0, NULL,
     "write to a file, for one URL only; into a folder, or to a name that ends in /, one file per "
     "page: 0001-example.com_index.html. A file is complete or does not exist"},
    {"remote-name", 'O', NULL, option_flag, AT(remote_name), 0, 0, NULL,
     "write each page to a file in this folder, named as the end of its URL's path"},
    {"include", 'i', NULL, option_flag, AT(include), 0, 0, NULL,
     "print status line and headers before the body"},
    {"head", 'I', NULL, option_flag, AT(head), 0, 0, NULL,
     "print status line and headers only; the page is fetched with GET"},
    {"write-out", 'w', "FORMAT", get_take_write_out, AT(write_out), 0, 0, NULL,
     "print FORMAT after each page, as curl does: %{http_code}, %{size_download}, %{time_total}, "
     "%{source}, ..."},
    {"verbose", 'v', NULL, option_flag, AT(verbose), 0, 0, NULL,
     "print outcome and times of each page to standard error"},
    {"silent", 's', NULL, option_flag, AT(silent), 0, 0, NULL,
     "do not print errors for failed fetches"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print one JSON object per URL, one per line, for failures too"},
    {"header", 'H', "LINE", add_header, AT(headers), 0, 0, NULL,
     "send 'Name: value' to the origin; bypasses the cache"},
    {"no-store", 0, NULL, option_flag, AT(no_store), 0, 0, NULL,
     "bypass the cache and store nothing"},
    {"fail", 'f', NULL, option_flag, AT(fail), 0, 0, NULL,
     "an HTTP status of 400 or more is a failure: no body, exit status 22"},
    {"location", 'L', NULL, option_flag, AT(location), 0, 0, NULL,
     "no effect: the server always follows redirects"},
    {"retry", 0, "N", option_uint, AT(retry), 0, 1000, "0",
     "repeat up to N times after a timeout, an overload, or HTTP status 408, 429, 500, 502, 503 "
     "or 504; after 1 s, then twice as long each time, up to 64 s"},
    {"jobs", 'j', "N", option_uint, AT(jobs), 1, 1024, "8",
     "number of concurrent requests over one connection"},
    {"api", 0, "1|2", option_choice, AT(api), 1, 0, "2", "version of the protocol"},
    {0},
};

static const struct option_group own = {.rows = rows, .hints = get_curl_options};

/* False after a complaint about options that exclude each other. */
static bool
check_options(struct get_options *options)
{
    if (options->api == 1 && (options->include || options->head || options->no_store ||
                              options->fail || options->headers.len != 0)) {
        output_complain("version 1 of the protocol has neither headers nor statuses nor flags: "
                        "--include, --head, --header, --no-store and --fail need --api 2");
        return false;
    }
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

static int
collect_urls(struct url_list *urls, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int error;

        if (strcmp(argv[i], "-") != 0) {
            if (!url_list_add(urls, argv[i])) {
                output_complain("out of memory");
                return EX_SOFTWARE;
            }
            continue;
        }
        error = url_list_read(urls, stdin);
        if (error == EMSGSIZE) {
            output_complain(
                "standard input is not a list of URLs: line of more than %u bytes after "
                "%zu of them",
                URL_LIST_MOST_LINE, urls->count);
            return EX_DATAERR;
        }
        if (error == EINVAL) {
            output_complain(
                "standard input is not a list of URLs: line with a zero byte after %zu of "
                "them",
                urls->count);
            return EX_DATAERR;
        }
        if (error) {
            output_complain("cannot read standard input: %s", strerror(error));
            return error == ENOMEM ? EX_SOFTWARE : EX_NOINPUT;
        }
    }
    return EX_OK;
}

static bool
check_remote_names(const struct url_list *urls)
{
    for (size_t i = 0; i < urls->count; i++)
        if (get_remote_name(urls->urls[i]).len == 0) {
            output_complain("%s: its path does not end in a name for a file: use --output",
                            urls->urls[i]);
            return false;
        }
    return true;
}

/* Finds out whether -o is a file or a folder, and creates a folder if the name ends in '/'. */
static int
prepare_output(struct get_options *options, const struct url_list *urls)
{
    size_t len = options->output ? strlen(options->output) : 0;
    struct stat there;
    bool wants_folder;

    if (!options->output)
        return !options->remote_name || check_remote_names(urls) ? EX_OK : EX_USAGE;
    if (strcmp(options->output, "-") == 0) {
        options->output = NULL;
        options->any_bytes = true;
        return EX_OK;
    }
    wants_folder = len != 0 && options->output[len - 1] == '/';
    if (wants_folder && mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        output_complain("cannot create the folder %s: %s", options->output, strerror(errno));
        return EX_CANTCREAT;
    }
    options->output_is_folder = stat(options->output, &there) == 0 && S_ISDIR(there.st_mode);
    if (wants_folder && !options->output_is_folder) {
        output_complain("%s: %s", options->output, strerror(ENOTDIR));
        return EX_CANTCREAT;
    }
    if (!options->output_is_folder && urls->count > 1) {
        output_complain("cannot write %zu pages to one file: give a folder, --output %s/",
                        urls->count, options->output);
        return EX_USAGE;
    }
    return EX_OK;
}

/* Standard error has the details; --json prints this for each URL, or once without one. */
static int
fail(int status, const char *code, const char *sentence, const struct get_options *options,
     const struct url_list *urls)
{
    const struct get_failure failure = {status, code, sentence};

    return get_fail(&failure, options, urls);
}

static int
ask_server(const struct get_options *options, const struct url_list *urls)
{
    struct server server;
    int status;
    struct rpc_client *client = server_find(&options->server, SERVER_ANY, &server, &status);

    if (client) {
        status = get_run(&client, &server, options, urls);
        rpc_client_close(client);
        return status;
    }
    if (status == EX_USAGE)
        return fail(status, "usage", "SUNPROXY_SERVER names no server", options, urls);
    return fail(status, rpc_status_name(RPC_CLIENT_UNREACHABLE),
                rpc_client_strstatus(RPC_CLIENT_UNREACHABLE), options, urls);
}

static int
fetch_all(struct get_options *options, int argc, char **argv)
{
    struct url_list urls = {.urls = NULL};
    int status = collect_urls(&urls, argc, argv);

    if (status != EX_OK) {
        options->output = NULL;
        options->remote_name = false;
        url_list_free(&urls);
        return fail(status, "no_urls", "the list of URLs cannot be read", options, &urls);
    }
    status = prepare_output(options, &urls);
    if (status != EX_OK) {
        options->output = NULL;
        options->remote_name = false;
        status =
            fail(status, "no_output", "the pages cannot be written to that place", options, &urls);
    } else if (urls.count != 0) { /* for an empty list there is nothing to do */
        status = ask_server(options, &urls);
    }
    url_list_free(&urls);
    return status;
}

static int
wrong_usage(struct get_options *options, int status)
{
    static const struct url_list none = {.urls = NULL};

    options->output = NULL;
    options->remote_name = false;
    return fail(status, "usage", "the command line is wrong", options, &none);
}

static int
get(int argc, char **argv)
{
    struct get_options options = {0};
    void *const into[] = {&options, &options.server};
    int status;

    buf_init(&options.headers, PROXY_MAX_HEADERS);
    status = command_read(&command_get, into, argc, argv);
    if (status == COMMAND_GO_ON && check_options(&options))
        status = fetch_all(&options, argc - optind, argv + optind);
    else if (status == COMMAND_GO_ON)
        status = wrong_usage(&options, command_usage(&command_get));
    else if (status != EX_OK)
        status = wrong_usage(&options, status);
    buf_free(&options.headers);
    return status;
}

const struct command command_get = {
    .name = "get",
    .summary = "fetch pages",
    .about = "usage: sunproxy get [OPTION...] URL...\n\n"
             "Fetches pages through the server and writes them to standard output, in the\n"
             "order of the URLs. '-' reads URLs from standard input, one per line; lines\n"
             "that begin with # are ignored. A URL without a scheme is taken as http.\n"
             "Options are named as in curl where they do the same.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 success; 22 HTTP error with --fail; 64 wrong usage or bad\n"
             "URL; 68 host not found; 69 no server, or lost; 70 internal; 74 output could not\n"
             "be written; 75 try again later; 76 the origin could not be reached or broke the\n"
             "protocol; 77 denied. Of several failures, that of the first URL in the order\n"
             "of the URLs; but 69 and 74 end the run at once. Version 1 only distinguishes\n"
             "a bad URL (64) from everything else (76).\n",
    .argument = "URL",
    .least = 1,
    .most = COMMAND_MANY,
    .run = get,
};
