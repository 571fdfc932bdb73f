/*
 * sunproxy advise: which policy, and how large a cache, in plain words. What is asked is that of a
 * thesis on proxy caches (Leiden): the smallest cache that gives a stated share of the hit ratio
 * that a cache which never forgets could give.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/units.h"
#include "client/capacity.h"
#include "client/command.h"
#include "client/connect.h"
#include "client/output.h"
#include "client/simulate_run.h"
#include "client/simulate_subject.h"

#define DEFAULT_SHARE 0.9
#define ENOUGH 2000000  /* requests to simulate where --sample does not say */
#define NEAR_ENOUGH 100 /* a size is searched to one part in so many */

enum { OPTION_SHARE = SIMULATE_OPTION_END, OPTION_JSON };

static const struct option longs[] = {
    {"share", required_argument, NULL, OPTION_SHARE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    SIMULATE_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

/* The search for one policy's size. */
struct candidate {
    struct policy_spec spec;
    uint64_t low;  /* known to be too small; 0 */
    uint64_t high; /* known to be enough, once `reached` */
    bool reached;
    bool ended;
    struct sim_result at_high;
    struct sim_result at_best; /* in a cache of the size that is advised */
};

struct advice {
    const struct simulate_options *options;
    const struct simulate_subject *subject;
    double share;
    double infinite; /* ratio of the cache that never forgets */
    double target;
    bool in_bytes;                /* sizes are of bytes */
    uint64_t all;                 /* the size that holds everything */
    struct candidate *candidates; /* owned; sorted in the end: the smallest first */
    struct sim_job *jobs;         /* owned; as many */
    size_t count;
};

/* ---- searching ------------------------------------------------------------------------------- */

static double
goal(const struct advice *advice, const struct sim_result *result)
{
    return advice->options->by_bytes ? result->byte_hit_ratio : result->hit_ratio;
}

static struct sim_job
job_of(const struct advice *advice, const struct policy_spec *spec, uint64_t size)
{
    return simulate_job(advice->subject, advice->options, spec, advice->in_bytes ? 0 : size,
                        advice->in_bytes ? size : 0);
}

/* Halves on a scale where as many per cent are as far; the first look is at a cache of all. */
static uint64_t
next_size(const struct candidate *candidate)
{
    uint64_t low = candidate->low, high = candidate->high, middle;

    if (!candidate->reached)
        return high;
    middle = low ? low + (high - low) / 2 : high / 16;
    if (low && high / low >= 4)
        middle = 2 * low;
    return middle > low ? middle : low + 1;
}

static bool
is_found(const struct candidate *candidate)
{
    return candidate->ended || (candidate->reached && candidate->high - candidate->low <=
                                                          1 + candidate->high / NEAR_ENOUGH);
}

static void
learn(const struct advice *advice, struct candidate *candidate, uint64_t size,
      const struct sim_result *result)
{
    if (goal(advice, result) >= advice->target) {
        candidate->reached = true;
        candidate->high = size;
        candidate->at_high = *result;
    } else if (candidate->reached) {
        candidate->low = size;
    } else {
        candidate->ended = true; /* not even with room for all */
        candidate->at_high = *result;
    }
}

/* Every policy that is still searched takes a step, all at once. */
static int
step(struct advice *advice, bool *more)
{
    size_t count = 0, at = 0;
    int status;

    for (size_t i = 0; i < advice->count; i++)
        if (!is_found(&advice->candidates[i]))
            advice->jobs[count++] =
                job_of(advice, &advice->candidates[i].spec, next_size(&advice->candidates[i]));
    *more = count != 0;
    if (count == 0)
        return EX_OK;
    status = simulate_run(advice->jobs, count, (unsigned)advice->options->jobs, "advise");
    if (status != EX_OK)
        return status;
    for (size_t i = 0; i < advice->count; i++) {
        struct candidate *candidate = &advice->candidates[i];

        if (!is_found(candidate))
            learn(advice, candidate, next_size(candidate), &advice->jobs[at++].result);
    }
    return EX_OK;
}

/* The smallest first; those that never get there last, the best of them first. */
static int
compare_candidates(const void *a, const void *b, void *context)
{
    const struct candidate *x = a, *y = b;
    double gain = goal(context, &x->at_high) - goal(context, &y->at_high);

    if (x->reached != y->reached)
        return x->reached ? -1 : 1;
    if (x->reached && x->high != y->high)
        return x->high < y->high ? -1 : 1;
    if (gain > 0 || gain < 0)
        return gain > 0 ? -1 : 1;
    return strcmp(x->spec.ops->name, y->spec.ops->name);
}

/* The best that a server can run; NULL if none gets there. */
static const struct candidate *
winner(const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        if (advice->candidates[i].reached && !advice->candidates[i].spec.ops->needs_future)
            return &advice->candidates[i];
    return NULL;
}

/* What the others hit in a cache as large as the winner needs. */
static int
compare_at_best(struct advice *advice)
{
    const struct candidate *best = winner(advice);
    int status;

    if (!best)
        return EX_OK;
    for (size_t i = 0; i < advice->count; i++)
        advice->jobs[i] = job_of(advice, &advice->candidates[i].spec, best->high);
    status = simulate_run(advice->jobs, advice->count, (unsigned)advice->options->jobs, "advise");
    if (status == EX_OK)
        for (size_t i = 0; i < advice->count; i++)
            advice->candidates[i].at_best = advice->jobs[i].result;
    return status;
}

static int
search(struct advice *advice)
{
    bool more = true;
    int status = EX_OK;

    while (more && status == EX_OK)
        status = step(advice, &more);
    if (status != EX_OK)
        return status;
    qsort_r(advice->candidates, advice->count, sizeof(*advice->candidates), compare_candidates,
            advice);
    return compare_at_best(advice);
}

/* ---- in plain words -------------------------------------------------------------------------- */

static const char *
size_text(const struct advice *advice, uint64_t size, char text[64])
{
    return capacity_format(advice->in_bytes ? 0 : size, advice->in_bytes ? size : 0, text, 64);
}

static double
size_share(const struct advice *advice, uint64_t size)
{
    return 100.0 * (double)size / (double)advice->all;
}

static void
print_trace(const struct advice *advice)
{
    const struct simulate_subject *subject = advice->subject;
    const char *what = advice->options->by_bytes ? "bytes asked for" : "requests";
    char bytes[32];

    printf("%s: %zu requests for %zu URLs", subject->path, subject->trace->request_count,
           subject->trace->url_count);
    if (subject->sized)
        printf(" of %s together",
               units_format_bytes(subject->facts.distinct_bytes, bytes, sizeof(bytes)));
    printf(".\nA cache that never forgets would serve %.1f %% of the %s; %.0f %% of that is "
           "%.1f %%.\n",
           100 * advice->infinite, what, 100 * advice->share, 100 * advice->target);
    if (subject->rate < 1)
        printf("All that follows is estimated from a sample of %zu of the URLs; --sample 1 "
               "takes all.\n",
               subject->sample.trace.page_count);
}

static void
print_best(const struct advice *advice, const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], size[64];

    if (!best) {
        printf("\nNone of these policies gets that far, even with room for everything.\n");
        return;
    }
    printf("\nTake %s with %s, %.2g %% of what was asked for: it serves %.1f %%",
           policy_format(&best->spec, name, sizeof(name)), size_text(advice, best->high, size),
           size_share(advice, best->high), 100 * goal(advice, &best->at_high));
    if (advice->subject->rate < 1)
        printf(" (in 95 of 100 samples within %.2f %%)",
               100 * 1.96 *
                   (advice->options->by_bytes ? best->at_high.byte_hit_ratio_error
                                              : best->at_high.hit_ratio_error));
    puts(".");
    printf("  sunproxy set --policy %s --capacity-%s %" PRIu64 " --capacity-%s 0\n", name,
           advice->in_bytes ? "bytes" : "urls", best->high, advice->in_bytes ? "urls" : "bytes");
    if (advice->in_bytes)
        printf("The server counts a page's URL and headers as well, unless it runs with\n"
               "--count-bytes body.\n");
}

static void
print_runner_up(const struct advice *advice, const struct candidate *candidate,
                const struct candidate *best)
{
    char name[POLICY_MAX_TEXT], size[64], more[32] = "";

    policy_format(&candidate->spec, name, sizeof(name));
    if (!candidate->reached) {
        printf("  %-20s not at any size: %.1f %% with room for everything\n", name,
               100 * goal(advice, &candidate->at_high));
        return;
    }
    if (best && best->high)
        snprintf(more, sizeof(more), "%+.0f %%",
                 100.0 * ((double)candidate->high / (double)best->high - 1));
    printf("  %-20s %14s %9s", name, size_text(advice, candidate->high, size), more);
    if (best)
        printf("   %5.1f %%", 100 * goal(advice, &candidate->at_best));
    if (candidate->spec.ops->needs_future)
        printf("  (knows the future%s)", advice->in_bytes ? ", not sizes" : ": a bound");
    putchar('\n');
}

static void
print_advice(const struct advice *advice)
{
    const struct candidate *best = winner(advice);
    bool others = false;

    print_trace(advice);
    if (advice->infinite <= 0) {
        printf("\nNothing is asked for twice, so no cache helps.\n");
        return;
    }
    print_best(advice, best);
    for (size_t i = 0; i < advice->count; i++) {
        if (&advice->candidates[i] == best)
            continue;
        if (!others && best)
            printf("\nWhat the others need for as much, and what they serve in as much room:\n");
        else if (!others)
            putchar('\n');
        others = true;
        print_runner_up(advice, &advice->candidates[i], best);
    }
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
json_candidate(struct json *j, const struct advice *advice, const struct candidate *candidate,
               bool with_best)
{
    char name[POLICY_MAX_TEXT];

    json_open_object(j, NULL);
    json_cstring(j, "policy", policy_format(&candidate->spec, name, sizeof(name)));
    json_bool(j, "needs_future", candidate->spec.ops->needs_future);
    json_bool(j, "reached", candidate->reached);
    if (candidate->reached)
        json_uint(j, advice->in_bytes ? "capacity_bytes" : "capacity_urls", candidate->high);
    json_double(j, "hit_ratio", candidate->at_high.hit_ratio, 6);
    json_double(j, "byte_hit_ratio", candidate->at_high.byte_hit_ratio, 6);
    json_double(j, "hit_ratio_error", candidate->at_high.hit_ratio_error, 6);
    json_double(j, "byte_hit_ratio_error", candidate->at_high.byte_hit_ratio_error, 6);
    if (with_best) {
        json_double(j, "hit_ratio_at_best", candidate->at_best.hit_ratio, 6);
        json_double(j, "byte_hit_ratio_at_best", candidate->at_best.byte_hit_ratio, 6);
    }
    json_close_object(j);
}

static int
print_json(const struct advice *advice)
{
    const struct candidate *best = winner(advice);
    char name[POLICY_MAX_TEXT];
    struct buf out;
    struct json j;

    buf_init(&out, 1u << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_cstring(&j, "trace", advice->subject->path);
    json_uint(&j, "requests", advice->subject->trace->request_count);
    json_uint(&j, "distinct_urls", advice->subject->trace->url_count);
    if (advice->in_bytes)
        json_uint(&j, "distinct_bytes", advice->all);
    json_double(&j, "sample", advice->subject->rate, 9);
    json_cstring(&j, "goal", advice->options->by_bytes ? "byte_hit_ratio" : "hit_ratio");
    json_double(&j, "infinite", advice->infinite, 6);
    json_double(&j, "share", advice->share, 6);
    json_double(&j, "target", advice->target, 6);
    if (best) {
        json_cstring(&j, "policy", policy_format(&best->spec, name, sizeof(name)));
        json_uint(&j, advice->in_bytes ? "capacity_bytes" : "capacity_urls", best->high);
    } else {
        json_null(&j, "policy");
    }
    json_open_array(&j, "policies");
    for (size_t i = 0; i < advice->count; i++)
        json_candidate(&j, advice, &advice->candidates[i], best != NULL);
    json_close_array(&j);
    json_close_object(&j);
    return output_json(&out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static bool
prepare(struct advice *advice)
{
    const struct simulate_options *options = advice->options;
    const struct simulate_subject *subject = advice->subject;
    const struct sim_facts *facts = &subject->facts;
    uint64_t part = options->by_bytes ? facts->bytes_hit : facts->hits;
    uint64_t whole = options->by_bytes ? facts->bytes : facts->requests;

    advice->in_bytes = subject->sized;
    advice->all = subject->sized ? facts->distinct_bytes : subject->trace->url_count;
    if (advice->all == 0)
        advice->all = 1;
    advice->infinite = whole ? (double)part / (double)whole : 0;
    advice->target = advice->share * advice->infinite;
    advice->candidates = calloc(options->spec_count, sizeof(*advice->candidates));
    advice->jobs = calloc(options->spec_count, sizeof(*advice->jobs));
    if (!advice->candidates || !advice->jobs)
        return false;
    for (size_t i = 0; i < options->spec_count; i++)
        if (options->specs[i].ops)
            advice->candidates[advice->count++] = (struct candidate){
                .spec = options->specs[i], .high = advice->all, .ended = advice->infinite <= 0};
    return true;
}

static int
advise_path(const char *path, const struct simulate_options *options, double share, bool json)
{
    struct simulate_subject subject;
    struct advice advice = {.options = options, .subject = &subject, .share = share};
    int status = simulate_subject_load(path, options, &subject);

    if (status != EX_OK)
        return status;
    if (!prepare(&advice)) {
        output_complain("out of memory");
        status = EX_SOFTWARE;
    } else {
        status = search(&advice);
    }
    if (status == EX_OK && json)
        status = print_json(&advice);
    else if (status == EX_OK)
        print_advice(&advice);
    free(advice.candidates);
    free(advice.jobs);
    simulate_subject_free(&subject);
    return status;
}

/* "90%" or "0.9". */
static bool
take_share(const char *argument, double *share)
{
    char *end;

    if (strspn(argument, "0123456789.") > 0) {
        *share = strtod(argument, &end);
        if (strcmp(end, "%") == 0)
            *share /= 100;
        if ((*end == '\0' || strcmp(end, "%") == 0) && *share > 0 && *share <= 1)
            return true;
    }
    output_complain("--share is above 0 and at most 100 %%, such as 90%% or 0.9, not '%s'",
                    argument);
    return false;
}

static int
parse_and_run(struct simulate_options *options, int argc, char **argv)
{
    double share = DEFAULT_SHARE;
    bool json = false;
    int option;

    while ((option = getopt_long(argc, argv, "j:h", longs, NULL)) != -1) {
        if (option == 'h' || option == OPTION_HELP)
            return command_help(&command_advise);
        if (option == OPTION_JSON)
            json = true;
        else if (option == OPTION_SHARE ? !take_share(optarg, &share)
                                        : simulate_option(options, option, optarg) <= 0)
            return command_usage(&command_advise);
    }
    if (argc - optind != 1) {
        output_complain(optind == argc ? "a trace is missing" : "one trace at a time");
        return command_usage(&command_advise);
    }
    if (!simulate_settle_policies(options))
        return EX_SOFTWARE;
    return advise_path(argv[optind], options, share, json);
}

static int
advise(int argc, char **argv)
{
    struct simulate_options options;
    int status;

    simulate_options_init(&options);
    options.enough = ENOUGH;
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options);
    return status;
}

const struct command command_advise = {
    .name = "advise",
    .summary = "which policy and which size a trace asks for",
    .help =
        "usage: sunproxy advise [OPTION...] TRACE\n\n"
        "Says in plain words which policy to take and how large a cache: the smallest\n"
        "that gives a share of the hit ratio that a cache which never forgets could\n"
        "give, and what the runners-up cost. Sizes are searched to 1 %. They are of\n"
        "bytes where the trace knows them, else of URLs. Of more than 2 million requests\n"
        "a sample is taken, unless --sample says otherwise.\n\n"
        "      --share SHARE      that share (default: 90%)\n"
        "      --policy LIST      among these (default: as of 'sunproxy simulate')\n"
        "      --json             as one object\n"
        "  -h, --help             this text\n\n" SIMULATE_OPTIONS_HELP "\n" TRACE_OPTIONS_HELP "\n"
        "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
        "74 output could not be written; 130 Ctrl-C.\n",
    .run = advise,
};
