#include "study/advise/advise.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "policies/charge.h"

#define LINE 79 /* columns of text */

static const char *
size_text(const struct advice *advice, uint64_t size, char text[64])
{
    return capacity_format(advice->in_bytes ? 0 : size, advice->in_bytes ? size : 0, text, 64);
}

static const char *
goal_word(const struct advice *advice)
{
    return advice->by_bytes ? "byte hit ratio" : "hit ratio";
}

/* ---- the trace ------------------------------------------------------------------------------- */

static void
print_trace(const struct advice *advice)
{
    const struct simulate_subject *subject = advice->subject;
    char bytes[32];

    trace_print_name(subject->path, subject->files, subject->by_time);
    printf(": ");
    simulate_print_counts(&subject->sim);
    if (subject->sized)
        printf(" of %s together",
               units_format_bytes(subject->facts.distinct_bytes, bytes, sizeof(bytes)));
    puts(".");
}

/* Which sizes are not the trace's own. */
static void
print_sizes(const struct simulate_subject *subject)
{
    const struct trace_counts *counts = &subject->trace->counts;

    if (subject->sized && subject->assumed.unknown)
        printf("Assumed sizes: %" PRIu64 " of %" PRIu64 " URLs count as %" PRIu32
               " bytes, the median of the others.\n",
               subject->assumed.unknown, subject->assumed.known + subject->assumed.unknown,
               subject->assumed.median);
    if (subject->sized && counts->inferred_sizes)
        printf("Inferred sizes: %" PRIu64 " of %zu requests have the size of another request for\n"
               "their URL.\n",
               counts->inferred_sizes, subject->trace->request_count);
}

static void
print_infinite(const struct advice *advice)
{
    const struct trace_totals *facts = &advice->subject->facts;
    char lifetime[SIMULATE_LIFETIME_TEXT];

    printf("An infinite cache hits %.1f %% of the requests", 100 * trace_totals_hit_ratio(facts));
    if (advice->subject->sized)
        printf(" and %.1f %% of the bytes", 100 * trace_totals_byte_hit_ratio(facts));
    printf(";\n%s.\n", simulate_lifetime(advice->subject, lifetime));
}

/* What was not simulated as it is. */
static void
print_method(const struct advice *advice)
{
    const struct simulate_subject *subject = advice->subject;
    unsigned seeds = 1;

    for (size_t i = 0; i < advice->count; i++)
        if (advice->candidates[i].job.spread.runs > seeds)
            seeds = advice->candidates[i].job.spread.runs;
    if (subject->whole_pages)
        printf("Bytes count whole pages, as in the server: the body, the URL, %" PRIu64
               " bytes of\nheader fields (assumed; --header-bytes), and bookkeeping (%" PRIu64
               " bytes or more).\n",
               advice->options->header_bytes, charge_page_overhead(policy_find("fifo")));
    if (subject->rate < 1)
        printf("Estimated from a sample of %zu of the %zu URLs; --sample 100%% takes all.\n",
               subject->sample.trace.page_count, subject->trace->url_count);
    if (seeds > 1)
        printf("Policies that draw random numbers: means of %u seeds (--seeds).\n", seeds);
}

/* ---- the recommendation ---------------------------------------------------------------------- */

/* "77.0 % of the requests and 45.3 % of the bytes". */
static void
print_ratios(const struct advice *advice, const struct sim_result *result)
{
    printf("%.1f %% of the requests", 100 * result->hit_ratio);
    if (advice->subject->sized)
        printf(" and %.1f %% of the bytes", 100 * result->byte_hit_ratio);
}

/* What the intervals include. */
static void
print_included(const struct advice *advice, const struct candidate *best)
{
    printf("  included: changes of the traffic like those between parts of this trace");
    if (advice->subject->whole_pages && !advice->options->header_bytes_given)
        printf(",\n  header fields of %.0f to %.0f bytes (--header-bytes)",
               advice_header_bytes(advice, false), advice_header_bytes(advice, true));
    if (advice->subject->rate < 1)
        printf(",\n  the sample's standard error of %.2f points", 100 * advice->sample_error);
    if (best->at_best.spread.runs > 1)
        printf(",\n  the standard deviation of %.2f points of %u seeds",
               100 * (advice->by_bytes ? best->at_best.spread.byte_hit_ratio
                                       : best->at_best.spread.hit_ratio),
               best->at_best.spread.runs);
    puts(".");
}

