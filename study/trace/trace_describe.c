/*
 * sunproxy trace describe: statistics of a trace.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/output.h"
#include "study/simulate/simulate_sizes.h"
#include "study/trace/trace.h"
#include "cli/trace_options.h"
#include "sim/curve.h"
#include "trace/facts.h"

#define MICRO 1000000
/* 1990-01-01, before the web: earlier times count from the trace's beginning, and are no dates. */
#define EARLIEST_DATE_US (INT64_C(631152000) * MICRO)

struct describe_options {
    struct trace_options trace;
    uint64_t busiest;
    bool json;
    bool separate;
};

#define AT(field) offsetof(struct describe_options, field)

static const struct option_row rows[] = {
    TRACE_SEPARATE_ROW(struct describe_options),
    {"busiest", 0, "N", option_uint, AT(busiest), 0, UINT32_MAX, "10",
     "number of URLs in the list of the most frequent ones"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print one JSON object per trace, one per line"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* The facts, and the numbers of other URLs between two requests for the same one. */
struct description {
    const char *path; /* of the first file */
    size_t files;
    bool by_time;
    const struct trace *trace;
    struct trace_facts facts;
    struct trace_percentiles reuse;

    /* As simulations count them: unknown sizes are assumed, if most are known. */
    struct trace_totals totals;
    struct simulate_sizes_known assumed;
    bool sized; /* totals has bytes */
};

/* The percentiles of a set; the names of members in JSON and of columns alike. */
static const char *const percentile_names[] = {"mean", "min", "p10", "p25", "p50",
                                               "p75",  "p90", "p99", "max"};
#define PERCENTILES (sizeof(percentile_names) / sizeof(percentile_names[0]))

static void
values_of(const struct trace_percentiles *p, double values[PERCENTILES])
{
    const double all[PERCENTILES] = {p->mean, p->min, p->p10, p->p25, p->p50,
                                     p->p75,  p->p90, p->p99, p->max};

    memcpy(values, all, sizeof(all));
}

/* ---- reuse ----------------------------------------------------------------------------------- */

/* The smallest distance that this share of the reuses does not exceed. */
static uint32_t
reuse_percentile(const struct sim_curve *curve, uint64_t reuses, unsigned percent)
{
    double rank = (double)reuses * percent / 100;
    size_t size = sim_curve_find(curve, rank < 1 ? 1 : rank);

    return (uint32_t)(size - 1);
}

/*
 * A cache of k pages under LRU hits exactly the reuses of distance less than k, so its curve holds
 * all distances.
 */
static int
measure_reuse(struct description *d)
{
    const struct trace *t = d->trace;
    struct sim_trace pages = {
        .request_count = t->request_count, .ids = t->ids, .page_count = t->url_count};
    struct sim_curve curve;
    enum sim_error error = sim_curve_make(&pages, 0, NULL, &curve);
    uint64_t reuses;
    double sum = 0;

    if (error != SIM_OK) {
        output_complain("%s: %s", d->path, sim_strerror(error));
        return error == SIM_TOO_MANY ? EX_DATAERR : EX_SOFTWARE;
    }
    reuses = curve.hits[curve.page_count];
    for (size_t k = 1; k <= curve.page_count; k++)
        sum += (double)(curve.hits[k] - curve.hits[k - 1]) * (double)(k - 1);
    if (reuses != 0)
        d->reuse = (struct trace_percentiles){
            .count = reuses,
            .mean = sum / (double)reuses,
            .min = reuse_percentile(&curve, reuses, 0),
            .p10 = reuse_percentile(&curve, reuses, 10),
            .p25 = reuse_percentile(&curve, reuses, 25),
            .p50 = reuse_percentile(&curve, reuses, 50),
            .p75 = reuse_percentile(&curve, reuses, 75),
            .p90 = reuse_percentile(&curve, reuses, 90),
            .p99 = reuse_percentile(&curve, reuses, 99),
            .max = reuse_percentile(&curve, reuses, 100),
        };
    sim_curve_free(&curve);
    return EX_OK;
}

/* ---- bytes ------------------------------------------------------------------------------- */

static int
assume_sizes(struct description *d)
{
    const struct trace *t = d->trace;
    uint32_t *sizes = malloc(t->request_count * sizeof(*sizes));
    const struct trace_requests requests = {
        .count = t->request_count, .ids = t->ids, .sizes = sizes, .url_count = t->url_count};
    int status;

    if (!sizes) {
        output_complain("%s: out of memory", d->path);
        return EX_SOFTWARE;
    }
    memcpy(sizes, t->sizes, t->request_count * sizeof(*sizes));
    status = simulate_sizes_complete(d->path, t, sizes, &d->assumed);
    if (status == EX_OK && !trace_totals_make(&requests, &d->totals)) {
        output_complain("%s: out of memory", d->path);
        status = EX_SOFTWARE;
    }
    free(sizes);
    return status;
}

/* Fills in totals. As simulations do, it makes no sums of bytes if most sizes are unknown. */
static int
measure_bytes(struct description *d, bool as_read)
{
    int status;

    d->totals = d->facts.totals;
    d->sized = d->facts.has_sizes;
    if (!d->sized || as_read || d->facts.unknown_sizes == 0)
        return EX_OK;
    status = assume_sizes(d);
    if (status != EX_DATAERR)
        return status;
    output_complain("%s: bytes are not summed up, because the sizes of %" PRIu64 " of %" PRIu64
                    " URLs are unknown",
                    d->path, d->assumed.unknown, d->assumed.known + d->assumed.unknown);
    d->assumed = (struct simulate_sizes_known){0};
    d->sized = false;
    return EX_OK;
}

/* ---- for people ------------------------------------------------------------------------------ */

static double
percent(uint64_t part, uint64_t whole)
{
    return whole ? 100 * (double)part / (double)whole : 0;
}

static const char *
format_date(int64_t us, char *text, size_t size)
{
    time_t seconds = (time_t)(us / MICRO - (us % MICRO < 0));
    struct tm tm;

    if (!gmtime_r(&seconds, &tm) || strftime(text, size, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        snprintf(text, size, "%lld", (long long)seconds);
    return text;
}

/* "1 request", "2 requests". */
static const char *
format_count(uint64_t count, const char *noun, char *text, size_t size)
{
    snprintf(text, size, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
    return text;
}

/* In six characters: millions and billions with a letter. */
static void
print_value(double value)
{
    if (value < 1e6)
        printf(" %6.0f", value);
    else
        printf(" %5.1f%c", value < 1e9 ? value / 1e6 : value / 1e9, value < 1e9 ? 'M' : 'G');
}

static void
print_percentiles(const char *label, const struct trace_percentiles *p)
{
    double values[PERCENTILES];

    if (p->count == 0)
        return;
    values_of(p, values);
    printf("%-15s", label);
    for (size_t i = 0; i < PERCENTILES; i++)
        print_value(values[i]);
    putchar('\n');
}

static void
print_times(const struct trace_facts *f)
{
    char span[32], from[32], to[32];
    int64_t us;

    if (__builtin_sub_overflow(f->last_us, f->first_us, &us))
        us = INT64_MAX;
    printf("%-15s %s", "span", units_format_duration(us, span, sizeof(span)));
    if (f->first_us >= EARLIEST_DATE_US)
        printf(", from %s to %s UTC", format_date(f->first_us, from, sizeof(from)),
               format_date(f->last_us, to, sizeof(to)));
    if (f->out_of_order)
        printf("; %s out of order", format_count(f->out_of_order, "request", span, sizeof(span)));
    putchar('\n');
}

static void
print_sizes(const struct description *d)
{
    const struct trace_facts *f = &d->facts;
    const struct trace_counts *counts = &d->trace->counts;
    char bytes[32], unique[32], inferred[32], count[48];

    printf("%-15s ", "bytes");
    if (d->sized)
        printf("%s requested, %s in distinct URLs, ",
               units_format_bytes(d->totals.bytes, bytes, sizeof(bytes)),
               units_format_bytes(d->totals.distinct_bytes, unique, sizeof(unique)));
    printf("%s of size", format_count(f->size_changes, "change", count, sizeof(count)));
    if (counts->inferred_sizes)
        printf("; %s inferred for %s",
               units_format_bytes(counts->inferred_bytes, inferred, sizeof(inferred)),
               format_count(counts->inferred_sizes, "request", count, sizeof(count)));
    if (d->assumed.unknown)
        printf("; %" PRIu32 " B assumed for %s", d->assumed.median,
               format_count(d->assumed.unknown, "URL", count, sizeof(count)));
    else if (f->unknown_sizes)
        printf("; unknown for %s", format_count(f->unknown_sizes, "request", count, sizeof(count)));
    putchar('\n');
}

static void
print_busiest(const struct description *d)
{
    const struct trace_facts *f = &d->facts;
    uint64_t sum = 0;

    if (f->busiest_count == 0)
        return;
    printf("\n%8s %12s %8s %8s  %s\n", "rank", "requests", "share", "in all", "URL");
    for (size_t i = 0; i < f->busiest_count; i++) {
        char digits[TRACE_URL_TEXT];
        struct span url = trace_url_text(d->trace, f->busiest[i].id, digits);

        sum += f->busiest[i].requests;
        printf("%8zu %12" PRIu64 " %6.2f %% %6.2f %%  ", i + 1, f->busiest[i].requests,
               percent(f->busiest[i].requests, f->requests), percent(sum, f->requests));
        printable_write(stdout, url);
        putchar('\n');
    }
}

static void
print_description(const struct description *d)
{
    const struct trace_facts *f = &d->facts;
    const struct trace_counts *counts = &d->trace->counts;

    trace_print_name(d->path, d->files, d->by_time);
    printf(" (%s)\n\n", d->trace->format);
    printf("%-15s %" PRIu64 "\n", "requests", f->requests);
    printf("%-15s %" PRIu64 "\n", "distinct URLs", f->urls);
    printf("%-15s %" PRIu64 ", %.1f %% of the URLs\n", "one-hit wonders", f->one_hit,
           percent(f->one_hit, f->urls));
    printf("%-15s hits %.2f %% of the requests", "infinite cache",
           100 * trace_totals_hit_ratio(&d->totals));
    if (d->sized)
        printf(", %.2f %% of the bytes", 100 * trace_totals_byte_hit_ratio(&d->totals));
    if (counts->logged_outcomes != 0)
        printf("\n%-15s hits %.2f %% of the requests", "as logged",
               percent(counts->logged_hits, counts->logged_outcomes));
    printf("\n%-15s %.3f (maximum likelihood over the ranks)\n", "Zipf exponent", f->zipf);
    if (f->has_times)
        print_times(f);
    if (f->has_sizes)
        print_sizes(d);
    if (f->has_sizes || d->reuse.count) {
        printf("\n%-15s", "");
        for (size_t i = 0; i < PERCENTILES; i++)
            printf(" %6s", percentile_names[i]);
        putchar('\n');
    }
    print_percentiles("size, requests", &f->request_sizes);
    print_percentiles("size, URLs", &f->url_sizes);
    print_percentiles("reuse distance", &d->reuse);
    print_busiest(d);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
add_percentiles(struct json *j, const char *name, const struct trace_percentiles *p)
{
    double values[PERCENTILES];

    if (p->count == 0) {
        json_null(j, name);
        return;
    }
    values_of(p, values);
    json_open_object(j, name);
    json_uint(j, "count", p->count);
    for (size_t i = 0; i < PERCENTILES; i++)
        json_double(j, percentile_names[i], values[i], i == 0 ? 3 : 0);
    json_close_object(j);
}

static void
add_busiest(struct json *j, const struct description *d)
{
    json_open_array(j, "busiest");
    for (size_t i = 0; i < d->facts.busiest_count; i++) {
        const struct trace_busy *busy = &d->facts.busiest[i];
        char digits[TRACE_URL_TEXT];

        json_open_object(j, NULL);
        json_string(j, "url", trace_url_text(d->trace, busy->id, digits));
        json_uint(j, "requests", busy->requests);
        json_double(j, "share", (double)busy->requests / (double)d->facts.requests, 6);
        json_close_object(j);
    }
    json_close_array(j);
}

static int
print_json(const struct description *d)
{
    const struct trace_facts *f = &d->facts;
    struct buf out;
    struct json j;

    buf_init(&out, 1U << 30U);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_cstring(&j, "trace", d->path);
    json_uint(&j, "files", d->files);
    json_cstring(&j, "format", d->trace->format);
    json_uint(&j, "requests", f->requests);
    json_uint(&j, "distinct_urls", f->urls);
    json_uint(&j, "one_hit_wonders", f->one_hit);
    if (d->sized) {
        json_uint(&j, "bytes", d->totals.bytes);
        json_uint(&j, "distinct_bytes", d->totals.distinct_bytes);
    } else {
        json_null(&j, "bytes");
        json_null(&j, "distinct_bytes");
    }
    trace_json_infinite(&j, &d->totals, d->sized);
    json_double(&j, "zipf_exponent", f->zipf, 4);
    trace_json_left_out(&j, "left_out", &d->trace->counts);
    json_uint(&j, "remarks", d->trace->counts.remark_count);
    if (d->trace->counts.logged_outcomes != 0) {
        json_uint(&j, "logged_hits", d->trace->counts.logged_hits);
        json_uint(&j, "logged_outcomes", d->trace->counts.logged_outcomes);
    }
    if (f->has_times) {
        json_int(&j, "first_us", f->first_us);
        json_int(&j, "last_us", f->last_us);
        json_uint(&j, "out_of_order", f->out_of_order);
    }
    if (f->has_sizes) {
        json_uint(&j, "size_changes", f->size_changes);
        json_uint(&j, "sizes_unknown", f->unknown_sizes);
        json_uint(&j, "sizes_assumed", d->assumed.unknown);
        json_uint(&j, "sizes_too_large", d->trace->counts.large_sizes);
        json_uint(&j, "sizes_inferred", d->trace->counts.inferred_sizes);
        json_uint(&j, "bytes_inferred", d->trace->counts.inferred_bytes);
    }
    add_percentiles(&j, "size_by_request", &f->request_sizes);
    add_percentiles(&j, "size_by_url", &f->url_sizes);
    add_percentiles(&j, "reuse_distance", &d->reuse);
    add_busiest(&j, d);
    json_close_object(&j);
    return output_json(&out);
}

/* ------------------------------------------------------------------------------------------------
 */

static int
measure(struct description *d, const struct describe_options *options)
{
    int status;

    if (trace_facts_make(d->trace, options->busiest, &d->facts) != TRACE_OK) {
        output_complain("%s: out of memory", d->path);
        return EX_SOFTWARE;
    }
    status = measure_bytes(d, options->trace.sizes_as_read);
    return status == EX_OK ? measure_reuse(d) : status;
}

/* Files that are one trace. */
static int
describe_trace(char *const *paths, size_t files, const struct describe_options *options)
{
    struct description d = {.path = paths[0], .files = files};
    struct trace *trace;
    int status = trace_open_files(paths, files, &options->trace, &trace, &d.by_time);

    if (status != EX_OK)
        return status;
    d.trace = trace;
    status = measure(&d, options);
    if (status == EX_OK && options->json)
        status = print_json(&d);
    else if (status == EX_OK)
        print_description(&d);
    trace_facts_free(&d.facts);
    trace_free(trace);
    return status;
}

static int
describe(int argc, char **argv)
{
    struct describe_options options = {.trace = TRACE_OPTIONS_DEFAULT};
    void *const into[] = {&options, &options.trace, &options.trace};
    int status = command_read(&command_trace_describe, into, argc, argv);
    size_t files;

    if (status != COMMAND_GO_ON)
        return status;
    status = EX_OK;
    files = options.separate ? 1 : (size_t)(argc - optind);
    for (int i = optind; i < argc; i += (int)files) {
        int of_this;

        if (i != optind && !options.json)
            putchar('\n');
        of_this = describe_trace(argv + i, files, &options);
        if (status == EX_OK)
            status = of_this;
    }
    return status;
}

const struct command command_trace_describe = {
    .name = "trace describe",
    .summary = "print statistics of a trace",
    .about = "usage: sunproxy trace describe [OPTION...] TRACE...\n\n"
             "Prints of a trace the number of requests and distinct URLs, the URLs with\n"
             "one request only, the hit ratio of an infinite cache, the exponent of Zipf's\n"
             "law, bytes, sizes, times, reuse distances (the number of other URLs between two\n"
             "requests for the same one; a cache of N URLs under LRU hits the reuses at\n"
             "distances below N), and the most frequent URLs. Several files are one trace,\n"
             "unless --separate is given.\n\n"
             "The exponent of Zipf's law is the one that makes the counts most likely when\n"
             "each URL's rank is its place among them; few requests for each URL make it\n"
             "too large.\n",
    .options = {&own, &trace_option_group, &trace_sizes_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "74 output could not be written.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = describe,
};
