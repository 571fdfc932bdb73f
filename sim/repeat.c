#include "sim/repeat.h"

#include <math.h>

/* The sum of squared deviations from a mean that moves with each value (Welford, 1962). */
struct moments {
    double mean, squares, low, high;
};

static void
moments_add(struct moments *m, double value, unsigned count)
{
    double before = value - m->mean;

    m->mean += before / count;
    m->squares += before * (value - m->mean);
    m->low = count == 1 ? value : fmin(m->low, value);
    m->high = count == 1 ? value : fmax(m->high, value);
}

static double
moments_deviation(const struct moments *m, unsigned count)
{
    return count > 1 ? sqrt(m->squares / (count - 1)) : 0;
}

/* The counts of a result, as sums over the runs and then as their mean. */
static void
add_counts(struct sim_result *sum, const struct sim_result *r)
{
    sum->requests += r->requests;
    sum->hits += r->hits;
    sum->bytes += r->bytes;
    sum->bytes_hit += r->bytes_hit;
    sum->insertions += r->insertions;
    sum->evictions += r->evictions;
    sum->expired += r->expired;
    sum->not_admitted += r->not_admitted;
    sum->too_large += r->too_large;
    sum->pages += r->pages;
    sum->bytes_inside += r->bytes_inside;
    sum->cpu_us += r->cpu_us;
}

static uint64_t
mean_count(uint64_t sum, unsigned runs)
{
    return (sum + runs / 2) / runs;
}

static void
take_means(struct sim_result *sum, unsigned runs)
{
    sum->requests = mean_count(sum->requests, runs);
    sum->hits = mean_count(sum->hits, runs);
    sum->bytes = mean_count(sum->bytes, runs);
    sum->bytes_hit = mean_count(sum->bytes_hit, runs);
    sum->insertions = mean_count(sum->insertions, runs);
    sum->evictions = mean_count(sum->evictions, runs);
    sum->expired = mean_count(sum->expired, runs);
    sum->not_admitted = mean_count(sum->not_admitted, runs);
    sum->too_large = mean_count(sum->too_large, runs);
    sum->pages = mean_count(sum->pages, runs);
    sum->bytes_inside = mean_count(sum->bytes_inside, runs);
    sum->cpu_us /= runs;
}

/* A capacity larger by one standard deviation of what the sample's cache amounts to. */
static uint64_t
enlarged(uint64_t capacity, double by)
{
    return capacity ? capacity + (uint64_t)fmax(1, round((double)capacity * by)) : 0;
}

/*
 * Of a sample: adds to the errors what a cache larger by the spread of its capacity hits more or
 * less.
 */
static enum sim_error
add_slope(const struct sim_trace *trace, const struct sim_config *config, struct sim_watch *watch,
          struct sim_result *result)
{
    struct sim_config larger = *config;
    struct sim_result other;
    enum sim_error error;

    if (!config->sampling || !(result->capacity_spread > 0) ||
        (isnan(result->hit_ratio_error) && isnan(result->byte_hit_ratio_error)))
        return SIM_OK;
    larger.tell = NULL;
    larger.capacity_pages = enlarged(config->capacity_pages, result->capacity_spread);
    larger.capacity_bytes = enlarged(config->capacity_bytes, result->capacity_spread);
    error = sim_run(trace, &larger, watch, &other);
    result->hit_ratio_error = hypot(result->hit_ratio_error, other.hit_ratio - result->hit_ratio);
    result->byte_hit_ratio_error =
        hypot(result->byte_hit_ratio_error, other.byte_hit_ratio - result->byte_hit_ratio);
    return error;
}

enum sim_error
sim_repeat(const struct sim_trace *trace, const struct sim_config *config, unsigned runs,
           struct sim_watch *watch, struct sim_result *result, struct sim_spread *spread)
{
    enum sim_error error = sim_run(trace, config, watch, result);
    struct moments ratio = {0}, byte_ratio = {0};
    struct sim_config again = *config;

    *spread = (struct sim_spread){.runs = 1};
    if (error == SIM_OK)
        error = add_slope(trace, config, watch, result);
    moments_add(&ratio, result->hit_ratio, 1);
    moments_add(&byte_ratio, result->byte_hit_ratio, 1);
    while (error == SIM_OK && spread->runs < runs) {
        struct sim_result one;

        again.seed++;
        error = sim_run(trace, &again, watch, &one);
        if (error != SIM_OK)
            break;
        spread->runs++;
        moments_add(&ratio, one.hit_ratio, spread->runs);
        moments_add(&byte_ratio, one.byte_hit_ratio, spread->runs);
        add_counts(result, &one);
    }
    if (spread->runs > 1) {
        take_means(result, spread->runs);
        result->hit_ratio = ratio.mean;
        result->byte_hit_ratio = byte_ratio.mean;
    }
    spread->hit_ratio = moments_deviation(&ratio, spread->runs);
    spread->byte_hit_ratio = moments_deviation(&byte_ratio, spread->runs);
    spread->hit_ratio_low = ratio.low;
    spread->hit_ratio_high = ratio.high;
    spread->byte_hit_ratio_low = byte_ratio.low;
    spread->byte_hit_ratio_high = byte_ratio.high;
    return error;
}
