/*
 * Loading: which reader, what it hands over and what of that is kept.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "trace/base_url.h"
#include "trace/formats.h"
#include "trace/url_table.h"

#define FIRST_REQUESTS 256u

/* What trace_load() hands out: the public part first, then what it points into. */
struct owned_trace {
    struct trace trace;
    struct url_table table;
};

struct trace_builder {
    const struct trace_options *options; /* not owned */
    struct url_table table;
    struct trace_request *requests; /* owned */
    size_t count;
    size_t room;
    struct buf base; /* the reduced URL, with --base-urls */
    struct trace_counts counts;
    bool failed;
};

static void
builder_init(struct trace_builder *b, const struct trace_options *options)
{
    memset(b, 0, sizeof(*b));
    b->options = options;
    url_table_init(&b->table);
    buf_init(&b->base, TRACE_URL_MAX);
}

static void
builder_free(struct trace_builder *b)
{
    url_table_free(&b->table);
    free(b->requests);
    buf_free(&b->base);
}

static bool
append_request(struct trace_builder *b, int64_t time_us, uint32_t url)
{
    if (b->count == b->room) {
        size_t room = b->room ? b->room * 2 : FIRST_REQUESTS;
        struct trace_request *grown = realloc(b->requests, room * sizeof(*grown));

        if (!grown)
            return false;
        b->requests = grown;
        b->room = room;
    }
    b->requests[b->count++] = (struct trace_request){.time_us = time_us, .url = url};
    return true;
}

/* Counts the request under the reason for leaving it out; false if there is none. */
static bool
leave_out(struct trace_builder *b, int64_t time_us, struct span url)
{
    const struct trace_options *o = b->options;
    bool web = base_url_is_web(url);

    if (url.len == 0 || url.len > TRACE_URL_MAX || span_has_zero(url) ||
        (web && base_url_host_port(url).len == 0))
        b->counts.skipped_bad++;
    else if (!web && !o->all_schemes)
        b->counts.skipped_scheme++;
    else if (time_us < o->since_us || time_us >= o->until_us)
        b->counts.skipped_time++;
    else
        return false;
    return true;
}

bool
trace_add(struct trace_builder *b, int64_t time_us, struct span url, int64_t size)
{
    const struct trace_options *o = b->options;
    uint32_t number;
    bool fresh;

    if (b->failed || (o->limit != 0 && b->count >= o->limit))
        return false;
    if (leave_out(b, time_us, url))
        return true;
    if (o->base_urls) {
        buf_reset(&b->base);
        if (!base_url_append(&b->base, url)) {
            b->failed = true;
            return false;
        }
        url = buf_span(&b->base);
    }
    if (!url_table_put(&b->table, url, &number, &fresh)) {
        b->failed = true;
        return false;
    }
    /* A page keeps the size that it had first. */
    if (size >= 0 && b->table.sizes[number] < 0)
        b->table.sizes[number] = size;
    if (o->unique && !fresh) {
        b->counts.skipped_unique++;
        return true;
    }
    if (!append_request(b, time_us, number)) {
        b->failed = true;
        return false;
    }
    b->counts.requests = b->count;
    return o->limit == 0 || b->count < o->limit;
}

bool
trace_builder_failed(const struct trace_builder *b)
{
    return b->failed;
}

struct trace_counts *
trace_builder_counts(struct trace_builder *b)
{
    return &b->counts;
}

/* Turns what was built into a trace; the builder is left empty. NULL without memory. */
static struct trace *
builder_finish(struct trace_builder *b, const struct trace_format *format)
{
    struct owned_trace *owned = calloc(1, sizeof(*owned));

    if (!owned)
        return NULL;
    owned->table = b->table;
    owned->trace = (struct trace){
        .format = format->name,
        .requests = b->requests,
        .request_count = b->count,
        .urls = owned->table.urls,
        .url_count = owned->table.count,
        .sizes = owned->table.sizes,
        .counts = b->counts,
    };
    url_table_init(&b->table);
    b->requests = NULL;
    return &owned->trace;
}

void
trace_free(struct trace *trace)
{
    struct owned_trace *owned = (struct owned_trace *)trace;

    if (!owned)
        return;
    free(owned->trace.requests);
    url_table_free(&owned->table);
    free(owned);
}

/* ---- sentences ----------------------------------------------------------------------------- */

struct sentence {
    char *text;
    size_t size;
    size_t len;
};

