/*
 * sunproxy store list: a line for each page.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/units.h"
#include "cli/output.h"
#include "client/store/store_folder.h"
#include "store/disk_file.h"

enum list_form { LIST_TEXT, LIST_JSON, LIST_CSV };

struct list_options {
    struct server_options server;
    enum list_form form;
    bool all;
};

#define AT(field) offsetof(struct list_options, field)

static const struct option_row rows[] = {
    {"json", 0, NULL, option_value, AT(form), LIST_JSON, 0, NULL,
     "print a JSON object for each, one a line"},
    {"csv", 0, NULL, option_value, AT(form), LIST_CSV, 0, NULL, "print CSV"},
    {"all", 'a', NULL, option_flag, AT(all), 0, 0, NULL, "also what was purged or replaced"},
    {0},
};

static const struct option_group own = {.rows = rows};

static void
print_json(const struct store_entry *entry)
{
    struct json json;
    struct buf text;

    buf_init(&text, (size_t)1 << 20);
    json_init(&json, &text);
    json_open_object(&json, NULL);
    store_json(&json, entry, false);
    json_close_object(&json);
    (void)output_json(&text);
}

static void
print_csv(const struct store_entry *entry)
{
    const struct disk_record *record = entry->record;
    char time[TIMESTAMP_SIZE];

    if (!record) {
        printf("%s,,,,,,,,,,%" PRIu64 ",%" PRIu64 "\n", store_state(entry), entry->segment,
               entry->offset);
        return;
    }
    store_time(entry, time);
    printf("%s,%u,%" PRIu64 ",%s,%" PRId64 ",", store_state(entry), record->head.status,
           record->head.body_len, time, store_age_s(entry));
    if (entry->lifetime_us != INT64_MAX)
        printf("%.3f", (double)entry->lifetime_us / 1e6);
    printf(",%s,", store_is_fresh(entry) ? "true" : "false");
    output_put_csv(record->url);
    putchar(',');
    output_put_csv(record->variant);
    putchar(',');
    output_put_csv(record->tags);
    printf(",%" PRIu64 ",%" PRIu64 "\n", entry->segment, entry->offset);
}

static void
print_line(const struct store_entry *entry)
{
    char url[1024];

    if (!entry->record) {
        printf("%-8s segment-%016" PRIx64 ", offset %" PRIu64 "%s%s\n", store_state(entry),
               entry->segment, entry->offset, entry->error ? ": " : "",
               entry->error ? disk_strerror(entry->error) : "");
        return;
    }
    snprintf(url, sizeof(url), "%.*s", (int)entry->record->url.len, entry->record->url.ptr);
    printf("%-8s %3u %10" PRIu64 " %8" PRId64 " ", store_state(entry), entry->record->head.status,
           entry->record->head.body_len, store_age_s(entry));
    output_put(url);
    putchar('\n');
}

static void
print_entry(void *context, const struct store_entry *entry)
{
    static void (*const print[])(const struct store_entry *) = {
        [LIST_TEXT] = print_line, [LIST_JSON] = print_json, [LIST_CSV] = print_csv};
    const struct list_options *options = context;

    if (options->all || entry->current)
        print[options->form](entry);
}

static int
list(int argc, char **argv)
{
    struct list_options options = {.all = false};
    void *const into[] = {&options, &options.server};
    struct store_totals totals;
    int status = command_read(&command_store_list, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (options.form == LIST_CSV)
        puts("state,status,bytes,time,age_s,lifetime_s,fresh,url,variant,tags,segment,offset");
    status = store_look_through(
        argv[optind], &(struct store_look){.see = print_entry, .context = &options}, &totals);
    if (status == EX_OK && totals.in_use)
        store_ask_daemon(argv[optind], &options.server, NULL, NULL);
    return status;
}

const struct command command_store_list = {
    .name = "store list",
    .summary = "list the pages of a store",
    .about = "usage: sunproxy store list [OPTION...] FOLDER\n\n"
             "Prints a line for each page, the latest first: state, status, bytes of the\n"
             "body, age in seconds and URL. A daemon that uses the store is asked for its\n"
             "totals.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" STORE_EXIT_HELP,
    .argument = "FOLDER",
    .least = 1,
    .most = 1,
    .run = list,
};

/* ---- verifying ------------------------------------------------------------------------------- */

struct verify_options {
    struct server_options server;
    bool json;
};

static const struct option_row verify_rows[] = {
    {"json", 0, NULL, option_flag, offsetof(struct verify_options, json), 0, 0, NULL,
     "print JSON objects: one for each that is damaged or unread, and one of sums"},
    {0},
};

static const struct option_group verify_own = {.rows = verify_rows};

static void
print_damage(void *context, const struct store_entry *entry)
{
    const struct verify_options *options = context;

    if (!entry->record || entry->damaged)
        (options->json ? print_json : print_line)(entry);
}

static void
print_sums(const struct verify_options *options, const struct store_totals *totals)
{
    struct json json;
    struct buf text;
    char bytes[32];

    if (!options->json) {
        printf("%" PRIu64 " pages, %" PRIu64 " records in %" PRIu64 " segments with %s, %" PRIu64
               " damaged",
               totals->objects, totals->records, totals->segments,
               units_format_bytes(totals->bytes, bytes, sizeof(bytes)), totals->damaged);
        if (totals->unread)
            printf(", %" PRIu64 " cannot be read", totals->unread);
        putchar('\n');
        return;
    }
    buf_init(&text, (size_t)1 << 20);
    json_init(&json, &text);
    json_open_object(&json, NULL);
    json_uint(&json, "pages", totals->objects);
    json_uint(&json, "records", totals->records);
    json_uint(&json, "segments", totals->segments);
    json_uint(&json, "bytes", totals->bytes);
    json_uint(&json, "damaged", totals->damaged);
    json_uint(&json, "unread", totals->unread);
    json_bool(&json, "journal_lost", totals->journal_lost);
    json_bool(&json, "in_use", totals->in_use);
    json_close_object(&json);
    (void)output_json(&text);
}

static int
verify(int argc, char **argv)
{
    struct verify_options options = {.json = false};
    void *const into[] = {&options, &options.server};
    const struct store_look look = {
        .wanted = {.bodies = true, .scans = true}, .see = print_damage, .context = &options};
    struct store_totals totals;
    int status = command_read(&command_store_verify, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    status = store_look_through(argv[optind], &look, &totals);
    if (status != EX_OK)
        return status;
    print_sums(&options, &totals);
    if (totals.in_use)
        store_ask_daemon(argv[optind], &options.server, NULL, NULL);
    if (totals.damaged || totals.journal_lost)
        return 1;
    return totals.unread ? EX_NOINPUT : EX_OK;
}

const struct command command_store_verify = {
    .name = "store verify",
    .summary = "verify all checksums of a store",
    .about = "usage: sunproxy store verify [OPTION...] FOLDER\n\n"
             "Reads every page and compares its checksums. Prints what is damaged or\n"
             "cannot be read, and sums.\n"
             "While a daemon uses the store, what it is writing is left out, and it is asked\n"
             "for its totals.\n",
    .options = {&verify_own, &server_option_group},
    .after = "Exit status: 0 done; 1 something is damaged; 64 wrong usage; 66 not all can be\n"
             "read, and nothing else is damaged, or the folder cannot be read, or is no\n"
             "store; 74 output could not be written.\n",
    .argument = "FOLDER",
    .least = 1,
    .most = 1,
    .run = verify,
};
