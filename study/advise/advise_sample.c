/*
 * The sample of a long trace, chosen by the error that it causes. A small one, the pilot, gives the
 * error of LRU's ratio at the size that is looked for, which shrinks with the square root of
 * (1 - p) / p in samples with share p of the URLs (sim/estimate.h).
 */
#include <math.h>
#include <sysexits.h>

#include "cli/capacity.h"
#include "cli/output.h"
#include "policies/charge.h"
#include "sim/sample.h"
#include "study/advise/advise.h"

#define PILOT 200000.0  /* requests, about */
#define HALVINGS 12     /* of the capacity */
#define NEARLY_ALL 0.75 /* a share from which on the whole trace is simulated */
#define PILOTS 3        /* each with four times the requests, until one shows an error */

/* LRU over the pilot, in a cache with this share of the bytes or URLs. */
static struct sim_job
pilot_job(const struct simulate_subject *subject, const struct sim_sample *pilot, double share)
{
    uint64_t all = subject->sized ? subject->all_bytes : subject->sim.page_count;
    uint64_t size = (uint64_t)fmax(1, (double)all * share * pilot->sampling.rate);
    struct policy_spec lru = policy_spec_of(policy_find("lru"));

    return (struct sim_job){
        .trace = &pilot->trace,
        .config = {.spec = lru,
                   .capacity_pages = subject->sized ? 0 : size,
                   .capacity_bytes = subject->sized ? size : 0,
                   .overhead = subject->whole_pages ? charge_page_overhead(lru.ops) : 0,
                   .storage = subject->storage,
                   .warmup = pilot->warmup,
                   .sampling = &pilot->sampling},
    };
}

/* The error at the size that reaches the goal; NAN: the pilot shows none. */
static int
find_error(const struct advice_sample *sample, const struct sim_sample *pilot,
           struct advice_work *work, double *error)
{
    const struct simulate_subject *subject = sample->subject;
    const struct simulate_options *options = sample->options;
    struct advice advice = {.options = options, .subject = subject, .work = work};
    double low = 0, high = 1, target = 0;

    *error = NAN;
    for (int i = 0; i <= HALVINGS; i++) {
        double share = i == 0 ? 1 : (low + high) / 2, ratio;
        struct sim_job job = pilot_job(subject, pilot, share);
        int status = advice_run(&advice, &job, 1);

        if (status != EX_OK)
            return status;
        ratio = simulate_goal(&job.result, options->by_bytes);
        if (i == 0)
            target = ratio * sample->share;
        if (i != 0 && ratio >= target)
            high = share;
        else if (i != 0)
            low = share;
        *error = options->by_bytes ? job.result.byte_hit_ratio_error : job.result.hit_ratio_error;
    }
    return EX_OK;
}

/* The rate for ADVICE_SAMPLE_ERROR. */
static int
find_rate(const struct advice_sample *sample, double most, struct advice_work *work, double *rate)
{
    const struct simulate_subject *subject = sample->subject;
    double requests = (double)subject->sim.request_count, pilot_rate = PILOT / requests;
    double error = NAN;
    int status = EX_OK;

    *rate = most;
    for (int i = 0; i < PILOTS && pilot_rate < most && status == EX_OK && isnan(error);
         i++, pilot_rate *= 4) {
        struct sim_sample pilot;

        if (!sim_sample_make(&subject->sim, pilot_rate, sample->options->seed, subject->warmup,
                             &pilot)) {
            output_complain("out of memory");
            return EX_SOFTWARE;
        }
        if (pilot.trace.page_count)
            status = find_error(sample, &pilot, work, &error);
        if (status == EX_OK && !isnan(error)) {
            double odds = (1 - pilot.sampling.rate) / pilot.sampling.rate;
            double wanted = odds * pow(ADVICE_SAMPLE_ERROR / fmax(error, 1e-9), 2);

            *rate = fmin(most, fmax(pilot_rate, 1 / (1 + wanted)));
        }
        sim_sample_free(&pilot);
    }
    return status;
}

int
advice_choose_sample(struct simulate_subject *subject, const struct simulate_options *options,
                     double share, struct advice_work *work)
{
    const struct advice_sample sample = {.subject = subject, .options = options, .share = share};
    double requests = (double)subject->sim.request_count, rate;
    double most = fmin(1, SIMULATE_ENOUGH / requests);
    char text[32];
    int status;

    if (options->rate > 0 || requests <= 2 * PILOT)
        return EX_OK;
    status = find_rate(&sample, most, work, &rate);
    if (status != EX_OK || rate >= NEARLY_ALL)
        return status;
    progress_clear(&work->progress);
    output_complain("%s: of %zu requests a sample of %s of the URLs is simulated; --sample 100%% "
                    "takes all",
                    subject->path, subject->sim.request_count,
                    capacity_format_share(rate, text, sizeof(text)));
    return simulate_subject_sample(subject, options, rate);
}
