#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "client/replay/replay.h"
#include "cli/trace_options.h"

#define MAX_RUNS 1000 /* as --repeat takes */

/* The printed numbers: name in JSON, label, and computation. */
enum kind { COUNT, RATIO, DURATION, RATE };

static double
requests(const struct replay_result *r)
{
    return (double)r->requests;
}

static double
hits(const struct replay_result *r)
{
    return (double)r->outcomes[REPLAY_HIT];
}

static double
hit_ratio(const struct replay_result *r)
{
    return statistics_ratio(r->outcomes[REPLAY_HIT], r->requests);
}

static double
byte_hit_ratio(const struct replay_result *r)
{
    return statistics_ratio(r->bytes_hit, r->bytes);
}

/*
 * A request that waits for the fetch of an earlier one would be a hit if requests came one by one,
 * as they do in a simulation.
 */
static double
hit_ratio_with_coalesced(const struct replay_result *r)
{
    return statistics_ratio(r->outcomes[REPLAY_HIT] + r->outcomes[REPLAY_COALESCED], r->requests);
}

static double
byte_hit_ratio_with_coalesced(const struct replay_result *r)
{
    return statistics_ratio(r->bytes_hit + r->bytes_coalesced, r->bytes);
}

static double
coalesced(const struct replay_result *r)
{
    return (double)r->outcomes[REPLAY_COALESCED];
}

static double
evictions(const struct replay_result *r)
{
    return (double)r->evictions;
}

static double
failures(const struct replay_result *r)
{
    return (double)r->outcomes[REPLAY_FAILED];
}

static double
total_us(const struct replay_result *r)
{
    return (double)r->elapsed_us;
}

static double
per_second(const struct replay_result *r)
{
    return r->elapsed_us > 0 ? (double)r->requests * 1e6 / (double)r->elapsed_us : 0;
}

/* N departures are N - 1 intervals. */
static double
sent_per_second(const struct replay_result *r)
{
    int64_t us = r->last_sent_us - r->first_sent_us;

    return r->sent > 1 && us > 0 ? (double)(r->sent - 1) * 1e6 / (double)us : 0;
}

static double
late(const struct replay_result *r)
{
    return (double)r->late;
}

static double
max_behind_us(const struct replay_result *r)
{
    return (double)r->max_behind_us;
}

static double
mean_us(const struct replay_result *r)
{
    return r->times.mean;
}

static double
p50_us(const struct replay_result *r)
{
    return r->times.p50;
}

static double
p90_us(const struct replay_result *r)
{
    return r->times.p90;
}

static double
p99_us(const struct replay_result *r)
{
    return r->times.p99;
}

/* The results that have a figure. */
enum scope {
    ALWAYS,
    OF_PAGES,    /* those in which a request succeeded */
    OF_SCHEDULE, /* those of an open loop */
};

static const struct figure {
    const char *name;
    const char *label;
    enum kind kind;
    double (*of)(const struct replay_result *result);
    enum scope scope;
} figures[] = {
    {"requests", "requests", COUNT, requests, ALWAYS},
    {"hits", "hits", COUNT, hits, ALWAYS},
    {"coalesced", "coalesced", COUNT, coalesced, ALWAYS},
    {"hit_ratio_with_coalesced", "hit ratio, with coalesced", RATIO, hit_ratio_with_coalesced,
     OF_PAGES},
    {"hit_ratio", "hit ratio, hits alone", RATIO, hit_ratio, OF_PAGES},
    {"byte_hit_ratio_with_coalesced", "byte hit ratio, with coalesced", RATIO,
     byte_hit_ratio_with_coalesced, OF_PAGES},
    {"byte_hit_ratio", "byte hit ratio, hits alone", RATIO, byte_hit_ratio, OF_PAGES},
    {"evictions", "evictions", COUNT, evictions, ALWAYS},
    {"failures", "failures", COUNT, failures, ALWAYS},
    {"total_us", "total time", DURATION, total_us, ALWAYS},
    {"requests_per_second", "requests/s", RATE, per_second, ALWAYS},
    {"sent_per_second", "sent/s", RATE, sent_per_second, OF_SCHEDULE},
    {"late", "sent late", COUNT, late, OF_SCHEDULE},
    {"max_behind_us", "most behind schedule", DURATION, max_behind_us, OF_SCHEDULE},
    {"mean_us", "response time, mean", DURATION, mean_us, OF_PAGES},
    {"p50_us", "response time, p50", DURATION, p50_us, OF_PAGES},
    {"p90_us", "response time, p90", DURATION, p90_us, OF_PAGES},
    {"p99_us", "response time, p99", DURATION, p99_us, OF_PAGES},
};

#define FIGURES (sizeof(figures) / sizeof(figures[0]))

static bool
is_known(const struct figure *figure, const struct replay_result *result)
{
    switch (figure->scope) {
    case ALWAYS:
        break;
    case OF_PAGES:
        return result->times.count != 0;
    case OF_SCHEDULE:
        return result->sent != 0;
    }
    return true;
}

/* Mean and standard deviation of a figure over the runs that have it. False if none has. */
static bool
spread(const struct figure *figure, const struct replay_result *results, size_t count, double *mean,
       double *deviation)
{
    double values[MAX_RUNS];
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        if (is_known(figure, &results[i]))
            values[known++] = figure->of(&results[i]);
    if (known == 0)
        return false;
    *mean = statistics_mean(values, known);
    *deviation = statistics_deviation(values, known);
    return true;
}

/* ---- for people ------------------------------------------------------------------------------ */