static void
print_certainty(const struct advice *advice, const struct candidate *best)
{
    const struct forecast *f = &advice->forecast;

    if (advice->too_little)
        printf("Too little data: the uncertainty of the %s is +-%.0f points (95 %%), so\n"
               "this is a guess. About %" PRIu64 " requests would be enough.\n",
               goal_word(advice), ceil(100 * advice->uncertainty), advice->requests_needed);
    printf("Intervals of the %s of as many requests to come, from an empty\n"
           "cache:\n"
           "  68 %%: %.1f to %.1f %%; 95 %%: %.1f to %.1f %%;\n",
           goal_word(advice), 100 * f->low[FORECAST_68], 100 * f->high[FORECAST_68],
           100 * f->low[FORECAST_95], 100 * f->high[FORECAST_95]);
    print_included(advice, best);
}

/* What the policy of most caches needs. */
static void
print_lru(const struct advice *advice, const struct candidate *best)
{
    char size[64];

    for (size_t i = 0; i < advice->count; i++) {
        const struct candidate *lru = &advice->candidates[i];

        if (lru == best || strcmp(lru->spec.ops->name, "lru") != 0)
            continue;
        if (lru->reached)
            printf("  LRU needs %s for that (%+.0f %%).\n", size_text(advice, lru->size, size),
                   100 * ((double)lru->size / (double)best->size - 1));
        else
            printf("  LRU does not reach that at any size tried.\n");
    }
}

static void
print_ties(const struct advice *advice)
{
    size_t ties = 0, others = 0, column = 0;
    char name[POLICY_MAX_TEXT];

    for (size_t i = 0; i < advice->count; i++)
        others += !advice->candidates[i].spec.ops->needs_future;
    for (size_t i = 0; i < advice->count; i++) {
        const struct candidate *candidate = &advice->candidates[i];

        if (!candidate->tied || candidate->spec.ops->needs_future)
            continue;
        policy_format(&candidate->spec, name, sizeof(name));
        if (ties++ == 0)
            column = (size_t)printf("Ties at this size, within the noise:");
        else
            column += (size_t)printf(",");
        if (column + strlen(name) + 2 > LINE)
            column = (size_t)printf("\n ") - 1;
        column += (size_t)printf(" %s", name);
    }
    if (ties)
        puts(".");
    if (ties && ties + 1 == others)
        puts("This trace does not distinguish the policies at this size.");
}

static void
print_best(const struct advice *advice, const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], size[64], share[32];

    policy_format(&best->spec, name, sizeof(name));
    printf("  %s with %s, %s of the %s; it hits\n  ", name, size_text(advice, best->size, size),
           capacity_format_share((double)best->size / (double)advice->all, share, sizeof(share)),
           advice->in_bytes ? "bytes of all pages" : "distinct URLs");
    print_ratios(advice, &best->job.result);
    puts(".");
    print_lru(advice, best);
    printf("  sunproxy set --policy %s --capacity-%s %" PRIu64 " --capacity-%s 0\n", name,
           advice->in_bytes ? "bytes" : "urls", best->size, advice->in_bytes ? "urls" : "bytes");
    if (advice->body_size && advice->body_size != best->size)
        printf("Of a server with --count-bytes body, which counts bodies alone: %s.\n",
               size_text(advice, advice->body_size, size));
    else if (advice->in_bytes && !advice->subject->whole_pages)
        printf("This counts bodies alone, as the server does only with --count-bytes body.\n");
    print_certainty(advice, best);
    print_ties(advice);
    if (advice->larger != 0)
        printf("A larger cache is not always better: %s hit %.1f %% of the %s.\n",
               size_text(advice, advice->larger, size),
               100 * advice_goal(advice, &advice->in_larger.result),
               advice->by_bytes ? "bytes" : "requests");
}

