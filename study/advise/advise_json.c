#include <stdlib.h>

#include "base/json.h"
#include "cli/output.h"
#include "study/advise/advise.h"

static void
json_size(struct json *j, const struct advice *advice, uint64_t size)
{
    json_uint(j, "capacity_urls", advice->in_bytes ? 0 : size);
    json_uint(j, "capacity_bytes", advice->in_bytes ? size : 0);
}

static void
json_policy(struct json *j, const struct policy_spec *spec)
{
    char name[POLICY_MAX_TEXT];

    json_cstring(j, "policy", policy_format(spec, name, sizeof(name)));
}

static void
json_candidate(struct json *j, const struct advice *advice, const struct candidate *candidate,
               bool with_best)
{
    const bool sized = advice->subject->sized;
    const struct sim_result *at_best = &candidate->at_best.result;

    json_open_object(j, NULL);
    json_policy(j, &candidate->spec);
    json_bool(j, "needs_future", candidate->spec.ops->needs_future);
    json_bool(j, "reached", candidate->reached);
    json_size(j, advice, candidate->size);
    simulate_json_ratios(j, &candidate->job, sized);
    if (with_best) {
        json_double(j, "hit_ratio_at_best", at_best->hit_ratio, 6);
        if (sized)
            json_double(j, "byte_hit_ratio_at_best", at_best->byte_hit_ratio, 6);
        else
            json_null(j, "byte_hit_ratio_at_best");
        json_double(j, "difference", candidate->difference, 6);
        json_double(j, "noise", candidate->noise, 6);
        json_bool(j, "tied", candidate->tied);
    }
    json_close_object(j);
}

/* Larger, and yet not enough. */
static void
json_larger(struct json *j, const struct advice *advice)
{
    if (advice->larger == 0) {
        json_null(j, "larger_yet_less");
        return;
    }
    json_open_object(j, "larger_yet_less");
    json_size(j, advice, advice->larger);
    simulate_json_ratios(j, &advice->in_larger, advice->subject->sized);
    json_close_object(j);
}

/* Of the ratio of as many requests to come, in a cache that begins empty. */
static void
json_interval(struct json *j, const struct advice *advice)
{
    const struct simulate_options *options = advice->options;
    const struct forecast *f = &advice->forecast;

    json_open_object(j, "interval");
    json_double(j, "low_68", f->low[FORECAST_68], 6);
    json_double(j, "high_68", f->high[FORECAST_68], 6);
    json_double(j, "low_95", f->low[FORECAST_95], 6);
    json_double(j, "high_95", f->high[FORECAST_95], 6);
    json_double(j, "change_68", f->change[FORECAST_68], 6);
    json_double(j, "change_95", f->change[FORECAST_95], 6);
    json_double(j, "sample_error", advice->sample_error, 6);
    if (advice->subject->whole_pages && !options->header_bytes_given) {
        json_double(j, "header_bytes_low", advice_header_bytes(advice, false), 0);
        json_double(j, "header_bytes_high", advice_header_bytes(advice, true), 0);
    } else {
        json_null(j, "header_bytes_low");
        json_null(j, "header_bytes_high");
    }
    json_open_array(j, "differences_of_parts");
    for (size_t i = 0; i < f->scale_count; i++) {
        json_open_object(j, NULL);
        json_uint(j, "parts", f->scales[i].parts);
        json_double(j, "mean_square", f->scales[i].mean_square, 9);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void
json_best(struct json *j, const struct advice *advice, const struct candidate *best)
{
    json_policy(j, &best->spec);
    json_size(j, advice, best->size);
    if (advice->body_size)
        json_uint(j, "capacity_bytes_of_bodies", advice->body_size);
    else
        json_null(j, "capacity_bytes_of_bodies");
    json_interval(j, advice);
    json_double(j, "uncertainty", advice->uncertainty, 6);
    json_bool(j, "too_little_data", advice->too_little);
    json_uint(j, "requests_needed", advice->requests_needed);
    json_larger(j, advice);
    json_open_array(j, "ties");
    for (size_t i = 0; i < advice->count; i++) {
        char name[POLICY_MAX_TEXT];

        if (advice->candidates[i].tied)
            json_cstring(j, NULL, policy_format(&advice->candidates[i].spec, name, sizeof(name)));
    }
    json_close_array(j);
    json_open_array(j, "around");
    for (size_t i = 0; i < ADVICE_AROUND && advice->around[i]; i++) {
        json_open_object(j, NULL);
        json_size(j, advice, advice->around[i]);
        simulate_json_ratios(j, &advice->in_around[i], advice->subject->sized);
        json_close_object(j);
    }
    json_close_array(j);
}

/* Members of the open object. */
static void
json_advice(struct json *j, const struct advice *advice)
{
    const struct candidate *best = advice_best(advice);

    json_cstring(j, "goal", advice->by_bytes ? "byte_hit_ratio" : "hit_ratio");
    json_double(j, "share", advice->share, 6);
    json_double(j, "target", advice->target, 6);
    json_uint(j, "smallest_tried", advice->scale.sizes[0]);
    json_double(j, "step", advice->step, 6);
    if (best)
        json_best(j, advice, best);
    else
        json_null(j, "policy");
    json_open_array(j, "policies");
    for (size_t i = 0; i < advice->count; i++)
        json_candidate(j, advice, &advice->candidates[i], best != NULL);
    json_close_array(j);
}

int
advice_print_json(const struct advice *advice, const struct advice *other)
{
    struct buf out;
    struct json j;

    buf_init(&out, 1u << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    simulate_json_subject(&j, advice->subject);
    json_advice(&j, advice);
    if (other) {
        json_open_object(&j, "other_goal");
        json_advice(&j, other);
        json_close_object(&j);
    } else {
        json_null(&j, "other_goal");
    }
    json_close_object(&j);
    return output_json(&out);
}
