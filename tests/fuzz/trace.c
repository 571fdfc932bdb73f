/*
 * A file that is loaded as a trace. The first byte chooses the format (0: by its content; one above
 * the number of formats: a table with a list of columns; then format strings) and the second the options; whatever loads
 * is consistent. The seeds of a format load as that format.
 */
#include "trace/trace.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Names of seeds and the formats that they are loaded as. */
static const struct {
    const char *seed, *format;
} loading[] = {
    {"adaptsize", "adaptsize"},
    {"alb", "alb"},
    {"caddy", "caddy"},
    {"chrome", "chrome"},
    {"chrome-all", "chrome"},
    {"combined", "access"},
    {"combined-all", "access"},
    {"firefox", "firefox"},
    {"haproxy", "haproxy"},
    {"har", "har"},
    {"ids", "ids"},
    {"ltsv", "ltsv"},
    {"nginx-json", "nginx-json"},
    {"oracle", "oracle"},
    {"pattern-0", "format string"},
    {"pattern-1", "format string"},
    {"pattern-2", "format string"},
    {"request-db", "request-db"},
    {"s3", "s3"},
    {"safari", "safari"},
    {"squid", "squid"},
    {"squid-all", "squid"},
    {"sunproxyd", "sunproxyd"},
    {"sunproxyd-json", "sunproxyd"},
    {"table", "table"},
    {"table-columns", "table"},
    {"traefik", "traefik"},
    {"urls", "urls"},
    {"urls-bzip2", "urls"},
    {"urls-gzip", "urls"},
    {"w3c", "w3c"},
    {"wc98", "wc98"},
    {"zeek", "zeek"},
};

static const char *const patterns[] = {
    "%v:%p %h %l %u %t \"%r\" %>s %b \"%{User-Agent}i\"",
    "%{%FT%T}t.%{usec_frac}t|%m|%{url}x|%{outcome}x|%s|%B",
    "%{msec}t %V %U%q %200{Referer}i",
};

#define FUZZ_PATTERNS (sizeof(patterns) / sizeof(patterns[0]))

/* The format that the input must be loaded as; NULL: it may be refused. */
static const char *
expected_format(void)
{
    for (size_t i = 0; fuzz_seed && i < sizeof(loading) / sizeof(loading[0]); i++) {
        if (strcmp(loading[i].seed, fuzz_seed) == 0)
            return loading[i].format;
    }
    return NULL;
}

static void
check_trace(const struct trace *trace)
{
    uint32_t next = 0;

    FUZZ_CHECK(trace->request_count > 0 && trace->request_count == trace->counts.requests);
    FUZZ_CHECK(trace->url_count > 0 && trace->url_count <= trace->request_count);
    FUZZ_CHECK(!trace->urls != !trace->numbers);
    for (size_t i = 0; i < trace->request_count; i++) {
        FUZZ_CHECK(trace->ids[i] <= next);
        next += trace->ids[i] == next;
    }
    FUZZ_CHECK(next == trace->url_count);
    for (size_t i = 0; trace->urls && i < trace->url_count; i++)
        FUZZ_CHECK(trace->urls[i].len > 0 && trace->urls[i].ptr[trace->urls[i].len] == '\0');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    unsigned formats = 0, wanted, flags;
    const char *expected = expected_format();
    char why[2048] = "";
    struct trace *trace;

    while (trace_formats[formats])
        formats++;
    wanted = fuzz_byte(&input) % (formats + 2 + (unsigned)FUZZ_PATTERNS);
    flags = fuzz_byte(&input);
    if (wanted > formats + 1)
        options.format = patterns[wanted - formats - 2];
    else if (wanted > formats)
        options.columns = "time,url,size";
    else
        options.format = wanted ? trace_formats[wanted - 1]->name : NULL;
    options.methods = flags & 1 ? "all" : NULL;
    options.statuses = flags & 2 ? "all" : NULL;
    options.redirects = flags & 4 ? TRACE_REDIRECTS_KEEP : TRACE_REDIRECTS_DEFAULT;
    options.all_schemes = flags & 8;
    options.base_urls = flags & 16;
    options.cut_query = flags & 32;
    options.unique = flags & 64;
    options.sizes_as_read = flags & 128;
    if (trace_load(fuzz_file(input), &options, &trace, why, sizeof(why)) == TRACE_OK) {
        check_trace(trace);
        FUZZ_CHECK(!expected || strcmp(trace->format, expected) == 0);
        trace_free(trace);
    } else {
        if (expected)
            fprintf(stderr, "%s: %s\n", fuzz_seed, why);
        FUZZ_CHECK(!trace && why[0] && !expected);
    }
    return 0;
}
