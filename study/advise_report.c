#include "study/advise.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "cli/output.h"

/* ---- in plain words -------------------------------------------------------------------------- */

static const char *
size_text(const struct advice *advice, uint64_t size, char text[64])
{
    return capacity_format(advice->in_bytes ? 0 : size, advice->in_bytes ? size : 0, text, 64);
}

static void
print_trace(const struct advice *advice)
{
    const struct simulate_subject *subject = advice->subject;
    const char *what = advice->options->by_bytes ? "bytes asked for" : "requests";
    char bytes[32];

    output_put(subject->path);
    printf(": ");
    simulate_print_counts(&subject->sim);
    if (subject->sized)
        printf(" of %s together",
               units_format_bytes(subject->facts.distinct_bytes, bytes, sizeof(bytes)));
    printf(".\nA cache that never forgets would serve %.1f %% of the %s; %g %% of that is "
           "%.1f %%.\n",
           100 * advice->infinite, what, 100 * advice->share, 100 * advice->target);
    if (subject->rate < 1)
        printf("All that follows is estimated from a sample of %zu of the URLs; --sample 1 "
               "takes all.\n",
               subject->sample.trace.page_count);
}

/* "77.0 % of the requests and 45.3 % of the bytes". */
static void
print_ratios(const struct advice *advice, const struct sim_result *result)
{
    printf("%.1f %% of the requests", 100 * result->hit_ratio);
    if (advice->subject->sized)
        printf(" and %.1f %% of the bytes", 100 * result->byte_hit_ratio);
}

static void
print_best(const struct advice *advice, const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], size[64], all[64], share[32];
    double error = advice->options->by_bytes ? best->result.byte_hit_ratio_error
                                             : best->result.hit_ratio_error;

    printf("\nTake %s with %s, %s of the %s%s; it serves\n",
           policy_format(&best->spec, name, sizeof(name)), size_text(advice, best->size, size),
           capacity_format_share((double)best->size / (double)advice->all, share, sizeof(share)),
           size_text(advice, advice->all, all), advice->in_bytes ? " of distinct URLs" : "");
    print_ratios(advice, &best->result);
    if (isnan(error))
        printf(" (how near that is the sample cannot tell: %s)", best->result.error_unknown);
    else if (advice->subject->rate < 1)
        printf(" (%s in about 95 of 100 samples within %.2f %%)",
               advice->options->by_bytes ? "the latter"
               : advice->subject->sized  ? "the former"
                                         : "that",
               100 * 1.96 * error);
    puts(".");
    printf("  sunproxy set --policy %s --capacity-%s %" PRIu64 " --capacity-%s 0\n", name,
           advice->in_bytes ? "bytes" : "urls", best->size, advice->in_bytes ? "urls" : "bytes");
    if (advice->in_bytes)
        printf("The server counts a page's URL and headers as well, unless it runs with\n"
               "--count-bytes body.\n");
    if (advice->larger != 0)
        printf("More room is not always better: with %s it serves %.1f %% of the %s.\n",
               size_text(advice, advice->larger, size),
               100 * advice_goal(advice, &advice->in_larger),
               advice->options->by_bytes ? "bytes" : "requests");
}

/* Why there is nothing to take. */
static void
print_none(const struct advice *advice)
{
    bool runnable = false;
    char all[64];

    for (size_t i = 0; i < advice->count; i++)
        runnable = runnable || !advice->candidates[i].spec.ops->needs_future;
    if (advice->count == 0)
        printf("\nThere is nothing to take: no policy that stores anything was asked about.\n");
    else if (!runnable)
        printf("\nThere is nothing to take: no server can run a policy that knows the future.\n");
    else
        printf("\nNo policy that a server can run gets that far at any size tried, up to %s.\n",
               size_text(advice, advice->all, all));
}

static void
print_other(const struct advice *advice, struct columns *columns, const struct candidate *candidate,
            const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], text[64], all[64];

    columns_cell(columns, "  %s", policy_format(&candidate->spec, name, sizeof(name)));
    columns_cell(columns, "%s",
                 candidate->reached ? size_text(advice, candidate->size, text) : "-");
    if (best && candidate->reached)
        columns_cell(columns, "%+.0f %%",
                     100.0 * ((double)candidate->size / (double)best->size - 1));
    else
        columns_cell(columns, "-");
    columns_cell(columns, "%.1f %%", 100 * candidate->in_as_much.hit_ratio);
    columns_cell(columns, "%.1f %%", 100 * candidate->in_as_much.byte_hit_ratio);
    if (!candidate->reached)
        printf("  not at any size tried, up to %s: at most %.1f %%, with %s",
               size_text(advice, advice->all, all), 100 * advice_goal(advice, &candidate->result),
               size_text(advice, candidate->size, text));
    else if (candidate->spec.ops->needs_future)
        printf("  knows the future");
    columns_end(columns);
}

