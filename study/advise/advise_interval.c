/*
 * The runs behind the interval of a recommendation (study/forecast.h): the trace cut into parts,
 * each simulated with an empty cache; caches of pages with other header fields; and samples of a
 * sample.
 */
#include <math.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cli/output.h"
#include "sim/sample.h"
#include "study/advise/advise.h"

#define FEWEST_REQUESTS 8u /* of a part */
#define SAMPLES 8u         /* of a sample, */
#define SAMPLE_RATE 0.25   /* of which each has this share of its pages */

/* Header fields whose influence is simulated, in the order of enum. */
enum { LOW_95, LOW_68, HIGH_68, HIGH_95, HEADERS };

static const double header_factors[HEADERS] = {1 / (ADVICE_HEADER_FACTOR * ADVICE_HEADER_FACTOR),
                                               1 / ADVICE_HEADER_FACTOR, ADVICE_HEADER_FACTOR,
                                               ADVICE_HEADER_FACTOR *ADVICE_HEADER_FACTOR};

/* All that is simulated for an interval, at once. */
struct runs {
    struct sim_job *jobs;     /* owned: of parts, then of header fields, then of samples */
    struct sim_trace *traces; /* owned: by job */
    size_t count;
    size_t parts, headers;              /* jobs of each */
    uint32_t *charges[HEADERS];         /* owned */
    struct sim_sample samples[SAMPLES]; /* owned */
    unsigned sample_count;
};

static void
runs_free(struct runs *runs)
{
    for (size_t i = 0; i < HEADERS; i++)
        free(runs->charges[i]);
    for (size_t i = 0; i < SAMPLES; i++)
        sim_sample_free(&runs->samples[i]);
    free(runs->jobs);
    free(runs->traces);
}

/* ---- what is run ----------------------------------------------------------------------------- */

/* The ratios of a sample's runs are compared with each other, so they are not estimates. */
static struct sim_job *
add_job(struct runs *runs, const struct sim_job *like, const struct sim_trace *trace)
{
    struct sim_job *job = &runs->jobs[runs->count];

    runs->traces[runs->count] = *trace;
    *job = *like;
    job->trace = &runs->traces[runs->count++];
    job->config.warmup = 0;
    job->config.sampling = NULL;
    job->runs = 1;
    return job;
}

static void
add_parts(struct runs *runs, const struct sim_job *whole)
{
    size_t first = whole->config.warmup, count = whole->trace->request_count - first;

    for (unsigned parts = 2; parts <= FORECAST_PARTS; parts *= 2) {
        if (count / parts < FEWEST_REQUESTS)
            break;
        for (size_t i = 0; i < parts; i++) {
            struct sim_trace trace = *whole->trace;
            size_t from = first + count * i / parts, to = first + count * (i + 1) / parts;

            trace.request_count = to - from;
            trace.ids += from;
            if (trace.sizes)
                trace.sizes += from;
            if (trace.times_us)
                trace.times_us += from;
            trace.distinct_bytes = 0;
            trace.next = NULL;
            add_job(runs, whole, &trace);
        }
    }
    runs->parts = runs->count;
}

static bool
add_headers(struct runs *runs, const struct advice *advice, const struct sim_job *whole)
{
    const struct sim_trace *trace = whole->trace;
    double assumed = (double)advice->options->header_bytes;

    if (!advice->subject->whole_pages || advice->options->header_bytes_given)
        return true;
    for (size_t i = 0; i < HEADERS; i++) {
        uint64_t bytes = (uint64_t)round(assumed * header_factors[i]);
        struct sim_trace other = *trace;
        struct sim_job *job;

        runs->charges[i] = malloc((trace->page_count + 1) * sizeof(*runs->charges[i]));
        if (!runs->charges[i])
            return false;
        for (size_t page = 0; page < trace->page_count; page++)
            runs->charges[i][page] =
                (uint32_t)(trace->charges[page] - advice->options->header_bytes + bytes);
        other.charges = runs->charges[i];
        other.all_charges += trace->page_count * bytes;
        other.all_charges -= trace->page_count * advice->options->header_bytes;
        job = add_job(runs, whole, &other);
        job->config.warmup = whole->config.warmup;
    }
    runs->headers = HEADERS;
    return true;
}

static bool
add_samples(struct runs *runs, const struct advice *advice, const struct sim_job *whole)
{
    if (advice->subject->rate >= 1)
        return true;
    for (size_t i = 0; i < SAMPLES; i++) {
        struct sim_sample *sample = &runs->samples[i];
        struct sim_job *job;

        if (!sim_sample_make(whole->trace, SAMPLE_RATE, advice->options->seed + 1 + i,
                             whole->config.warmup, sample))
            return false;
        if (sample->trace.page_count == 0 || sample->trace.request_count == sample->warmup)
            continue;
        sample->trace.distinct_bytes = 0;
        job = add_job(runs, whole, &sample->trace);
        job->config.warmup = sample->warmup;
        job->config.sampling = &sample->sampling;
        job->config.capacity_pages =
            sim_sample_capacity(whole->config.capacity_pages, sample->sampling.rate);
        job->config.capacity_bytes =
            sim_sample_capacity(whole->config.capacity_bytes, sample->sampling.rate);
        runs->sample_count++;
    }
    return true;
}

static bool
runs_make(struct runs *runs, const struct advice *advice, const struct candidate *best)
{
    size_t most = 2 * FORECAST_PARTS + HEADERS + SAMPLES;
    struct sim_job whole = advice_job(advice, &best->spec, best->size);

    *runs = (struct runs){.jobs = calloc(most, sizeof(*runs->jobs)),
                          .traces = calloc(most, sizeof(*runs->traces))};
    if (!runs->jobs || !runs->traces)
        return false;
    add_parts(runs, &whole);
    return add_headers(runs, advice, &whole) && add_samples(runs, advice, &whole);
}

