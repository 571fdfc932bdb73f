/*
 * sunproxy advise: recommends a policy and a size. The question is that of a thesis on proxy caches
 * (Leiden): the smallest cache that reaches a stated share of an infinite cache's hit ratio.
 */
#include "study/advise/advise.h"

#include <getopt.h>

#include "cli/interrupt.h"
#include "study/commands.h"

struct advise_options {
    struct simulate_options common;
    double share;
    bool json;
};

#define AT(field) offsetof(struct advise_options, field)

static const struct option_row rows[] = {
    {"share", 0, "SHARE", option_share, AT(share), 0, 0, "90%",
     "share of the infinite cache's hit ratio that is to be reached"},
    {"policy", 0, "LIST", simulate_take_policies, AT(common), 0, 0, NULL,
     "policies to choose from (default: as of 'sunproxy simulate')"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print one JSON object"},
    {0},
};

static const struct option_group own = {.rows = rows};

/* Both goals where sizes are known; that of the options first. */
static int
find_both(struct advice advices[2], size_t *count, struct simulate_subject *subject,
          const struct advise_options *options)
{
    struct advice_work work = {.done = 0};
    int status;

    *count = subject->sized ? 2 : 1;
    progress_begin_work(&work.progress, "advise", "requests");
    status = advice_choose_sample(subject, &options->common, options->share, &work);
    for (size_t i = 0; i < *count && status == EX_OK; i++) {
        bool by_bytes = (i == 0) == options->common.by_bytes;

        work.goals_after = (unsigned)(*count - i - 1);
        status =
            advice_find(&advices[i], subject, &options->common, by_bytes, options->share, &work);
        if (status == EX_OK)
            status = advice_compare(&advices[i]);
        advices[i].work = NULL;
    }
    progress_clear(&work.progress);
    return status;
}

static int
advise_paths(char *const *paths, size_t count, const struct advise_options *options)
{
    struct simulate_subject subject;
    struct advice advices[2] = {{0}};
    const struct advice *other;
    size_t goals;
    int status = simulate_subject_load(paths, count, &options->common, &subject);

    if (status != EX_OK)
        return status;
    status = find_both(advices, &goals, &subject, options);
    other = goals > 1 ? &advices[1] : NULL;
    interrupt_release();
    if (status == EX_OK && options->json)
        status = advice_print_json(&advices[0], other);
    else if (status == EX_OK)
        advice_print(&advices[0], other);
    advice_free(&advices[0]);
    advice_free(&advices[1]);
    simulate_subject_free(&subject);
    return status;
}

static int
parse_and_run(struct advise_options *options, int argc, char **argv)
{
    void *const into[] = {options, &options->common, &options->common.trace};
    int status = command_read(&command_advise, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    if (!simulate_settle_policies(&options->common))
        return EX_SOFTWARE;
    options->common.needs_sizes = options->common.by_bytes;
    return advise_paths(argv + optind, (size_t)(argc - optind), options);
}

static int
advise(int argc, char **argv)
{
    struct advise_options options = {.json = false};
    int status;

    simulate_options_init(&options.common);
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    return status;
}

const struct command command_advise = {
    .name = "advise",
    .summary = "recommend a policy and a size for a trace",
    .about = "usage: sunproxy advise [OPTION...] TRACE...\n\n"
             "Recommends a policy and the smallest cache that reaches 90 % (--share) of an\n"
             "infinite cache's hit ratio, and prints what the other policies need, which of\n"
             "them tie, how certain that is, and the hit ratios at sizes around it. Several\n"
             "files are one trace, ordered by time. Sizes are in bytes where the trace has\n"
             "them, else in URLs. The intervals are of the ratio of as many requests to come,\n"
             "from an empty cache: changes of the traffic as parts of this trace show them,\n"
             "unknown header fields and the sample's error are included.\n\n"
             "A larger cache can have a lower hit ratio, so sizes are\n"
             "tried from a thousandth of everything on, in 60 to 500 steps depending on the\n"
             "length of the trace, until one is enough; the size is then narrowed down to 1 %\n"
             "between the last two steps. Only sizes below or between two steps can be\n"
             "overlooked; the steps are printed. Of more than 400,000 requests a sample is\n"
             "simulated if its error is small, unless --sample is given.\n",
    .options = {&own, &simulate_option_group, &trace_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "74 output could not be written; 130 Ctrl-C.\n",
    .argument = "trace",
    .least = 1,
    .most = COMMAND_MANY,
    .run = advise,
};