/* Why there is no recommendation. */
static void
print_none(const struct advice *advice)
{
    bool runnable = false;
    char all[64];

    for (size_t i = 0; i < advice->count; i++)
        runnable = runnable || !advice->candidates[i].spec.ops->needs_future;
    if (advice->count == 0)
        printf("  No recommendation: no policy that stores anything was given.\n");
    else if (!runnable)
        printf("  No recommendation: no server can run a policy that needs the future.\n");
    else
        printf("  No recommendation: no policy that a server can run reaches that at any size\n"
               "  tried, up to %s.\n",
               size_text(advice, advice->all, all));
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void
print_candidate(const struct advice *advice, struct columns *columns,
                const struct candidate *candidate, const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], text[64], all[64];
    const struct sim_result *at_best = &candidate->at_best.result;

    columns_cell(columns, "  %s", policy_format(&candidate->spec, name, sizeof(name)));
    columns_cell(columns, "%s",
                 candidate->reached ? size_text(advice, candidate->size, text) : "-");
    if (best && candidate->reached)
        columns_cell(columns, "%+.0f %%",
                     100.0 * ((double)candidate->size / (double)best->size - 1));
    else
        columns_cell(columns, "-");
    columns_cell(columns, "%.1f %%", 100 * at_best->hit_ratio);
    columns_cell(columns, "%.1f %%", 100 * at_best->byte_hit_ratio);
    if (candidate->tied)
        printf("  ties");
    if (!candidate->reached)
        printf("  at most %.1f %%, with %s of %s",
               100 * advice_goal(advice, &candidate->job.result),
               size_text(advice, candidate->size, text), size_text(advice, advice->all, all));
    if (candidate->spec.ops->needs_future)
        printf("  needs future");
    if ((best ? &candidate->at_best : &candidate->job)->result.error_unknown)
        printf("  (%s)", (best ? &candidate->at_best : &candidate->job)->result.error_unknown);
    columns_end(columns);
}

static void
print_candidates(const struct advice *advice, const struct candidate *best)
{
    const bool sized = advice->subject->sized;
    const struct column list[] = {
        {"  policy", -16, false}, {"needs", 12, false},          {"more", 9, !best},
        {"requests", 9, !best},   {"bytes", 9, !best || !sized},
    };
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};
    bool future = false;
    char size[64];

    if (advice->count == (best ? 1 : 0))
        return;
    if (best)
        printf("\nSize that the other policies need, and what they hit with %s:\n",
               size_text(advice, best->size, size));
    else
        printf("\nSize that each policy needs:\n");
    columns_head(&columns);
    for (size_t i = 0; i < advice->count; i++) {
        future = future || advice->candidates[i].spec.ops->needs_future;
        if (&advice->candidates[i] != best)
            print_candidate(advice, &columns, &advice->candidates[i], best);
    }
    if (future)
        printf("%s\n", advice->in_bytes
                           ? "OPT ignores sizes; with variable sizes it is not an upper bound."
                           : "OPT is the upper bound of policies that admit every page; one with\n"
                             "admission control may need less.");
}

static void
print_around(const struct advice *advice, const struct candidate *best)
{
    const bool sized = advice->subject->sized;
    const struct column list[] = {
        {"  size", -20, false}, {"requests", 9, false}, {"bytes", 9, !sized}};
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};
    char name[POLICY_MAX_TEXT], size[64];

    printf("\nHits of %s at sizes around it:\n", policy_format(&best->spec, name, sizeof(name)));
    columns_head(&columns);
    for (size_t i = 0; i < ADVICE_AROUND && advice->around[i]; i++) {
        const struct sim_result *r = &advice->in_around[i].result;

        columns_cell(&columns, "  %s", size_text(advice, advice->around[i], size));
        columns_cell(&columns, "%.1f %%", 100 * r->hit_ratio);
        columns_cell(&columns, "%.1f %%", 100 * r->byte_hit_ratio);
        columns_end(&columns);
    }
}

/* What "smallest" means. */
static void
print_scale(const struct advice *advice)
{
    char low[64];

    if (advice->step > 0)
        printf("\nSizes were tried from %s on in steps of %.1f %%, until one was enough;\n"
               "from the step before on by halving, to 1 %%.\n",
               size_text(advice, advice->scale.sizes[0], low), 100 * advice->step);
    else
        printf("\nEvery size was tried, from the smallest on, until one was enough.\n");
}

static void
print_goal(const struct advice *advice, bool primary)
{
    const struct candidate *best = advice_best(advice);

    printf("\n%s %g %% of an infinite cache's %s, %.1f %%:\n", primary ? "For" : "Or for",
           100 * advice->share, goal_word(advice), 100 * advice->target);
    if (best)
        print_best(advice, best);
    else
        print_none(advice);
}

void
advice_print(const struct advice *advice, const struct advice *other)
{
    const struct candidate *best = advice_best(advice);

    print_trace(advice);
    print_sizes(advice->subject);
    if (advice->infinite <= 0 && (!other || other->infinite <= 0)) {
        printf("\nNo URL is requested twice, so no cache helps.\n");
        return;
    }
    print_infinite(advice);
    print_method(advice);
    print_goal(advice, true);
    if (best)
        print_around(advice, best);
    print_candidates(advice, best);
    if (advice->count != 0)
        print_scale(advice);
    if (other && other->infinite > 0)
        print_goal(other, false);
}
