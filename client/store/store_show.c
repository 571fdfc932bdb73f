/*
 * sunproxy store show: what there is of one URL, or its body.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/save.h"
#include "cli/output.h"
#include "client/explain_lines.h"
#include "client/store/store_folder.h"
#include "http/field.h"

struct show_options {
    struct server_options server;
    const char *output;
    uint64_t number;
    bool all;
    bool json;
};

#define AT(field) offsetof(struct show_options, field)

static const struct option_row rows[] = {
    {"output", 'o', "FILE", option_text, AT(output), 0, 0, NULL,
     "write the body to this file, '-' for standard output, and print nothing else"},
    {"number", 'n', "N", option_uint, AT(number), 1, UINT32_MAX, NULL,
     "the N-th of the responses that are printed (default: all; with --output the first one, "
     "if there is no other)"},
    {"all", 'a', NULL, option_flag, AT(all), 0, 0, NULL, "also what was purged or replaced"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print a JSON object for each, one a line"},
    {0},
};

static const struct option_group own = {.rows = rows};

struct showing {
    const struct show_options *options;
    uint64_t seen;
    char *body; /* of the one for --output */
    size_t body_len;
    bool damaged; /* it is */
    bool failed;  /* no memory for it */
};

/* ---- printing -------------------------------------------------------------------------------- */

static void
print_span(const char *name, struct span value)
{
    if (!value.len)
        return;
    printf("%-*s ", EXPLAIN_WIDTH, name);
    printable_write(stdout, value);
    putchar('\n');
}

static void
print_times(const struct store_entry *entry)
{
    char time[TIMESTAMP_SIZE];

    store_time(entry, time);
    printf("%-*s %s\n", EXPLAIN_WIDTH, "time", time);
    printf("%-*s %.3f s\n", EXPLAIN_WIDTH, "age", (double)entry->age_us / 1e6);
    printf("%-*s ", EXPLAIN_WIDTH, "lifetime");
    if (entry->lifetime_us == INT64_MAX)
        fputs("not limited", stdout);
    else
        printf("%.3f s", (double)entry->lifetime_us / 1e6);
    printf(", %s\n", store_is_fresh(entry) ? "fresh" : "not fresh");
}

static void
print_text(const struct store_entry *entry)
{
    const struct disk_record *record = entry->record;
    struct span fields = record->fields, line;

    printf("%-*s %s\n", EXPLAIN_WIDTH, "state", store_state(entry));
    print_span("url", record->url);
    print_span("varies by", record->names);
    print_span("variant", record->variant);
    printf("%-*s %u, %" PRIu64 " bytes\n", EXPLAIN_WIDTH, "status", record->head.status,
           record->head.body_len);
    print_times(entry);
    print_span("tags", record->tags);
    printf("%-*s segment-%016" PRIx64 ", offset %" PRIu64 "\n", EXPLAIN_WIDTH, "place",
           entry->segment, entry->offset);
    while (http_next_line(&fields, &line))
        print_span("field", line);
}

static void
print_json(const struct store_entry *entry)
{
    struct json json;
    struct buf text;

    buf_init(&text, (size_t)8 << 20);
    json_init(&json, &text);
    json_open_object(&json, NULL);
    store_json(&json, entry, true);
    json_close_object(&json);
    (void)output_json(&text);
}

/* ---- one URL --------------------------------------------------------------------------------- */

static void
keep_body(struct showing *showing, const struct store_entry *entry)
{
    showing->damaged = entry->damaged;
    showing->body_len = entry->body.len;
    showing->body = malloc(entry->body.len + 1);
    showing->failed = !showing->body;
    if (showing->body)
        span_put(showing->body, entry->body);
}

static void
see(void *context, const struct store_entry *entry)
{
    struct showing *showing = context;
    const struct show_options *options = showing->options;
    const uint64_t wanted = options->number;

    if (!entry->record || (!options->all && !entry->current && !entry->damaged))
        return;
    showing->seen++;
    if (wanted && wanted != showing->seen)
        return;
    if (options->output && !showing->body)
        keep_body(showing, entry);
    if (options->output)
        return;
    if (!options->json && showing->seen > 1 && !wanted)
        putchar('\n');
    (options->json ? print_json : print_text)(entry);
}

static int
write_body(const struct showing *showing, const char *path)
{
    struct save save;
    int error;

    if (strcmp(path, "-") == 0) {
        fwrite(showing->body, 1, showing->body_len, stdout);
        return EX_OK;
    }
    error = save_open(&save, path, false);
    if (!error) {
        fwrite(showing->body, 1, showing->body_len, save.file);
        error = save_close(&save, true);
    }
    if (error)
        output_complain("%s: %s", path, strerror(error));
    return error ? EX_CANTCREAT : EX_OK;
}

/* Of the response that was chosen. */
static int
put_body(const struct showing *showing, const char *url)
{
    const struct show_options *options = showing->options;

    if (!options->number && showing->seen > 1) {
        output_complain("%s has %" PRIu64 " responses: choose one with --number", url,
                        showing->seen);
        return EX_USAGE;
    }
    if (showing->failed) {
        output_complain("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    if (showing->damaged) {
        output_complain("the body of %s is damaged", url);
        return EX_DATAERR;
    }
    return write_body(showing, options->output);
}

/* What the daemon says, behind what the files have. */
static void
print_daemon(const struct show_options *options, char *text)
{
    struct json json;
    struct buf out;

    if (!text || options->output)
        return;
    if (!options->json) {
        fputs("\nThe daemon, of a request for it:\n", stdout);
        explain_print(text);
        return;
    }
    buf_init(&out, (size_t)1 << 20);
    json_init(&json, &out);
    json_open_object(&json, NULL);
    explain_json(&json, "daemon", text);
    json_close_object(&json);
    (void)output_json(&out);
}

static int
show(int argc, char **argv)
{
    struct show_options options = {.json = false};
    struct showing showing = {.options = &options};
    struct store_look look = {.see = see, .context = &showing};
    void *const into[] = {&options, &options.server};
    struct store_totals totals;
    const char *url;
    char *text = NULL;
    int status = command_read(&command_store_show, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    url = argv[optind + 1];
    look.wanted = (struct store_wanted){.url = span_str(url), .bodies = true};
    status = store_look_through(argv[optind], &look, &totals);
    if (status == EX_OK && totals.in_use)
        store_ask_daemon(argv[optind], &options.server, url, &text);
    if (status == EX_OK && (options.number ? showing.seen < options.number : !showing.seen)) {
        output_complain("no such page is stored: %s", url);
        status = 1;
    } else if (status == EX_OK && options.output) {
        status = put_body(&showing, url);
    }
    print_daemon(&options, text);
    free(text);
    free(showing.body);
    return status;
}

const struct command command_store_show = {
    .name = "store show",
    .summary = "print what a store has of one URL, or its body",
    .about = "usage: sunproxy store show [OPTION...] FOLDER URL\n\n"
             "Prints state, variant, status, times, freshness, tags, place and field lines of\n"
             "each response that there is, the latest first, and with --output the body of\n"
             "one. All checksums are compared. URL is as `store list` prints it. A daemon that\n"
             "uses the store is asked what it would do with a request (sunproxy explain).\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 1 there is no such page; 64 wrong usage, or several\n"
             "responses for --output; 65 the body is damaged; 73 FILE cannot be written;\n"
             STORE_EXIT_HELP,
    .argument = "FOLDER URL",
    .least = 2,
    .most = 2,
    .run = show,
};
