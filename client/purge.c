/*
 * sunproxy purge: removes pages from the cache of a running server.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "client/admin.h"
#include "client/connect.h"
#include "cli/output.h"
#include "client/commands.h"

enum { NOTHING_PURGED = 1 }; /* an exit status */

struct purge_options {
    struct server_options server;
    const char *prefix;
    const char *tag;
    bool all;
    bool dry_run;
    bool json;
};

#define AT(field) offsetof(struct purge_options, field)

static const struct option_row rows[] = {
    {"prefix", 0, "PREFIX", option_text, AT(prefix), 0, 0, NULL,
     "every page whose URL begins with PREFIX"},
    {"tag", 0, "TAG", option_text, AT(tag), 0, 0, NULL, "every page that has this tag"},
    {"all", 0, NULL, option_flag, AT(all), 0, 0, NULL, "every page"},
    {"dry-run", 'n', NULL, option_flag, AT(dry_run), 0, 0, NULL,
     "remove nothing; print the number of pages that would be removed"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print {\"purged\":N,\"more\":false,\"dry_run\":false}"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* rpcgen has no const. */
static proxy_purge_args
args_of(proxy_purge_kind kind, const char *url)
{
    return (proxy_purge_args){.kind = kind,
                              .url = {.proxy_url_val = (char *)(uintptr_t)url,
                                      .proxy_url_len = url ? (u_int)strlen(url) : 0}};
}

static int
purge_one(struct rpc_client *client, const struct purge_options *options, proxy_purge_kind kind,
          const char *url, struct admin_purged *purged)
{
    proxy_purge_args args = args_of(kind, url);
    struct admin_purged one = {.count = 0};
    int status = admin_purge(client, options->server.timeout_us, &args, options->dry_run, &one);

    purged->count += one.count;
    purged->more = purged->more || one.more;
    purged->here = purged->here || one.here;
    return status;
}

/* True if an earlier argument is the same: a real run would have removed the page by then. */
static bool
is_repeated(const struct purge_options *options, char **urls, int number)
{
    for (int i = 0; options->dry_run && i < number; i++)
        if (strcmp(urls[i], urls[number]) == 0)
            return true;
    return false;
}

static void
print(const struct purge_options *options, const struct admin_purged *purged)
{
    if (options->json)
        printf("{\"purged\":%" PRIu64 ",\"more\":%s,\"dry_run\":%s}\n", purged->count,
               purged->more ? "true" : "false", options->dry_run ? "true" : "false");
    else
        printf("%" PRIu64 " %s%s %s%s\n", purged->count, purged->count == 1 ? "page" : "pages",
               purged->more ? " in memory, and those that are not in memory," : "",
               options->dry_run ? "would be purged" : "purged",
               options->dry_run ? " (dry run)" : "");
}

/* Nothing was counted: is that an error? */
static int
judge_none(const struct purge_options *options, const struct admin_purged *purged)
{
    if (purged->more || options->all)
        return EX_OK;
    output_complain(options->tag ? "no page has that tag"
                                 : "no page with such a URL is stored; a URL is that of the "
                                   "client's request");
    return NOTHING_PURGED;
}

/* Purges the URLs on the command line, or what the options name. */
static int
purge_all(const struct purge_options *options, char **urls, int count)
{
    struct server server;
    struct admin_purged purged = {.count = 0};
    int status;
    struct rpc_client *client = server_find(&options->server, SERVER_ADMIN, &server, &status);

    if (!client)
        return status;
    status = EX_OK;
    if (options->tag)
        status = purge_one(client, options, PROXY_PURGE_TAG, options->tag, &purged);
    else if (count == 0)
        status = purge_one(client, options, options->all ? PROXY_PURGE_ALL : PROXY_PURGE_PREFIX,
                           options->prefix, &purged);
    for (int i = 0; i < count && status == EX_OK; i++)
        if (!is_repeated(options, urls, i))
            status = purge_one(client, options, PROXY_PURGE_URL, urls[i], &purged);
    rpc_client_close(client);
    if (status != EX_OK || purged.here)
        return status != EX_OK ? status : EX_TEMPFAIL;
    print(options, &purged);
    return purged.count ? EX_OK : judge_none(options, &purged);
}

static int
purge(int argc, char **argv)
{
    struct purge_options options = {.all = false};
    void *const into[] = {&options, &options.server};
    int status = command_read(&command_purge, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (options.all + (options.prefix != NULL) + (options.tag != NULL) + (optind != argc) != 1) {
        output_complain("nothing to purge: give URLs, --prefix, --tag or --all");
        return command_usage(&command_purge);
    }
    if (options.tag && options.dry_run) {
        output_complain("--tag and --dry-run exclude each other: pages of a tag are not counted");
        return command_usage(&command_purge);
    }
    if (options.prefix && *options.prefix == '\0') {
        output_complain("--prefix is empty: to purge every page, give --all");
        return command_usage(&command_purge);
    }
    return purge_all(&options, argv + optind, argc - optind);
}

const struct command command_purge = {
    .name = "purge",
    .summary = "remove pages from the cache of a running server",
    .about = "usage: sunproxy purge [OPTION...] URL...\n"
             "       sunproxy purge [OPTION...] --prefix PREFIX\n"
             "       sunproxy purge [OPTION...] --tag TAG\n"
             "       sunproxy purge [OPTION...] --all\n\n"
             "Removes pages from the server's cache and prints their number. A URL is that\n"
             "of the client's request, also where the server is a reverse proxy: scheme and\n"
             "host in either case, with or without the default port, and otherwise the same\n"
             "byte for byte. For administrators, over the AF_UNIX socket.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 1 no page with such a URL or tag is stored; 64 wrong\n"
             "usage; 69 no server; 74 output could not be written; 75 no answer in time,\n"
             "or purged at this daemon alone or not for good, with a message and no number;\n"
             "77 permission denied.\n",
    .most = COMMAND_MANY,
    .run = purge,
};
