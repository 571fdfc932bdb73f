/*
 * sunproxy get: fetches pages through the server.
 */
#include "client/get/get_transport.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "client/exit_status.h"
#include "cli/output.h"
#include "client/commands.h"

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
    const struct get_failure failure = {.status = status, .code = code, .sentence = sentence};

    return get_fail(&failure, options, urls);
}

static int
ask_server(const struct get_options *options, const struct url_list *urls)
{
    char name[320];
    struct get_failure failure = {.status = EX_OK};
    struct get_transport *transport = options->http
                                          ? get_http_open(options, name, sizeof(name), &failure)
                                          : get_rpc_open(options, name, sizeof(name), &failure);
    int status;

    if (!transport)
        return get_fail(&failure, options, urls);
    status = get_run(&transport, name, options, urls);
    if (transport)
        transport->close(transport);
    return status;
}

/* Standard input can be the list of URLs or the data, and is read once. */
static int
check_stdin(const struct get_options *options, const struct url_list *urls, bool lists)
{
    if (!options->data.uses_stdin || (!lists && urls->count == 1))
        return EX_OK;
    output_complain(lists ? "standard input is the list of URLs, so it cannot be the data"
                          : "standard input can be sent to one URL only: give --data a file");
    return EX_USAGE;
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
fetch_all(struct get_options *options, int argc, char **argv)
{
    struct url_list urls = {.urls = NULL};
    bool lists = false;
    int status;

    for (int i = 0; i < argc; i++)
        lists |= strcmp(argv[i], "-") == 0;
    status = options->data.uses_stdin && lists ? EX_OK : collect_urls(&urls, argc, argv);
    if (status != EX_OK) {
        options->output = NULL;
        options->remote_name = false;
        url_list_free(&urls);
        return fail(status, "no_urls", "the list of URLs cannot be read", options, &urls);
    }
    status = check_stdin(options, &urls, lists);
    if (status != EX_OK) {
        url_list_free(&urls);
        return wrong_usage(options, status);
    }
    status = get_data_prepare(&options->data);
    if (status != EX_OK) {
        status = fail(status, "unreadable_data", "the data cannot be read", options, &urls);
        url_list_free(&urls);
        return status;
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
get(int argc, char **argv)
{
    struct get_options options = {0};
    void *const into[] = {&options, &options.server};
    int status;

    buf_init(&options.headers, PROXY_MAX_HEADERS);
    status = command_read(&command_get, into, argc, argv);
    if (status == COMMAND_GO_ON && get_check_options(&options))
        status = fetch_all(&options, argc - optind, argv + optind);
    else if (status == COMMAND_GO_ON)
        status = wrong_usage(&options, command_usage(&command_get));
    else if (status != EX_OK)
        status = wrong_usage(&options, status);
    buf_free(&options.headers);
    get_data_free(&options.data);
    return status;
}

const struct command command_get = {
    .name = "get",
    .summary = "fetch pages",
    .about = "usage: sunproxy get [OPTION...] URL...\n\n"
             "Fetches pages through the server, over ONC RPC or with --http over HTTP, and\n"
             "writes them to standard output in the order of the URLs. '-' reads URLs from\n"
             "standard input, one per line; lines that begin with # are ignored. A URL\n"
             "without a scheme is taken as http. Options are named as in curl where they\n"
             "do the same; those marked (HTTP) need --http.\n",
    .options = {&get_option_group, &server_option_group},
    .after = "Exit status: 0 success; 22 HTTP error with --fail; 64 wrong usage or bad URL;\n"
             "65 a page that is not text and would go to a terminal; 66 data cannot be read;\n"
             "68 host not found; 69 no server, or lost; 70 internal; 74 output could not be\n"
             "written; 75 try again later; 76 the origin could not be reached or broke the\n"
             "protocol; 77 denied; 79 not in the cache, with --only-if-cached. Over HTTP the\n"
             "server reports a failure of its own or of an origin as an HTTP status. Of\n"
             "several failures, that of the first URL in the order of the URLs; but 69 and\n"
             "74 end the run at once. Version 1 of the RPC protocol only distinguishes a bad\n"
             "URL (64) from everything else (76).\n",
    .argument = "URL",
    .least = 1,
    .most = COMMAND_MANY,
    .run = get,
};
