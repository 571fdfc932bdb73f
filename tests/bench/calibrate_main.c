/*
 * Calibration of the errors that the simulator states for samples (sim/estimate.h): of how many
 * samples is the truth within 1.96 standard errors, by policy, by the unit of the capacity and by
 * ratio. Prints a line for each of them, and beside it what sim/calibrated.c says.
 *
 *     calibrate [-s SAMPLES] [-r RATE] [-p POLICY] [-v] [TRACE...]
 *
 * Four generated traces are always measured, and the files of traces that are given. Without a
 * rate, samples of 10 % and of 30 % are drawn.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "sim/calibrated.h"
#include "sim/sample.h"
#include "sim/sweep.h"
#include "trace/generate.h"
#include "trace/totals.h"

#define SEEDS 3u /* of policies that draw, for the truth and for each sample */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const double shares[] = {0.05, 0.2, 0.5}; /* of all URLs or bytes, as the capacity */
static const double rates[] = {0.1, 0.3};        /* of the samples */

/* Unit of the capacity by ratio; in the order of the bits of sim/calibrated.h. */
enum kind { URLS_HITS, URLS_BYTES, BYTES_HITS, BYTES_BYTES, KINDS };

static const char *const kind_names[KINDS] = {"urls hit_ratio", "urls byte_hit_ratio",
                                              "bytes hit_ratio", "bytes byte_hit_ratio"};

struct options {
    unsigned samples;
    double rate;        /* 0: each of `rates` */
    const char *policy; /* NULL: all */
    bool verbose;
};

struct subject {
    const char *name;
    struct trace *trace;
    struct sim_trace sim;
    uint32_t *next;
    uint64_t bytes; /* 0: no sizes */
};

static struct calibration tallies[KINDS][256]; /* by policy of the registry */
static unsigned within_one[KINDS][256];        /* samples with the truth within one error */

/* ---- traces ---------------------------------------------------------------------------------- */

static void
die(const char *what)
{
    fprintf(stderr, "calibrate: %s\n", what);
    exit(EX_SOFTWARE);
}

static struct trace *
generated(const char *workload, double constant, const char *sizes, uint64_t seed)
{
    const struct generate_workload *found = generate_find(workload);
    struct generate_options options = found->defaults;
    struct trace *trace = NULL;
    uint8_t *writes = NULL;
    char why[256];

    options.requests = 300000;
    options.urls = 60000;
    if (found->has_constant)
        options.constant = constant;
    options.seed = seed;
    if (!generate_parse_sizes(sizes, &options.sizes, why, sizeof(why)) ||
        generate_trace(found, &options, &trace, &writes, why, sizeof(why)) != TRACE_OK)
        die("a trace cannot be generated");
    free(writes);
    return trace;
}

static bool
has_sizes(const struct trace *trace)
{
    for (size_t i = 0; trace->sizes && i < trace->request_count; i++)
        if (trace->sizes[i] == TRACE_SIZE_UNKNOWN)
            return false;
    return trace->sizes != NULL;
}

static void
subject_init(struct subject *subject, const char *name, struct trace *trace)
{
    struct trace_requests requests = {
        .count = trace->request_count, .ids = trace->ids, .url_count = trace->url_count};
    struct trace_totals totals;

    *subject = (struct subject){.name = name, .trace = trace};
    subject->sim = (struct sim_trace){.request_count = trace->request_count,
                                      .ids = trace->ids,
                                      .sizes = has_sizes(trace) ? trace->sizes : NULL,
                                      .page_count = trace->url_count,
                                      .keys = trace->keys};
    subject->next = sim_next(&subject->sim);
    requests.sizes = subject->sim.sizes;
    if (!subject->next || !trace_totals_make(&requests, &totals))
        die("out of memory");
    subject->sim.next = subject->next;
    if (subject->sim.sizes)
        subject->bytes = subject->sim.distinct_bytes = totals.distinct_bytes;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static struct sim_job
job_of(const struct sim_trace *trace, size_t policy, enum kind kind, uint64_t size, uint64_t seed)
{
    return (struct sim_job){.trace = trace,
                            .config = {.spec = policy_spec_of(policies[policy]),
                                       .capacity_pages = kind < BYTES_HITS ? size : 0,
                                       .capacity_bytes = kind < BYTES_HITS ? 0 : size,
                                       .seed = seed},
                            .runs = policies[policy]->draws ? SEEDS : 1};
}

static void
run_all(struct sim_job *jobs, size_t count)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct sim_sweep *sweep =
        sim_sweep_start(jobs, count, processors > 0 ? (unsigned)processors : 1);

    if (!sweep)
        die("out of memory or threads");
    while (!sim_sweep_wait(sweep, 1000))
        ;
    sim_sweep_finish(sweep);
    for (size_t i = 0; i < count; i++)
        if (jobs[i].error != SIM_OK)
            die(sim_strerror(jobs[i].error));
}

