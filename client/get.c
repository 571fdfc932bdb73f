/*
 * sunproxy get: fetches pages through the server.
 */
#include "client/get.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/units.h"
#include "client/exit_status.h"
#include "cli/output.h"
#include "client/commands.h"

enum { OPTION_API = SERVER_OPTION_END, OPTION_JSON, OPTION_NO_STORE, OPTION_FAIL };

static const struct option longs[] = {
    {"output", required_argument, NULL, 'o'},
    {"include", no_argument, NULL, 'i'},
    {"verbose", no_argument, NULL, 'v'},
    {"silent", no_argument, NULL, 's'},
    {"header", required_argument, NULL, 'H'},
    {"jobs", required_argument, NULL, 'j'},
    {"api", required_argument, NULL, OPTION_API},
    {"json", no_argument, NULL, OPTION_JSON},
    {"no-store", no_argument, NULL, OPTION_NO_STORE},
    {"fail", no_argument, NULL, OPTION_FAIL},
    SERVER_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

static bool
add_header(struct get_options *options, const char *line)
{
    const char *colon = strchr(line, ':');

    if (!colon || colon == line || strpbrk(line, "\r\n")) {
        output_complain("a header is 'Name: value', not '%s'", line);
        return false;
    }
    buf_printf(&options->headers, "%s\r\n", line);
    if (buf_failed(&options->headers))
        output_complain("the headers are longer than %d bytes together", PROXY_MAX_HEADERS);
    return !buf_failed(&options->headers);
}

static bool
take_number(const char *name, const char *text, uint64_t high, unsigned *into)
{
    uint64_t number;

    if (!units_parse_uint(text, 1, high, &number)) {
        output_complain("%s is a number from 1 to %u, not '%s'", name, (unsigned)high, text);
        return false;
    }
    *into = (unsigned)number;
    return true;
}

/* One option; false after a complaint. */
static bool
take_option(struct get_options *options, int option, const char *argument)
{
    switch (option) {
    case 'o':
        options->output = argument;
        return true;
    case 'i':
        options->include = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    case 's':
        options->silent = true;
        return true;
    case 'H':
        return add_header(options, argument);
    case 'j':
        return take_number("--jobs", argument, 1024, &options->jobs);
    case OPTION_API:
        return take_number("--api", argument, 2, &options->api);
    case OPTION_JSON:
        options->json = true;
        return true;
    case OPTION_NO_STORE:
        options->no_store = true;
        return true;
    case OPTION_FAIL:
        options->fail = true;
        return true;
    default:
        return server_option(&options->server, option, argument) > 0;
    }
}

/* Do the options go together? */
static bool
check_options(struct get_options *options)
{
    if (options->api == 1 &&
        (options->include || options->no_store || options->fail || options->headers.len != 0)) {
        output_complain("version 1 of the protocol knows neither headers nor statuses nor flags: "
                        "--include, --header, --no-store and --fail need --api 2");
        return false;
    }
    if (options->json && options->include) {
        output_complain("--json has status and headers in it: --include does not go with it");
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
            output_complain("standard input is no list of URLs: line of more than %u bytes after "
                            "%zu of them",
                            URL_LIST_MOST_LINE, urls->count);
            return EX_DATAERR;
        }
        if (error == EINVAL) {
            output_complain("standard input is no list of URLs: line with a zero byte after %zu of "
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

/* Is -o a file or a folder? A name that ends in '/' is a folder, made if it is not there. */
static int
prepare_output(struct get_options *options, size_t url_count)
{
    size_t len = options->output ? strlen(options->output) : 0;
    struct stat there;
    bool wants_folder;

    if (!options->output)
        return EX_OK;
    if (strcmp(options->output, "-") == 0) {
        options->output = NULL;
        return EX_OK;
    }
    wants_folder = len != 0 && options->output[len - 1] == '/';
    if (wants_folder && mkdir(options->output, 0777) != 0 && errno != EEXIST) {
        output_complain("cannot make the folder %s: %s", options->output, strerror(errno));
        return EX_CANTCREAT;
    }
    options->output_is_folder = stat(options->output, &there) == 0 && S_ISDIR(there.st_mode);
    if (wants_folder && !options->output_is_folder) {
        output_complain("%s: %s", options->output, strerror(ENOTDIR));
        return EX_CANTCREAT;
    }
    if (!options->output_is_folder && url_count > 1) {
        output_complain("%zu pages do not go into one file: give a folder, --output %s/", url_count,
                        options->output);
        return EX_USAGE;
    }
    return EX_OK;
}

/* Standard error has said more; --json says this for each URL, or once without one. */
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

    if (client)
        return get_run(client, &server, options, urls);
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
        url_list_free(&urls);
        return fail(status, "no_urls", "the list of URLs cannot be read", options, &urls);
    }
    status = prepare_output(options, urls.count);
    if (status != EX_OK) {
        options->output = NULL;
        status = fail(status, "no_output", "the pages cannot be written there", options, &urls);
    } else if (urls.count != 0) { /* An empty list is done before it begins. */
        status = ask_server(options, &urls);
    }
    url_list_free(&urls);
    return status;
}

static int
wrong_usage(struct get_options *options)
{
    static const struct url_list none = {.urls = NULL};

    options->output = NULL;
    command_usage(&command_get);
    return fail(EX_USAGE, "usage", "the command line is wrong", options, &none);
}

static int
get(int argc, char **argv)
{
    struct get_options options = {.server = SERVER_OPTIONS_DEFAULT, .api = 2, .jobs = 8};
    int option, status = EX_OK;
    bool good = true;

    buf_init(&options.headers, PROXY_MAX_HEADERS);
    while (good && (option = getopt_long(argc, argv, "o:ivsH:j:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP) {
            buf_free(&options.headers);
            return command_help(&command_get);
        }
        good = take_option(&options, option, optarg);
    }
    if (good && optind == argc) {
        output_complain("a URL is missing");
        good = false;
    }
    if (good && check_options(&options))
        status = fetch_all(&options, argc - optind, argv + optind);
    else
        status = wrong_usage(&options);
    buf_free(&options.headers);
    return status;
}

const struct command command_get = {
    .name = "get",
    .summary = "fetch pages",
    .help = "usage: sunproxy get [OPTION...] URL...\n\n"
            "Fetches pages through the server and writes them to standard output, in the\n"
            "order asked for. '-' reads URLs from standard input, one a line; lines that\n"
            "begin with # are left out. A URL without a scheme is taken as http.\n\n"
            "  -o, --output FILE    write there; a folder, or a name that ends in /, gets a\n"
            "                       file a page: 0001-example.com_index.html. A file takes\n"
            "                       one URL only. Nothing half is ever left\n"
            "  -i, --include        status line and headers in front of the body\n"
            "  -v, --verbose        outcome and times of each page on standard error\n"
            "  -s, --silent         no messages about pages that could not be had\n"
            "      --json           one object a URL, on a line of its own; of a failure, too\n"
            "  -H, --header LINE    'Name: value' for the origin; goes past the cache\n"
            "      --no-store       go past the cache, and store nothing\n"
            "      --fail           an HTTP status of 400 or more is a failure: no body,\n"
            "                       status 22\n"
            "  -j, --jobs N         so many at a time over one connection (default: 8)\n"
            "      --api 1|2        version of the protocol (default: 2)\n"
            "  -h, --help           this text\n\n" SERVER_OPTIONS_HELP "\n"
            "Exit status: 0 all is well; 22 HTTP error with --fail; 64 wrong usage or bad\n"
            "URL; 68 host not found; 69 no server, or lost; 70 internal; 74 output could not\n"
            "be written; 75 try again later; 76 the origin could not be reached or broke the\n"
            "protocol; 77 denied. Of several failures, that of the first URL in the order\n"
            "asked for; but 69 and 74 end everything at once. Version 1 tells a bad URL (64)\n"
            "from everything else (76), no more.\n",
    .run = get,
};