/* ---- what comes of it ------------------------------------------------------------------------ */

static double
plain_ratio(const struct advice *advice, const struct sim_result *r)
{
    uint64_t part = advice->by_bytes ? r->bytes_hit : r->hits;
    uint64_t whole = advice->by_bytes ? r->bytes : r->requests;

    return whole ? (double)part / (double)whole : 0;
}

double
advice_whole_per_sample(const struct advice *advice)
{
    const struct sim_sampling *sampling = &advice->subject->sample.sampling;
    const struct candidate *best = advice_best(advice);
    double drawn, meant;

    if (advice->subject->rate >= 1 || !best)
        return 1;
    drawn = (double)(advice->by_bytes ? best->at_best.result.bytes : best->at_best.result.requests);
    meant = sampling->rate * (double)(advice->by_bytes ? sampling->bytes : sampling->requests);
    return meant > 0 ? drawn / meant : 1;
}

static void
take_parts(const struct advice *advice, const struct runs *runs, struct forecast *forecast)
{
    size_t at = 0;

    for (unsigned parts = 2; at < runs->parts; parts *= 2) {
        struct forecast_scale *scale = &forecast->scales[forecast->scale_count++];

        scale->parts = parts;
        for (unsigned i = 1; i < parts; i++) {
            double step = advice_whole_per_sample(advice) *
                          (plain_ratio(advice, &runs->jobs[at + i].result) -
                           plain_ratio(advice, &runs->jobs[at + i - 1].result));

            scale->mean_square += step * step / (parts - 1);
        }
        at += parts;
    }
}

/* How far the ratio moves with each number of header bytes. */
static void
take_headers(const struct advice *advice, const struct runs *runs, const struct candidate *best,
             struct forecast *forecast)
{
    const struct sim_job *jobs = &runs->jobs[runs->parts];
    double moves[HEADERS], ratio = plain_ratio(advice, &best->at_best.result);

    if (runs->headers == 0)
        return;
    for (size_t i = 0; i < HEADERS; i++)
        moves[i] = advice_whole_per_sample(advice) * (plain_ratio(advice, &jobs[i].result) - ratio);
    forecast->rises[0] = fmax(0, fmax(moves[LOW_68], moves[HIGH_68]));
    forecast->falls[0] = fmax(0, fmax(-moves[LOW_68], -moves[HIGH_68]));
    forecast->rises[1] = fmax(forecast->rises[0], fmax(moves[LOW_95], moves[HIGH_95]));
    forecast->falls[1] = fmax(forecast->falls[0], fmax(-moves[LOW_95], -moves[HIGH_95]));
}

/*
 * Of n of the sample's pages drawn at random, the ratio varies by (1 - q) / q times the variance of
 * the sample's own ratio around that of all its pages' population, and the sample itself, with
 * share p of the trace's pages, by (1 - p) times that. What smaller samples have in common, the
 * distance of their mean from the sample's ratio, is a bias that a sample of this policy has. It is
 * added in full where the sample is as much smaller than the trace as they are than the sample, or
 * more, else in proportion to the logarithms of the shares: all pages have none.
 */
static double
sample_error(const struct advice *advice, const struct runs *runs, const struct candidate *best)
{
    const struct sim_job *jobs = &runs->jobs[runs->parts + runs->headers];
    double mean = 0, squares = 0, count = runs->sample_count, p, ratio;

    if (runs->sample_count < 2)
        return advice->subject->rate < 1 ? ADVICE_UNKNOWN : 0;
    p = advice->subject->sample.sampling.rate;
    ratio = plain_ratio(advice, &best->at_best.result);
    for (size_t i = 0; i < runs->sample_count; i++)
        mean += advice_goal(advice, &jobs[i].result) / count;
    for (size_t i = 0; i < runs->sample_count; i++)
        squares += pow(advice_goal(advice, &jobs[i].result) - mean, 2);
    return advice_whole_per_sample(advice) *
           hypot(sqrt(squares / (count - 1) * (1 - p) * SAMPLE_RATE / (1 - SAMPLE_RATE)),
                 (mean - ratio) * fmin(1, log(p) / log(SAMPLE_RATE)));
}

double
advice_header_bytes(const struct advice *advice, bool high)
{
    return round((double)advice->options->header_bytes * header_factors[high ? HIGH_95 : LOW_95]);
}

int
advice_find_interval(struct advice *advice, const struct candidate *best)
{
    struct runs runs;
    int status = EX_OK;

    advice->forecast = (struct forecast){
        .ratio = advice_goal(advice, &best->at_best.result),
        .requests = (double)(advice->subject->sim.request_count - advice->subject->warmup),
    };
    if (!runs_make(&runs, advice, best)) {
        output_complain("out of memory");
        status = EX_SOFTWARE;
    } else {
        status = advice_run(advice, runs.jobs, runs.count);
    }
    if (status == EX_OK) {
        take_parts(advice, &runs, &advice->forecast);
        take_headers(advice, &runs, best, &advice->forecast);
        advice->sample_error = sample_error(advice, &runs, best);
        advice->forecast.chance =
            hypot(advice->sample_error, advice->by_bytes ? best->at_best.spread.byte_hit_ratio
                                                         : best->at_best.spread.hit_ratio);
        forecast_compute(&advice->forecast);
    }
    runs_free(&runs);
    return status;
}