static void
count_one(struct calibration *cell, unsigned *one, double truth, double ratio, double error)
{
    cell->samples++;
    if (isnan(error))
        return;
    cell->stated++;
    cell->within += fabs(ratio - truth) <= 1.96 * error + 1e-12;
    *one += fabs(ratio - truth) <= error + 1e-12;
}

static void
add_cell(enum kind kind, size_t policy, const struct calibration *cell)
{
    struct calibration *sum = &tallies[kind][policy];

    sum->samples += cell->samples;
    sum->stated += cell->stated;
    sum->within += cell->within;
    /* Where only a few samples state an error, a share of them says nothing. */
    if (cell->stated * 2 >= cell->samples && cell->stated != 0 &&
        (sum->worst_stated == 0 ||
         cell->within * sum->worst_stated < sum->worst_within * cell->stated)) {
        sum->worst_stated = cell->stated;
        sum->worst_within = cell->within;
    }
}

/* One policy at one capacity: all samples against the whole trace. */
static void
measure(const struct options *options, const struct subject *subject, struct sim_sample *samples,
        size_t policy, enum kind kind, double share)
{
    uint64_t all = kind < BYTES_HITS ? subject->sim.page_count : subject->bytes;
    uint64_t size = (uint64_t)fmax(1, round(share * (double)all));
    struct sim_job *jobs = calloc(options->samples + 1, sizeof(*jobs));
    struct calibration hits = {0}, bytes = {0};

    if (!jobs)
        die("out of memory");
    jobs[0] = job_of(&subject->sim, policy, kind, size, 1);
    for (unsigned i = 0; i < options->samples; i++) {
        double rate = samples[i].sampling.rate;

        jobs[i + 1] =
            job_of(&samples[i].trace, policy, kind, sim_sample_capacity(size, rate), i + 1);
        jobs[i + 1].config.sampling = &samples[i].sampling;
    }
    run_all(jobs, options->samples + 1);
    for (unsigned i = 1; i <= options->samples; i++) {
        const struct sim_result *r = &jobs[i].result;

        count_one(&hits, &within_one[kind][policy], jobs[0].result.hit_ratio, r->hit_ratio,
                  r->hit_ratio_error);
        if (subject->bytes)
            count_one(&bytes, &within_one[kind + 1][policy], jobs[0].result.byte_hit_ratio,
                      r->byte_hit_ratio, r->byte_hit_ratio_error);
    }
    add_cell(kind, policy, &hits);
    if (subject->bytes)
        add_cell(kind + 1, policy, &bytes);
    if (options->verbose)
        printf("  %-30.30s %-10s %-5s %5.2f  hits %3u of %3u  bytes %3u of %3u\n", subject->name,
               policies[policy]->name, kind < BYTES_HITS ? "urls" : "bytes", share, hits.within,
               hits.stated, bytes.within, bytes.stated);
    free(jobs);
}