static void
print_others(const struct advice *advice, const struct candidate *best)
{
    const bool sized = advice->subject->sized;
    const struct column list[] = {
        {"  policy", -20, false}, {"needs", 14, false},          {"more", 9, !best},
        {"requests", 9, !best},   {"bytes", 9, !best || !sized},
    };
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};
    bool future = false;

    if (advice->count == (best ? 1 : 0))
        return;
    if (best)
        printf("\nWhat the others need for as much, and what they serve in as much room:\n");
    else
        printf("\nWhat they need for as much:\n");
    columns_head(&columns);
    for (size_t i = 0; i < advice->count; i++) {
        future = future || advice->candidates[i].spec.ops->needs_future;
        if (&advice->candidates[i] != best)
            print_other(advice, &columns, &advice->candidates[i], best);
    }
    if (future)
        printf("No server can know the future. %s\n",
               advice->in_bytes
                   ? "OPT looks at no sizes, so where they differ\nit bounds nothing."
                   : "OPT bounds the policies that take in every page they\nmiss; one that turns "
                     "pages away may need less.");
}

/* What "smallest" means. */
static void
print_scale(const struct advice *advice)
{
    char low[64];

    if (advice->step > 0)
        printf("\nSizes were tried from %s on in steps of %.1f %%, until one was enough; from the\n"
               "step before on by halving, to 1 %%.\n",
               size_text(advice, advice->scale.sizes[0], low), 100 * advice->step);
    else
        printf("\nEvery size was tried, from the smallest on, until one was enough.\n");
}

void
advice_print(const struct advice *advice)
{
    const struct candidate *best = advice_best(advice);

    print_trace(advice);
    if (advice->infinite <= 0) {
        printf("\nNothing is asked for twice, so no cache helps.\n");
        return;
    }
    if (best)
        print_best(advice, best);
    else
        print_none(advice);
    print_others(advice, best);
    if (advice->count != 0)
        print_scale(advice);
}

/* ---- for programs ---------------------------------------------------------------------------- */

/* Of bytes there is none where sizes are unknown. */
static void
json_ratio(struct json *j, const char *name, double ratio, bool known)
{
    if (known)
        json_double(j, name, ratio, 6);
    else
        json_null(j, name);
}

static void
json_size(struct json *j, const struct advice *advice, uint64_t size)
{
    json_uint(j, advice->in_bytes ? "capacity_bytes" : "capacity_urls", size);
}

static void
json_candidate(struct json *j, const struct advice *advice, const struct candidate *candidate,
               bool with_best)
{
    const bool sized = advice->subject->sized;
    char name[POLICY_MAX_TEXT];

    json_open_object(j, NULL);
    json_cstring(j, "policy", policy_format(&candidate->spec, name, sizeof(name)));
    json_bool(j, "needs_future", candidate->spec.ops->needs_future);
    json_bool(j, "reached", candidate->reached);
    json_size(j, advice, candidate->size);
    json_double(j, "hit_ratio", candidate->result.hit_ratio, 6);
    json_ratio(j, "byte_hit_ratio", candidate->result.byte_hit_ratio, sized);
    json_double(j, "hit_ratio_error", candidate->result.hit_ratio_error, 6);
    json_ratio(j, "byte_hit_ratio_error", candidate->result.byte_hit_ratio_error, sized);
    if (with_best) {
        json_double(j, "hit_ratio_at_best", candidate->in_as_much.hit_ratio, 6);
        json_ratio(j, "byte_hit_ratio_at_best", candidate->in_as_much.byte_hit_ratio, sized);
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
    json_double(j, "hit_ratio", advice->in_larger.hit_ratio, 6);
    json_ratio(j, "byte_hit_ratio", advice->in_larger.byte_hit_ratio, advice->subject->sized);
    json_close_object(j);
}

static void
json_advice(struct json *j, const struct advice *advice)
{
    const struct candidate *best = advice_best(advice);
    char name[POLICY_MAX_TEXT];

    json_cstring(j, "trace", advice->subject->path);
    json_uint(j, "requests", advice->subject->trace->request_count);
    json_uint(j, "distinct_urls", advice->subject->trace->url_count);
    if (advice->in_bytes)
        json_uint(j, "distinct_bytes", advice->all);
    json_double(j, "sample", advice->subject->rate, 9);
    json_cstring(j, "goal", advice->options->by_bytes ? "byte_hit_ratio" : "hit_ratio");
    json_double(j, "infinite", advice->infinite, 6);
    json_double(j, "share", advice->share, 6);
    json_double(j, "target", advice->target, 6);
    json_uint(j, "smallest_tried", advice->scale.sizes[0]);
    json_double(j, "step", advice->step, 6);
    if (best) {
        json_cstring(j, "policy", policy_format(&best->spec, name, sizeof(name)));
        json_size(j, advice, best->size);
        json_larger(j, advice);
    } else {
        json_null(j, "policy");
    }
    json_open_array(j, "policies");
    for (size_t i = 0; i < advice->count; i++)
        json_candidate(j, advice, &advice->candidates[i], best != NULL);
    json_close_array(j);
}

int
advice_print_json(const struct advice *advice)
{
    struct buf out;
    struct json j;

    buf_init(&out, 1u << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_advice(&j, advice);
    json_close_object(&j);
    return output_json(&out);
}