static void say(struct sentence *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
say(struct sentence *s, const char *format, ...)
{
    va_list args;
    int n;

    if (s->len >= s->size)
        return;
    va_start(args, format);
    n = vsnprintf(s->text + s->len, s->size - s->len, format, args);
    va_end(args);
    s->len += n > 0 ? (size_t)n : 0;
}

static void
say_left_out(struct sentence *s, uint64_t count, const char *what, bool *any)
{
    if (count == 0)
        return;
    say(s, "%s%" PRIu64 " %s", *any ? ", " : " (left out: ", count, what);
    *any = true;
}

static void
explain_empty(const char *path, const struct trace_counts *c, char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};
    bool any = false;

    say(&s, "%s: no request in it", path);
    say_left_out(&s, c->skipped_bad, "malformed", &any);
    say_left_out(&s, c->skipped_orphan, "without a URL", &any);
    say_left_out(&s, c->skipped_scheme, "neither http nor https", &any);
    say_left_out(&s, c->skipped_time, "outside the wanted times", &any);
    if (any)
        say(&s, ")");
}

static void
explain_formats(const char *path, const char *wanted, char *why, size_t why_size)
{
    struct sentence s = {.text = why, .size = why_size};

    if (wanted)
        say(&s, "no trace format is called '%s'; there are:", wanted);
    else
        say(&s, "%s: not a trace of any known format; those are:", path);
    for (size_t i = 0; trace_formats[i]; i++)
        say(&s, "%s %s (%s)", i ? "," : "", trace_formats[i]->name, trace_formats[i]->summary);
}

/* ---- loading ------------------------------------------------------------------------------- */

/* The first bytes of a regular file; *len is how many. */
static enum trace_error
read_head(const char *path, char head[TRACE_HEAD_BYTES], size_t *len, char *why, size_t why_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    ssize_t n;

    if (fd < 0) {
        snprintf(why, why_size, "%s: cannot open the trace: %s", path, strerror(errno));
        return TRACE_CANNOT_OPEN;
    }
    if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
        snprintf(why, why_size, "%s: cannot read the trace: not a regular file", path);
        close(fd);
        return TRACE_CANNOT_OPEN;
    }
    for (*len = 0; *len < TRACE_HEAD_BYTES; *len += (size_t)n) {
        n = read(fd, head + *len, TRACE_HEAD_BYTES - *len);
        if (n < 0 && errno == EINTR)
            n = 0;
        else if (n <= 0)
            break;
    }
    if (n < 0)
        snprintf(why, why_size, "%s: cannot read the trace: %s", path, strerror(errno));
    close(fd);
    return n < 0 ? TRACE_CANNOT_OPEN : TRACE_OK;
}

static enum trace_error
choose_format(const char *path, const char *wanted, const struct trace_format **format, char *why,
              size_t why_size)
{
    char head[TRACE_HEAD_BYTES];
    size_t len = 0;
    enum trace_error error = read_head(path, head, &len, why, why_size);

    if (error != TRACE_OK)
        return error;
    if (wanted)
        *format = trace_format_find(wanted);
    else if (len == 0)
        *format = NULL;
    else
        *format = trace_format_sniff(span_of(head, len));
    if (!*format && !wanted && len == 0) {
        snprintf(why, why_size, "%s: the file is empty, no trace", path);
        return TRACE_EMPTY;
    }
    if (!*format) {
        explain_formats(path, wanted, why, why_size);
        return TRACE_NOT_A_TRACE;
    }
    return TRACE_OK;
}

enum trace_error
trace_load(const char *path, const struct trace_options *options, struct trace **trace, char *why,
           size_t why_size)
{
    const struct trace_format *format;
    struct trace_builder builder;
    enum trace_error error = choose_format(path, options->format, &format, why, why_size);

    *trace = NULL;
    if (error != TRACE_OK)
        return error;
    builder_init(&builder, options);
    error = format->read(path, options, &builder, why, why_size);
    if (error == TRACE_OK && builder.failed)
        error = TRACE_NO_MEMORY;
    if (error == TRACE_OK && builder.count == 0) {
        explain_empty(path, &builder.counts, why, why_size);
        error = TRACE_EMPTY;
    }
    if (error == TRACE_OK) {
        *trace = builder_finish(&builder, format);
        if (!*trace)
            error = TRACE_NO_MEMORY;
    }
    if (error == TRACE_NO_MEMORY)
        snprintf(why, why_size, "%s: not enough memory to load the trace", path);
    builder_free(&builder);
    return error;
}
