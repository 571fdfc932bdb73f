/*
 * sunproxy store export: all pages as a trace, or as files.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "cli/trace_output.h"
#include "client/store/store_folder.h"
#include "trace/builder.h"

struct export_options {
    struct server_options server;
    const char *to;
    const char *output;
    const char *files;
};

#define AT(field) offsetof(struct export_options, field)

static const struct option_row rows[] = {
    TRACE_WRITER_ROWS(struct export_options, ""),
    {"files", 0, "FOLDER", option_text, AT(files), 0, 0, NULL,
     "write the bodies to files of a new folder, and index.jsonl with what they are"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* ---- as files -------------------------------------------------------------------------------- */

/* Names of files are numbers: nothing of a URL is in them. */
struct export
{
    int folder;
    FILE *index;
    uint64_t count, damaged;
    int error; /* the first one */
};

static int
open_new(int folder, const char *name)
{
    return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int
write_all(int fd, struct span body)
{
    while (body.len) {
        const ssize_t n = write(fd, body.ptr, body.len);

        if (n < 0 && errno != EINTR)
            return errno;
        if (n > 0)
            body = span_of(body.ptr + n, body.len - (size_t)n);
    }
    return 0;
}

static int
write_file(int folder, const char *name, struct span body)
{
    int fd = open_new(folder, name), error;

    if (fd < 0)
        return errno;
    error = write_all(fd, body);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

static int
write_row(FILE *index, const char *name, const struct store_entry *entry)
{
    struct json json;
    struct buf text;
    int error = 0;

    buf_init(&text, (size_t)8 << 20);
    json_init(&json, &text);
    json_open_object(&json, NULL);
    json_cstring(&json, "file", name);
    store_json(&json, entry, true);
    json_close_object(&json);
    if (text.failed)
        error = ENOMEM;
    else if (fprintf(index, "%s\n", buf_str(&text)) < 0)
        error = errno;
    buf_free(&text);
    return error;
}

static void
export_entry(void *context, const struct store_entry *entry)
{
    struct export *export = context;
    char name[32];

    export->damaged += (!entry->record && !entry->error) || entry->damaged;
    if (export->error || !entry->current)
        return;
    snprintf(name, sizeof(name), "%08" PRIu64, ++export->count);
    export->error = write_file(export->folder, name, entry->body);
    if (!export->error)
        export->error = write_row(export->index, name, entry);
}

/* A folder of this name that was not there, and its index. */
static int
make_folder(const char *path, struct export *export)
{
    int fd;

    if (mkdir(path, 0700) != 0)
        return errno;
    export->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (export->folder < 0)
        return errno;
    fd = open_new(export->folder, "index.jsonl");
    export->index = fd < 0 ? NULL : fdopen(fd, "w");
    return export->index ? 0 : errno;
}

static int
export_files(const char *folder, const char *to, struct store_totals *totals)
{
    struct export export = {.folder = -1};
    const struct store_look look = {
        .wanted = {.bodies = true}, .see = export_entry, .context = &export};
    int status = EX_OK;

    export.error = make_folder(to, &export);
    if (!export.error)
        status = store_look_through(folder, &look, totals);
    if (export.index && fclose(export.index) != 0 && !export.error)
        export.error = errno;
    if (export.folder >= 0)
        close(export.folder);
    if (export.error) {
        output_complain("%s: %s", to, strerror(export.error));
        return EX_CANTCREAT;
    }
    if (status == EX_OK)
        output_note("%" PRIu64 " pages were written to %s", export.count, to);
    if (status == EX_OK && export.damaged)
        output_note("%" PRIu64 " that are damaged were left out", export.damaged);
    return status;
}

/* ---- as a trace ------------------------------------------------------------------------------ */

struct page {
    char *url; /* owned */
    size_t url_len;
    int64_t time_us;
    uint64_t bytes;
    unsigned status;
};

struct pages {
    struct page *list;
    size_t count, size;
    bool failed;
};

static void
add_page(void *context, const struct store_entry *entry)
{
    struct pages *pages = context;
    struct page *page;

    if (!entry->current || pages->failed)
        return;
    if (pages->count == pages->size) {
        const size_t size = pages->size ? 2 * pages->size : 1024;
        struct page *grown = realloc(pages->list, size * sizeof(*grown));

        pages->failed = !grown;
        if (!grown)
            return;
        pages->list = grown;
        pages->size = size;
    }
    page = &pages->list[pages->count];
    *page = (struct page){.url = malloc(entry->record->url.len + 1),
                          .url_len = entry->record->url.len,
                          .time_us = entry->record->head.born_wall_us,
                          .bytes = entry->record->head.body_len,
                          .status = entry->record->head.status};
    pages->failed = !page->url;
    if (!page->url)
        return;
    span_put(page->url, entry->record->url);
    pages->count++;
}

static int
by_time(const void *a, const void *b)
{
    const struct page *x = a, *y = b;

    return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

static struct trace *
make_trace(const struct pages *pages)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace_builder *builder;
    struct trace *trace = NULL;
    bool goes_on = true;

    options.methods = options.statuses = "all";
    options.redirects = TRACE_REDIRECTS_KEEP;
    options.all_schemes = true;
    builder = trace_builder_create(&options);
    for (size_t i = 0; builder && goes_on && i < pages->count; i++) {
        const struct page *page = &pages->list[i];
        struct trace_request request = TRACE_REQUEST_EMPTY;

        request.url = span_of(page->url, page->url_len);
        request.time_us = page->time_us;
        request.size = (int64_t)page->bytes;
        request.method = span_str("GET");
        request.status = page->status;
        goes_on = trace_add(builder, &request);
    }
    if (builder && goes_on)
        trace = trace_builder_finish(builder, "store");
    trace_builder_destroy(builder);
    return trace;
}

static int
write_trace(struct pages *pages, const struct trace_writer *writer, const char *output)
{
    const struct trace_write_options how = {0};
    struct trace *trace;
    int status;

    if (pages->count)
        qsort(pages->list, pages->count, sizeof(*pages->list), by_time);
    trace = pages->failed ? NULL : make_trace(pages);
    if (!trace) {
        output_complain("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    status = trace_write_out(trace, writer, &how, output);
    trace_free(trace);
    return status;
}

static int
export_trace(const char *folder, const struct export_options *options, struct store_totals *totals)
{
    const struct trace_writer *writer = trace_choose_writer(options->to, options->output, NULL);
    struct pages pages = {.list = NULL};
    const struct store_look look = {.see = add_page, .context = &pages};
    int status;

    if (!writer)
        return command_usage(&command_store_export);
    status = store_look_through(folder, &look, totals);
    if (status == EX_OK && !pages.failed && !pages.count) {
        output_complain("%s has no pages", folder);
        status = EX_DATAERR;
    }
    if (status == EX_OK)
        status = write_trace(&pages, writer, options->output);
    while (pages.count)
        free(pages.list[--pages.count].url);
    free(pages.list);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int export(int argc, char **argv)
{
    struct export_options options = {.to = NULL};
    struct store_totals totals;
    void *const into[] = {&options, &options.server};
    int status = command_read(&command_store_export, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (options.files && (options.to || strcmp(options.output, "-") != 0)) {
        output_complain("--files and --%s exclude each other", options.to ? "to" : "output");
        return command_usage(&command_store_export);
    }
    status = options.files ? export_files(argv[optind], options.files, &totals)
                           : export_trace(argv[optind], &options, &totals);
    if (status == EX_OK && totals.in_use)
        store_ask_daemon(argv[optind], &options.server, NULL, NULL);
    return status;
}

static void
print_lists(void)
{
    puts("\nFormats to write:");
    trace_print_writers(stdout);
}

const struct command command_store_export = {
    .name = "store export",
    .summary = "write the pages of a store as a trace, or as files",
    .about = "usage: sunproxy store export [--to FORMAT] [-o FILE] [OPTION...] FOLDER\n"
             "       sunproxy store export --files NEWFOLDER [OPTION...] FOLDER\n\n"
             "Writes a trace with one request for each page, at the time of its response, or\n"
             "a folder with a file for each body and index.jsonl, which has a JSON object for\n"
             "each: name of the file, URL, variant, times, freshness, tags and field lines.\n"
             "Files have the mode 0600. What was purged, replaced or damaged is left out.\n"
             "A daemon that uses the store is asked for its totals.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage; 65 there are no pages for a trace; 73 the\n"
             "output cannot be written;\n" STORE_EXIT_HELP,
    .argument = "FOLDER",
    .least = 1,
    .most = 1,
    .run = export,
    .lists = print_lists,
};
