#include "study/simulate/simulate_subject.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/simulate/simulate_sizes.h"
#include "sim/sweep.h"
#include "policies/charge.h"

static int
no_memory(const char *path)
{
    output_complain("%s: out of memory", path);
    return EX_SOFTWARE;
}

static bool
has_unknown(const struct trace *trace)
{
    for (size_t i = 0; i < trace->request_count; i++)
        if (trace->sizes[i] == TRACE_SIZE_UNKNOWN)
            return true;
    return false;
}

/* In one sentence: why sizes are not known, and what to do where they must be. */
static int
do_without_sizes(const struct simulate_options *options, const struct simulate_subject *subject,
                 const struct simulate_sizes_known *count)
{
    char why[160] = "the trace has none";

    if (options->ignore_sizes)
        snprintf(why, sizeof(why), "--ignore-sizes passes them over");
    else if (count)
        snprintf(why, sizeof(why), "those of %" PRIu64 " of %" PRIu64 " URLs are unknown",
                 count->unknown, count->known + count->unknown);
    if (options->needs_sizes)
        output_complain("%s: %s needs sizes, and %s; %s, or %s", subject->path,
                        options->by_bytes ? "the byte hit ratio" : "a capacity in bytes", why,
                        options->ignore_sizes ? "leave that out" : "give them with --sizes FILE",
                        options->by_bytes ? "leave --by-bytes out" : "ask for a capacity in URLs");
    else if (count)
        output_complain("%s: sizes are passed over, because %s", subject->path, why);
    return options->needs_sizes ? EX_USAGE : EX_OK;
}

/* Sizes from the trace, from the file of sizes, or none: then every page counts 1. */
static int
find_sizes(const struct simulate_options *options, struct simulate_subject *subject)
{
    const struct trace *trace = subject->trace;
    size_t bytes = trace->request_count * sizeof(*subject->sizes);
    struct simulate_sizes_known count = {0};
    int status = EX_OK;

    if (options->ignore_sizes || (!trace->sizes && !options->sizes))
        return do_without_sizes(options, subject, NULL);
    if (!options->sizes && !has_unknown(trace)) {
        subject->sized = true;
        return EX_OK;
    }
    subject->sizes = malloc(bytes);
    if (!subject->sizes)
        return no_memory(subject->path);
    if (trace->sizes)
        memcpy(subject->sizes, trace->sizes, bytes);
    else
        memset(subject->sizes, 0xff, bytes); /* unknown */
    if (options->sizes)
        status = simulate_sizes_read(options->sizes, trace, subject->sizes);
    if (status != EX_OK)
        return status;
    status = simulate_sizes_complete(subject->path, trace, subject->sizes, &count);
    if (status == EX_OK) {
        subject->sized = true;
        subject->assumed = count;
        return EX_OK;
    }
    free(subject->sizes);
    subject->sizes = NULL;
    if (status != EX_DATAERR)
        return status;
    if (!options->sizes)
        return do_without_sizes(options, subject, &count);
    output_complain("%s: with %s, too, the sizes of %" PRIu64 " of %" PRIu64 " URLs are unknown",
                    subject->path, options->sizes, count.unknown, count.known + count.unknown);
    return EX_DATAERR;
}

/* What the server charges for each page beside its body and the policy's bookkeeping. */
static bool
find_charges(const struct simulate_options *options, struct simulate_subject *subject)
{
    const struct trace *trace = subject->trace;

    subject->all_bytes = subject->facts.distinct_bytes;
    subject->whole_pages = subject->sized && options->count_bytes == SIMULATE_COUNT_WHOLE;
    if (!subject->whole_pages)
        return true;
    subject->charges = malloc((trace->url_count + 1) * sizeof(*subject->charges));
    if (!subject->charges)
        return false;
    for (size_t i = 0; i < trace->url_count; i++) {
        size_t url = trace->urls ? trace->urls[i].len : SIMULATE_URL_BYTES;

        subject->charges[i] = (uint32_t)(url + options->header_bytes);
        subject->sim.all_charges += subject->charges[i];
    }
    subject->sim.charges = subject->charges;
    subject->all_bytes +=
        subject->sim.all_charges + charge_largest_overhead() * (uint64_t)trace->url_count;
    return true;
}

