/*
 * Loading a trace from bytes in a test, and looking at it.
 */
#ifndef SUNPROXY_TESTS_UNIT_TRACE_LOADING_H
#define SUNPROXY_TESTS_UNIT_TRACE_LOADING_H

#include "tests/unit/trace/scratch.h"
#include "trace/trace.h"

static char loading_why[1024];

/* The defaults, but with every method and status. */
static inline struct trace_options
loading_all(void)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.methods = "all";
    options.statuses = "all";
    return options;
}

static inline struct trace *
loading_file(const char *path, struct trace_options options)
{
    struct trace *trace = NULL;
    enum trace_error error = trace_load(path, &options, &trace, loading_why, sizeof(loading_why));

    ck_assert_msg(error == TRACE_OK, "%d: %s", (int)error, loading_why);
    return trace;
}

static inline struct trace *
loading_bytes(const void *bytes, size_t len, struct trace_options options)
{
    return loading_file(scratch_write("trace", bytes, len), options);
}

static inline struct trace *
loading_text(const char *text, struct trace_options options)
{
    return loading_bytes(text, strlen(text), options);
}

/* What a file that is no good is refused with; the sentence is in loading_why. */
static inline enum trace_error
loading_refused(const char *path, struct trace_options options)
{
    struct trace *trace = NULL;
    enum trace_error error = trace_load(path, &options, &trace, loading_why, sizeof(loading_why));

    ck_assert_ptr_null(trace);
    return error;
}

/*
 * The requests, "URL@seconds=size/status ...", each part only if it is known; static memory of two
 * turns.
 */
static inline const char *
loading_picture(const struct trace *t)
{
    static char texts[2][4096];
    static unsigned turn;
    char *text = texts[turn++ % 2];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < t->request_count && len < sizeof(texts[0]) - 300; i++) {
        char digits[TRACE_URL_TEXT];
        struct span url = trace_url_text(t, t->ids[i], digits);

        len += (size_t)sprintf(text + len, "%s%.*s", i ? " " : "", (int)url.len, url.ptr);
        if (t->times_us)
            len += (size_t)sprintf(text + len, "@%g", (double)t->times_us[i] / 1e6);
        if (t->sizes && t->sizes[i] != TRACE_SIZE_UNKNOWN)
            len += (size_t)sprintf(text + len, "=%u", t->sizes[i]);
        if (t->statuses)
            len += (size_t)sprintf(text + len, "/%u", t->statuses[i]);
    }
    return text;
}

/*
 * The text is of this format and has these requests, whether its format is named or not; returns
 * the counts of the load without a name.
 */
static inline struct trace_counts
loading_expect(const char *text, const char *format, const char *requests)
{
    struct trace_options options = loading_all();
    struct trace *t = loading_text(text, options);
    struct trace_counts counts = t->counts;

    ck_assert_str_eq(t->format, format);
    ck_assert_str_eq(loading_picture(t), requests);
    trace_free(t);
    options.format = format;
    t = loading_text(text, options);
    ck_assert_str_eq(loading_picture(t), requests);
    trace_free(t);
    return counts;
}

#endif
