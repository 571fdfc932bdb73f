/*
 * sunproxy advise: which policy, and how large a cache, in plain words. What is asked is that of a
 * thesis on proxy caches (Leiden): the smallest cache that gives a stated share of the hit ratio
 * that an infinite cache gives.
 */
#include "study/advise.h"

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
    {"share", 0, "SHARE", option_share, AT(share), 0, 0, "90%", "the share of that hit ratio"},
    {"policy", 0, "LIST", simulate_take_policies, AT(common), 0, 0, NULL,
     "policies to choose from (default: as of 'sunproxy simulate')"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL, "print one JSON object"},
    {0},
};

static const struct option_group own = {.rows = rows};

static int
advise_path(const char *path, const struct simulate_options *options, double share, bool json)
{
    struct simulate_subject subject;
    struct advice advice;
    int status = simulate_subject_load(path, options, &subject);

    if (status != EX_OK)
        return status;
    status = advice_find(&advice, &subject, options, share);
    interrupt_release();
    if (status == EX_OK && json)
        status = advice_print_json(&advice);
    else if (status == EX_OK)
        advice_print(&advice);
    advice_free(&advice);
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
    return advise_path(argv[optind], &options->common, options->share, options->json);
}

static int
advise(int argc, char **argv)
{
    struct advise_options options = {.json = false};
    int status;

    simulate_options_init(&options.common);
    options.common.enough = SIMULATE_ENOUGH;
    status = parse_and_run(&options, argc, argv);
    simulate_options_free(&options.common);
    return status;
}

const struct command command_advise = {
    .name = "advise",
    .summary = "which policy and which size suit a trace",
    .about = "usage: sunproxy advise [OPTION...] TRACE\n\n"
             "Recommends a policy and the size of a cache: the smallest that gives a share of\n"
             "the hit ratio of an infinite cache, and the size that the other policies need.\n"
             "Sizes are in bytes where the trace has them, else in URLs. A larger cache can\n"
             "have a lower hit ratio, so sizes are tried from a thousandth of everything on,\n"
             "in 60 to 500 steps depending on the length of the trace, until one is enough;\n"
             "the size is then narrowed down to 1 % between the last two steps. Only sizes\n"
             "below or between two steps can be overlooked; the steps are printed. Of more\n"
             "than a million requests a sample is simulated, unless --sample is given.\n",
    .options = {&own, &simulate_option_group, &trace_option_group},
    .after = "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
             "74 output could not be written; 130 Ctrl-C.\n",
    .argument = "trace",
    .least = 1,
    .most = 1,
    .run = advise,
};