static bool
needs_future(const struct simulate_options *options)
{
    for (size_t i = 0; i < options->spec_count; i++)
        if (options->specs[i].ops && options->specs[i].ops->needs_future)
            return true;
    return false;
}

static double
choose_rate(const struct simulate_options *options, size_t requests)
{
    if (options->rate > 0)
        return options->rate;
    return options->enough && requests > options->enough
               ? (double)options->enough / (double)requests
               : 1;
}

/* The totals, with an infinite cache that stores as the simulated ones do. */
static bool
sum_up(struct simulate_subject *subject)
{
    const struct sim_trace *sim = &subject->sim;
    const struct trace_requests requests = {.count = sim->request_count,
                                            .ids = sim->ids,
                                            .sizes = sim->sizes,
                                            .url_count = sim->page_count,
                                            .warmup = subject->warmup,
                                            .times_us = sim->times_us,
                                            .ttl_us = subject->storage.ttl_us,
                                            .max_page = subject->storage.max_page,
                                            .min_uses = subject->storage.min_uses};

    return trace_totals_make(&requests, &subject->facts);
}

/* What policies need of the trace that is simulated: the sample if there is one. */
static int
find_next(const struct simulate_options *options, struct simulate_subject *subject)
{
    struct sim_trace *simulated = subject->rate < 1 ? &subject->sample.trace : &subject->sim;

    if (!needs_future(options))
        return EX_OK;
    free(subject->next);
    subject->next = sim_next(simulated);
    if (!subject->next)
        return no_memory(subject->path);
    simulated->next = subject->next;
    return EX_OK;
}

/* What policies and runs need of the trace. */
static int
prepare(const struct simulate_options *options, struct simulate_subject *subject)
{
    char share[32];

    subject->warmup =
        options->warmup_percent > 0
            ? (size_t)round((double)subject->trace->request_count * options->warmup_percent / 100)
            : (size_t)options->warmup;
    if (subject->warmup >= subject->trace->request_count) {
        output_complain("%s: the warm-up takes all %zu requests, so nothing would be counted",
                        subject->path, subject->trace->request_count);
        return EX_DATAERR;
    }
    if (!sum_up(subject))
        return no_memory(subject->path);
    subject->sim.distinct_bytes = subject->facts.distinct_bytes;
    if (!find_charges(options, subject))
        return no_memory(subject->path);
    subject->rate = choose_rate(options, subject->trace->request_count);
    if (subject->rate < 1 && options->rate <= 0)
        output_complain("%s: %zu requests are many, and a sample of %s of the URLs is simulated; "
                        "--sample 100%% takes all",
                        subject->path, subject->trace->request_count,
                        capacity_format_share(subject->rate, share, sizeof(share)));
    if (subject->rate < 1)
        return simulate_subject_sample(subject, options, subject->rate);
    return find_next(options, subject);
}

int
simulate_subject_sample(struct simulate_subject *subject, const struct simulate_options *options,
                        double rate)
{
    subject->rate = rate;
    if (!sim_sample_make(&subject->sim, rate, options->seed, subject->warmup, &subject->sample))
        return no_memory(subject->path);
    if (subject->sample.trace.page_count == 0) {
        output_complain("%s: a sample of %g %% of %zu URLs is empty; take a larger one",
                        subject->path, rate * 100, subject->trace->url_count);
        return EX_DATAERR;
    }
    return find_next(options, subject);
}