static void
measure_subject(const struct options *options, const struct subject *subject, double rate)
{
    struct sim_sample *samples = calloc(options->samples, sizeof(*samples));
    uint32_t **next = calloc(options->samples, sizeof(*next));

    if (!samples || !next)
        die("out of memory");
    for (unsigned i = 0; i < options->samples; i++) {
        if (!sim_sample_make(&subject->sim, rate, i + 1, 0, &samples[i]))
            die("out of memory");
        samples[i].sampling.uncalibrated = true;
        next[i] = sim_next(&samples[i].trace);
        if (!next[i])
            die("out of memory");
        samples[i].trace.next = next[i];
    }
    for (size_t p = 0; policies[p]; p++) {
        if (options->policy && strcmp(options->policy, policies[p]->name) != 0)
            continue;
        for (size_t s = 0; s < COUNT(shares); s++) {
            measure(options, subject, samples, p, URLS_HITS, shares[s]);
            if (subject->bytes)
                measure(options, subject, samples, p, BYTES_HITS, shares[s]);
        }
    }
    for (unsigned i = 0; i < options->samples; i++) {
        free(next[i]);
        sim_sample_free(&samples[i]);
    }
    free(next);
    free(samples);
}

/* ---- the table ------------------------------------------------------------------------------- */

static double
percent(unsigned part, unsigned whole)
{
    return whole ? 100.0 * part / whole : 0;
}

static void
print_tallies(const struct options *options)
{
    printf("%-12s %-22s %8s %8s %8s %8s %8s  %-10s %s\n", "policy", "capacity, ratio", "samples",
           "stated", "in 68 %", "in 95 %", "worst", "supported", "in sim/calibrated.c");
    for (size_t p = 0; policies[p]; p++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            const struct calibration *t = &tallies[kind][p];
            struct policy_spec spec = policy_spec_of(policies[p]);

            if (options->policy && strcmp(options->policy, policies[p]->name) != 0)
                continue;
            printf("%-12s %-22s %8u %7.0f%% %7.1f%% %7.1f%% %7.1f%%  %-10s %s\n", policies[p]->name,
                   kind_names[kind], t->samples, percent(t->stated, t->samples),
                   percent(within_one[kind][p], t->stated), percent(t->within, t->stated),
                   percent(t->worst_within, t->worst_stated),
                   calibration_supports(t) ? "yes" : "no",
                   calibrated_kinds(&spec) & 1u << kind ? "yes" : "no");
        }
}

int
main(int argc, char **argv)
{
    struct options options = {.samples = 12};
    const struct {
        const char *name, *workload, *sizes;
        double constant;
    } made[] = {
        {"zipf 0.8, lognormal", "zipf", "lognormal:8000:1.2", 0.8},
        {"zipf 1.0, pareto", "zipf", "pareto:1000:1.3", 1.0},
        {"ycsb-d, lognormal", "ycsb-d", "lognormal:3000:1", 0.99},
        {"ycsb-e, lognormal", "ycsb-e", "lognormal:3000:1", 0.99},
    };
    int option;

    while ((option = getopt(argc, argv, "s:r:p:v")) != -1) {
        if (option == 's')
            options.samples = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'r')
            options.rate = strtod(optarg, NULL);
        else if (option == 'p')
            options.policy = optarg;
        else if (option == 'v')
            options.verbose = true;
        else
            return EX_USAGE;
    }
    if (options.samples < 1 || !(options.rate >= 0) || options.rate >= 1)
        return EX_USAGE;
    for (size_t i = 0; i < COUNT(made) + (size_t)(argc - optind); i++) {
        struct trace_options trace_options = TRACE_OPTIONS_DEFAULT;
        struct trace *trace;
        struct subject subject;
        char why[512];

        if (i < COUNT(made)) {
            trace = generated(made[i].workload, made[i].constant, made[i].sizes, 11 + i);
        } else if (trace_load(argv[optind + (int)(i - COUNT(made))], &trace_options, &trace, why,
                              sizeof(why)) != TRACE_OK) {
            fprintf(stderr, "calibrate: %s\n", why);
            return EX_NOINPUT;
        }
        subject_init(&subject,
                     i < COUNT(made) ? made[i].name : argv[optind + (int)(i - COUNT(made))], trace);
        fprintf(stderr, "%s: %zu requests, %zu URLs\n", subject.name, trace->request_count,
                trace->url_count);
        if (options.rate > 0)
            measure_subject(&options, &subject, options.rate);
        for (size_t r = 0; r < COUNT(rates) && !(options.rate > 0); r++)
            measure_subject(&options, &subject, rates[r]);
        free(subject.next);
        trace_free(trace);
    }
    print_tallies(&options);
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}
