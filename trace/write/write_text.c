/*
 * Text: a table with the columns time (seconds), url or id, size, status and method, as far as they
 * are known; and a list of URLs with their sizes. Bytes that cannot stand in a line are written as
 * %XX; on a terminal, all that is not printable (base/printable.h).
 */
#include <inttypes.h>
#include <unistd.h>

#include "base/printable.h"
#include "trace/base_url.h"
#include "trace/write/writers.h"

#define MICRO 1000000

static void
put_url(FILE *file, struct span url, bool terminal)
{
    size_t printable = 0; /* bytes before this one may be shown */

    for (size_t i = 0; i < url.len; i++) {
        unsigned char c = (unsigned char)url.ptr[i];

        if (terminal && i >= printable)
            printable = i + printable_length(span_of(url.ptr + i, url.len - i));
        if (c <= ' ' || c == 0x7f || (terminal && i >= printable))
            fprintf(file, "%%%02X", c);
        else
            putc_unlocked(c, file);
    }
}

/* The URL, or the number behind the site, or the number. */
static void
put_identity(FILE *file, const struct trace *t, const struct trace_write_options *options,
             uint32_t id, bool terminal)
{
    char digits[TRACE_URL_TEXT];

    if (!t->urls && options->site) {
        put_url(file, base_url_site(options->site), terminal);
        putc_unlocked('/', file);
    }
    put_url(file, trace_url_text(t, id, digits), terminal);
}

static void
put_time(FILE *file, int64_t us)
{
    uint64_t distance = us < 0 ? 0 - (uint64_t)us : (uint64_t)us;

    fprintf(file, "%s%" PRIu64 ".%06u", us < 0 ? "-" : "", distance / MICRO,
            (unsigned)(distance % MICRO));
}

static void
put_size(FILE *file, const struct trace *t, size_t i)
{
    if (t->sizes[i] != TRACE_SIZE_UNKNOWN)
        fprintf(file, "%" PRIu32, t->sizes[i]);
}

/* Nothing where it is not known, and 0 where there was no answer. */
static void
put_status(FILE *file, unsigned status)
{
    if (status == TRACE_STATUS_UNKNOWN)
        putc_unlocked('\t', file);
    else
        fprintf(file, "\t%u", status == TRACE_STATUS_NONE ? 0 : status);
}

static int
write_tsv(const struct trace *t, const struct trace_write_options *options, FILE *file)
{
    bool terminal = isatty(fileno(file));

    fprintf(file, "%s%s%s%s%s\n", t->times_us ? "time\t" : "",
            t->urls || options->site ? "url" : "id", t->sizes ? "\tsize" : "",
            t->statuses ? "\tstatus" : "", t->methods || options->writes ? "\tmethod" : "");
    for (size_t i = 0; i < t->request_count && !ferror(file); i++) {
        if (t->times_us) {
            put_time(file, t->times_us[i]);
            putc_unlocked('\t', file);
        }
        put_identity(file, t, options, t->ids[i], terminal);
        if (t->sizes) {
            putc_unlocked('\t', file);
            put_size(file, t, i);
        }
        if (t->statuses)
            put_status(file, t->statuses[i]);
        if (options->writes)
            fputs(options->writes[i] ? "\tPUT" : "\tGET", file);
        else if (t->methods)
            fprintf(file, "\t%s", trace_method(t, i));
        putc_unlocked('\n', file);
    }
    return 0;
}

static int
write_urls(const struct trace *t, const struct trace_write_options *options, FILE *file)
{
    struct trace_write_options with_site = *options;
    bool terminal = isatty(fileno(file));

    if (!with_site.site)
        with_site.site = TRACE_DEFAULT_SITE;
    for (size_t i = 0; i < t->request_count && !ferror(file); i++) {
        if (trace_write_skips(&trace_writer_urls, options, i))
            continue;
        put_identity(file, t, &with_site, t->ids[i], terminal);
        if (t->sizes && t->sizes[i] != TRACE_SIZE_UNKNOWN) {
            putc_unlocked('\t', file);
            put_size(file, t, i);
        }
        putc_unlocked('\n', file);
    }
    return 0;
}

const struct trace_writer trace_writer_tsv = {
    .name = "tsv",
    .summary = "a table with named columns, separated by tabs",
    .write = write_tsv,
};

const struct trace_writer trace_writer_urls = {
    .name = "urls",
    .summary = "one URL per line, with its size in bytes if that is known",
    .reads_only = true,
    .write = write_urls,
};