/* Whether the trace has what expiry and a bound on pages need. */
static int
check_storage(const struct simulate_subject *subject)
{
    if (subject->storage.ttl_us && !subject->trace->times_us)
        output_complain("%s: --ttl needs a trace with times", subject->path);
    else if (subject->storage.max_page && !subject->sized)
        output_complain("%s: --max-page needs sizes", subject->path);
    else
        return EX_OK;
    return EX_USAGE;
}

int
simulate_subject_load(char *const *paths, size_t count, const struct simulate_options *options,
                      struct simulate_subject *subject)
{
    struct trace_options trace = options->trace;
    int status;

    *subject = (struct simulate_subject){.path = paths[0], .files = count};
    trace.stop_fd = interrupt_catch();
    status = interrupt_came()
                 ? EXIT_INTERRUPTED
                 : trace_open_files(paths, count, &trace, &subject->trace, &subject->by_time);
    if (status != EX_OK)
        return status;
    if (subject->trace->request_count >= SIM_MAX_REQUESTS) {
        output_complain("%s: %s", subject->path, sim_strerror(SIM_TOO_MANY));
        status = EX_DATAERR;
    } else {
        status = find_sizes(options, subject);
    }
    subject->sim = (struct sim_trace){.request_count = subject->trace->request_count,
                                      .ids = subject->trace->ids,
                                      .sizes = subject->sizes   ? subject->sizes
                                               : subject->sized ? subject->trace->sizes
                                                                : NULL,
                                      .page_count = subject->trace->url_count,
                                      .keys = subject->trace->keys};
    if (options->storage.ttl_us)
        subject->sim.times_us = subject->trace->times_us;
    subject->storage = options->storage;
    if (status == EX_OK)
        status = check_storage(subject);
    if (status == EX_OK)
        status = prepare(options, subject);
    if (status != EX_OK)
        simulate_subject_free(subject);
    return status;
}

const char *
simulate_lifetime(const struct simulate_subject *subject, char text[SIMULATE_LIFETIME_TEXT])
{
    char duration[32];

    if (subject->storage.ttl_us)
        snprintf(text, SIMULATE_LIFETIME_TEXT, "pages expire %s after they are stored (--ttl)",
                 units_format_duration(subject->storage.ttl_us, duration, sizeof(duration)));
    else
        snprintf(text, SIMULATE_LIFETIME_TEXT, "pages are assumed never to expire (no --ttl)");
    return text;
}

void
simulate_print_counts(const struct sim_trace *trace)
{
    printf("%zu request%s for %zu URL%s", trace->request_count,
           trace->request_count == 1 ? "" : "s", trace->page_count,
           trace->page_count == 1 ? "" : "s");
}

void
simulate_subject_free(struct simulate_subject *subject)
{
    sim_sample_free(&subject->sample);
    free(subject->sizes);
    free(subject->next);
    free(subject->charges);
    trace_free(subject->trace);
    *subject = (struct simulate_subject){0};
}

struct sim_job
simulate_job(const struct simulate_subject *subject, const struct simulate_options *options,
             const struct policy_spec *spec, uint64_t urls, uint64_t bytes)
{
    bool sampled = subject->rate < 1;
    double rate = sampled ? subject->sample.sampling.rate : 1;
    struct sim_job job = {
        .trace = sampled ? &subject->sample.trace : &subject->sim,
        .config = {.spec = *spec,
                   .capacity_pages = sim_sample_capacity(urls, rate),
                   .capacity_bytes = sim_sample_capacity(bytes, rate),
                   .overhead =
                       subject->whole_pages && spec->ops ? charge_page_overhead(spec->ops) : 0,
                   .storage = subject->storage,
                   .seed = options->seed,
                   .warmup = sampled ? subject->sample.warmup : subject->warmup,
                   .sampling = sampled ? &subject->sample.sampling : NULL},
        .runs = spec->ops && spec->ops->draws ? (unsigned)options->seeds : 1,
    };

    return job;
}

double
simulate_goal(const struct sim_result *result, bool by_bytes)
{
    return by_bytes ? result->byte_hit_ratio : result->hit_ratio;
}