static const char *
format(const struct figure *figure, double value, bool exact, char *text, size_t size)
{
    switch (figure->kind) {
    case COUNT:
        snprintf(text, size, exact ? "%.0f" : "%.1f", value);
        break;
    case RATIO:
        snprintf(text, size, "%.2f %%", value * 100);
        break;
    case RATE:
        snprintf(text, size, "%.1f", value);
        break;
    case DURATION:
        units_format_duration((int64_t)(value + 0.5), text, size);
        break;
    }
    return text;
}

static void
print_figures(struct columns *columns, const struct replay_result *results, size_t count)
{
    for (size_t i = 0; i < FIGURES; i++) {
        char middle[32], around[32];
        double mean, deviation;

        if (!spread(&figures[i], results, count, &mean, &deviation))
            continue;
        format(&figures[i], mean, count == 1, middle, sizeof(middle));
        columns_cell(columns, "%s", figures[i].label);
        columns_cell(columns, "%s", middle);
        if (count != 1)
            printf("  +- %s", format(&figures[i], deviation, false, around, sizeof(around)));
        columns_end(columns);
    }
}

void
replay_report_table(const struct replay_subject *subject, const struct replay_result *results,
                    size_t count)
{
    static const struct column list[] = {{NULL, -30, false}, {NULL, 14, false}};
    struct columns columns = {.out = stdout, .list = list, .count = 2};
    char capacity[64];

    output_put(subject->path);
    printf(" (%s, %zu requests) through ", subject->trace->format, subject->trace->request_count);
    output_put(subject->server);
    puts(subject->interrupted ? ", incomplete" : "");
    if (*subject->policy) {
        printf("policy ");
        output_put(subject->policy);
        printf(", %s, clients: %u\n",
               capacity_format(subject->capacity_urls, subject->capacity_bytes, capacity,
                               sizeof(capacity)),
               subject->jobs);
    }
    if (subject->rate > 0)
        printf("open loop: %.10g requests/s; response times begin at the scheduled time\n",
               subject->rate);
    if (count > 1)
        printf("mean and standard deviation of %zu runs\n", count);
    putchar('\n');
    columns_pair(&columns, "distinct URLs", "%zu", subject->trace->url_count);
    print_figures(&columns, results, count);
    if (count != 1)
        return;
    for (int i = 0; i < REPLAY_OUTCOMES; i++)
        if (i != REPLAY_HIT && i != REPLAY_COALESCED && i != REPLAY_FAILED &&
            results[0].outcomes[i] != 0)
            columns_pair(&columns, replay_outcome_name((enum replay_outcome)i), "%" PRIu64,
                         results[0].outcomes[i]);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
add_figure(struct json *j, const struct figure *figure, const char *name, double value, bool exact)
{
    if (exact && (figure->kind == COUNT || figure->kind == DURATION))
        json_double(j, name, value, figure->of == mean_us ? 1 : 0);
    else
        json_double(j, name, value, figure->kind == RATIO ? 6 : 3);
}

static void
add_run(struct json *j, const struct replay_result *result)
{
    json_open_object(j, NULL);
    for (size_t i = 0; i < FIGURES; i++)
        if (is_known(&figures[i], result))
            add_figure(j, &figures[i], figures[i].name, figures[i].of(result), true);
        else if (figures[i].scope == OF_PAGES)
            json_null(j, figures[i].name);
    if (result->times.count)
        json_uint(j, "max_us", result->times.max);
    else
        json_null(j, "max_us");
    json_uint(j, "bytes", result->bytes);
    json_uint(j, "bytes_hit", result->bytes_hit);
    json_uint(j, "bytes_coalesced", result->bytes_coalesced);
    json_open_object(j, "outcomes");
    for (int i = 0; i < REPLAY_OUTCOMES; i++)
        json_uint(j, replay_outcome_name((enum replay_outcome)i), result->outcomes[i]);
    json_close_object(j);
    json_close_object(j);
}

int
replay_report_json(const struct replay_subject *subject, const struct replay_result *results,
                   size_t count)
{
    struct buf out;
    struct json j;

    buf_init(&out, 4u << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_cstring(&j, "trace", subject->path);
    json_cstring(&j, "format", subject->trace->format);
    json_uint(&j, "requests", subject->trace->request_count);
    json_uint(&j, "distinct_urls", subject->trace->url_count);
    trace_json_left_out(&j, "left_out", &subject->trace->counts);
    json_cstring(&j, "server", subject->server);
    if (*subject->policy) {
        json_cstring(&j, "policy", subject->policy);
        json_uint(&j, "capacity_urls", subject->capacity_urls);
        json_uint(&j, "capacity_bytes", subject->capacity_bytes);
    }
    json_uint(&j, "clients", subject->jobs);
    if (subject->rate > 0)
        json_double(&j, "open_loop", subject->rate, 3);
    else
        json_null(&j, "open_loop");
    json_bool(&j, "interrupted", subject->interrupted);
    json_open_array(&j, "runs");
    for (size_t i = 0; i < count; i++)
        add_run(&j, &results[i]);
    json_close_array(&j);
    for (int deviation = 0; deviation < 2; deviation++) {
        json_open_object(&j, deviation ? "standard_deviation" : "mean");
        for (size_t i = 0; i < FIGURES; i++) {
            double of[2];

            if (spread(&figures[i], results, count, &of[0], &of[1]))
                add_figure(&j, &figures[i], figures[i].name, of[deviation], false);
            else if (figures[i].scope == OF_PAGES)
                json_null(&j, figures[i].name);
        }
        json_close_object(&j);
    }
    json_close_object(&j);
    return output_json(&out);
}
