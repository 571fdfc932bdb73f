/*
 * What the JSON of simulate, advise and report says alike: the trace, and the ratios of a run. A
 * key means the same wherever it stands.
 */
#include "cli/trace_options.h"
#include "study/simulate/simulate.h"

/* What is simulated: the share of the URLs that was drawn, and how much that is. */
static void
json_sample(struct json *j, const struct simulate_subject *subject)
{
    bool sampled = subject->rate < 1;

    json_double(j, "sample", sampled ? subject->sample.sampling.rate : 1, 9);
    if (!sampled)
        return;
    json_uint(j, "sample_requests", subject->sample.trace.request_count);
    json_uint(j, "sample_urls", subject->sample.trace.page_count);
}

void
simulate_json_subject(struct json *j, const struct simulate_subject *subject)
{
    const struct trace_totals *facts = &subject->facts;

    json_cstring(j, "trace", subject->path);
    json_cstring(j, "format", subject->trace->format);
    json_uint(j, "requests", subject->trace->request_count);
    json_uint(j, "distinct_urls", subject->trace->url_count);
    if (subject->sized)
        json_uint(j, "distinct_bytes", facts->distinct_bytes);
    else
        json_null(j, "distinct_bytes");
    if (subject->sized)
        json_uint(j, "bytes", facts->bytes_of_all);
    else
        json_null(j, "bytes");
    json_uint(j, "files", subject->files);
    json_cstring(j, "count_bytes", subject->whole_pages ? "whole" : "body");
    if (subject->sized)
        json_uint(j, "capacity_bytes_of_all", subject->all_bytes);
    else
        json_null(j, "capacity_bytes_of_all");
    json_uint(j, "sizes_inferred", subject->trace->counts.inferred_sizes);
    json_uint(j, "sizes_assumed", subject->assumed.unknown);
    trace_json_left_out(j, "left_out", &subject->trace->counts);
    json_uint(j, "warmup", subject->warmup);
    json_int(j, "ttl_us", subject->storage.ttl_us);
    json_uint(j, "max_page", subject->storage.max_page);
    json_uint(j, "min_uses", subject->storage.min_uses);
    json_sample(j, subject);
    trace_json_infinite(j, facts, subject->sized);
}

/* Of bytes there is none where sizes are unknown. */
static void
ratio(struct json *j, const char *name, double value, bool known)
{
    if (known)
        json_double(j, name, value, 6);
    else
        json_null(j, name);
}

void
simulate_json_ratios(struct json *j, const struct sim_job *job, bool sized)
{
    const struct sim_result *r = &job->result;
    const struct sim_spread *s = &job->spread;

    json_uint(j, "seeds", s->runs);
    json_double(j, "hit_ratio", r->hit_ratio, 6);
    json_double(j, "hit_ratio_error", r->hit_ratio_error, 6);
    json_double(j, "hit_ratio_sd", s->hit_ratio, 6);
    json_double(j, "hit_ratio_low", s->hit_ratio_low, 6);
    json_double(j, "hit_ratio_high", s->hit_ratio_high, 6);
    ratio(j, "byte_hit_ratio", r->byte_hit_ratio, sized);
    ratio(j, "byte_hit_ratio_error", r->byte_hit_ratio_error, sized);
    ratio(j, "byte_hit_ratio_sd", s->byte_hit_ratio, sized);
    ratio(j, "byte_hit_ratio_low", s->byte_hit_ratio_low, sized);
    ratio(j, "byte_hit_ratio_high", s->byte_hit_ratio_high, sized);
    if (r->error_unknown)
        json_cstring(j, "error_unknown", r->error_unknown);
    else
        json_null(j, "error_unknown");
}
