/*
 * sunproxy store: looks through the files of a store, and trims them.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/output.h"
#include "client/commands.h"
#include "client/store/store_folder.h"

#define SENTENCE 1024

static const struct option_row no_rows[] = {{0}};
static const struct option_group no_options = {.rows = no_rows};

static int
trim(int argc, char **argv)
{
    uint64_t bytes, removed;
    struct buf why;
    bool done;
    int status = command_read(&command_store_trim, NULL, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!units_parse_bytes(argv[optind + 1], &bytes)) {
        output_complain("'%s' is no size, such as 10G", argv[optind + 1]);
        return command_usage(&command_store_trim);
    }
    buf_init(&why, SENTENCE);
    done = store_trim(argv[optind], bytes, &removed, &why);
    if (done)
        printf("%" PRIu64 " segment%s removed\n", removed, removed == 1 ? "" : "s");
    else
        output_complain("%s: %s", argv[optind], buf_str(&why));
    buf_free(&why);
    return done ? EX_OK : EX_CANTCREAT;
}

const struct command command_store_trim = {
    .name = "store trim",
    .summary = "remove the oldest files of a store",
    .about = "usage: sunproxy store trim FOLDER SIZE\n\n"
             "Removes the oldest segments until all have at most SIZE bytes, while no\n"
             "daemon uses the store.\n",
    .options = {&no_options},
    .after = "Exit status: 0 done; 64 wrong usage; 73 a daemon uses the store, or a file\n"
             "cannot be removed; 74 output could not be written.\n",
    .argument = "FOLDER SIZE",
    .least = 2,
    .most = 2,
    .run = trim,
};

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct command *const parts[] = {
    &command_store_list,
    &command_store_show,
    &command_store_export,
    &command_store_verify,
    &command_store_trim,
    NULL,
};

static int
run(int argc, char **argv)
{
    return command_run_part(&command_store, "list, show, export, verify or trim is missing", argc,
                            argv);
}

const struct command command_store = {
    .name = "store",
    .summary = "look through the pages on disk of sunproxyd --store",
    .about = "usage: sunproxy store list [OPTION...] FOLDER\n"
             "       sunproxy store show [OPTION...] FOLDER URL\n"
             "       sunproxy store export [OPTION...] FOLDER\n"
             "       sunproxy store verify [OPTION...] FOLDER\n"
             "       sunproxy store trim FOLDER SIZE\n\n"
             "list       prints a line for each page\n"
             "show       prints what there is of one URL, or its body\n"
             "export     writes all pages as a trace, or as files\n"
             "verify     reads every page, and compares its checksums\n"
             "trim       removes the oldest files, while no daemon uses them\n\n"
             "Each prints its options with --help. FOLDER is that of sunproxyd --store.\n",
    .parts = parts,
    .run = run,
};
