/*
 * sunproxy store: looks through the files of a store, verifies and trims them.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/output.h"
#include "store/store_visit.h"
#include "study/commands.h"

#define SENTENCE 1024

static const struct command command_store_list, command_store_verify, command_store_trim;

/* ---- listing --------------------------------------------------------------------------------- */

struct list_options {
    bool json;
    bool all;
};

static const struct option_row list_rows[] = {
    {"json", 0, NULL, option_flag, offsetof(struct list_options, json), 0, 0, NULL,
     "print a JSON object for each, one a line"},
    {"all", 'a', NULL, option_flag, offsetof(struct list_options, all), 0, 0, NULL,
     "also what was purged or replaced"},
    {0},
};

static const struct option_group list_own = {.rows = list_rows};

static const char *
state_of(const struct store_entry *entry)
{
    if (!entry->record || entry->damaged)
        return "damaged";
    if (!entry->current)
        return "outdated";
    return entry->expired ? "expired" : "current";
}

static int64_t
age_s(const struct store_entry *entry)
{
    return (clock_wall_us() - entry->record->head.born_wall_us) / 1000000;
}

static void
print_json(const struct store_entry *entry)
{
    const struct disk_record *record = entry->record;
    struct json json;
    struct buf text;

    buf_init(&text, (size_t)1 << 20);
    json_init(&json, &text);
    json_open_object(&json, NULL);
    json_cstring(&json, "state", state_of(entry));
    if (record) {
        json_string(&json, "url", record->url);
        json_string(&json, "variant", record->variant);
        json_uint(&json, "status", record->head.status);
        json_uint(&json, "bytes", record->head.body_len);
        json_int(&json, "age_s", age_s(entry));
        json_string(&json, "tags", record->tags);
    }
    json_uint(&json, "segment", entry->segment);
    json_uint(&json, "offset", entry->offset);
    json_close_object(&json);
    (void)output_json(&text);
}

static void
print_line(const struct store_entry *entry)
{
    char url[SENTENCE];

    if (!entry->record) {
        printf("%-8s segment-%016" PRIx64 ", offset %" PRIu64 "\n", "damaged", entry->segment,
               entry->offset);
        return;
    }
    snprintf(url, sizeof(url), "%.*s", (int)entry->record->url.len, entry->record->url.ptr);
    printf("%-8s %3u %10" PRIu64 " %8" PRId64 " ", state_of(entry), entry->record->head.status,
           entry->record->head.body_len, age_s(entry));
    output_put(url);
    putchar('\n');
}

static void
print_entry(void *context, const struct store_entry *entry)
{
    const struct list_options *options = context;

    if (!options->all && !entry->current)
        return;
    if (options->json)
        print_json(entry);
    else
        print_line(entry);
}

static bool
visit(const char *folder, bool verifies,
      void (*see)(void *context, const struct store_entry *entry), void *context,
      struct store_totals *totals)
{
    struct buf why;
    bool done;

    buf_init(&why, SENTENCE);
    done = store_visit(folder, verifies, see, context, totals, &why);
    if (!done)
        output_complain("%s: %s", folder, buf_str(&why));
    else if (totals->in_use)
        output_note("a daemon uses the store: what it writes meanwhile may be missing");
    if (done && totals->journal_lost)
        output_note("the journal is damaged or missing: the next start removes all pages");
    buf_free(&why);
    return done;
}

static int
list(int argc, char **argv)
{
    struct list_options options;
    struct store_totals totals;
    int status = command_read(&command_store_list, (void *const[]){&options}, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    return visit(argv[optind], false, print_entry, &options, &totals) ? EX_OK : EX_NOINPUT;
}

static const struct command command_store_list = {
    .name = "store list",
    .summary = "list the pages of a store",
    .about = "usage: sunproxy store list [OPTION...] FOLDER\n\n"
             "Prints a line for each page, the latest first: state, status, bytes of the\n"
             "body, age in seconds and URL.\n",
    .options = {&list_own},
    .argument = "FOLDER",
    .least = 1,
    .most = 1,
    .run = list,
};

static const struct option_row no_rows[] = {{0}};
static const struct option_group no_options = {.rows = no_rows};

/* ---- verifying ------------------------------------------------------------------------------- */

static void
print_damage(void *context, const struct store_entry *entry)
{
    (void)context;
    if (!entry->record || entry->damaged)
        print_line(entry);
}

static int
verify(int argc, char **argv)
{
    struct store_totals totals;
    char bytes[32];
    int status = command_read(&command_store_verify, NULL, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!visit(argv[optind], true, print_damage, NULL, &totals))
        return EX_NOINPUT;
    printf("%" PRIu64 " pages, %" PRIu64 " records in %" PRIu64 " segments with %s, %" PRIu64
           " damaged\n",
           totals.objects, totals.records, totals.segments,
           units_format_bytes(totals.bytes, bytes, sizeof(bytes)), totals.damaged);
    return totals.damaged || totals.journal_lost ? 1 : EX_OK;
}

static const struct command command_store_verify = {
    .name = "store verify",
    .summary = "verify all checksums of a store",
    .about = "usage: sunproxy store verify FOLDER\n\n"
             "Reads every page and compares its checksums. Prints what is damaged, and sums.\n",
    .options = {&no_options},
    .after = "Exit status: 0; 1 if something is damaged.\n",
    .argument = "FOLDER",
    .least = 1,
    .most = 1,
    .run = verify,
};

/* ---- trimming -------------------------------------------------------------------------------- */

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

static const struct command command_store_trim = {
    .name = "store trim",
    .summary = "remove the oldest files of a store",
    .about = "usage: sunproxy store trim FOLDER SIZE\n\n"
             "Removes the oldest segments until all have at most SIZE bytes, while no\n"
             "daemon uses the store.\n",
    .options = {&no_options},
    .argument = "FOLDER SIZE",
    .least = 2,
    .most = 2,
    .run = trim,
};

/* ---- all of them ----------------------------------------------------------------------------- */

static const struct command *const parts[] = {
    &command_store_list,
    &command_store_verify,
    &command_store_trim,
    NULL,
};

static int
run(int argc, char **argv)
{
    return command_run_part(&command_store, "list, verify or trim is missing", argc, argv);
}

const struct command command_store = {
    .name = "store",
    .summary = "look through the pages on disk of sunproxyd --store",
    .about = "usage: sunproxy store list [OPTION...] FOLDER\n"
             "       sunproxy store verify FOLDER\n"
             "       sunproxy store trim FOLDER SIZE\n\n"
             "list       prints a line for each page\n"
             "verify     reads every page, and compares its checksums\n"
             "trim       removes the oldest files, while no daemon uses them\n\n"
             "Each prints its options with --help. FOLDER is that of sunproxyd --store.\n",
    .parts = parts,
    .run = run,
};
