/*
 * sunproxy advise: which policy, and how large a cache, in plain words. What is asked is that of a
 * thesis on proxy caches (Leiden): the smallest cache that gives a stated share of the hit ratio
 * that a cache which never forgets could give.
 */
#include "study/advise.h"

#include <stdlib.h>

#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "study/commands.h"

#define DEFAULT_SHARE 0.9

enum { OPTION_SHARE = SIMULATE_OPTION_END, OPTION_JSON };

static const struct option longs[] = {
    {"share", required_argument, NULL, OPTION_SHARE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    SIMULATE_LONG_OPTIONS,
    {NULL, 0, NULL, 0},
};

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

static bool
take_share(const char *argument, double *share)
{
    if (units_parse_share(argument, share))
        return true;
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
    options->needs_sizes = options->by_bytes;
    return advise_path(argv[optind], options, share, json);
}

static int
advise(int argc, char **argv)
{
    struct simulate_options options;
    int status;

    simulate_options_init(&options);
    options.enough = SIMULATE_ENOUGH;
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
        "give, and what the runners-up cost. Sizes are of bytes where the trace knows\n"
        "them, else of URLs. A larger cache can serve less, so sizes are tried from a\n"
        "thousandth of everything on, in 60 to 500 steps as the trace is long, until\n"
        "one is enough; from the step before on it is narrowed down to 1 %. Only what\n"
        "lies below or between two steps can be overlooked; they are told. Of more\n"
        "than a million requests a sample is taken, unless --sample says otherwise.\n\n"
        "      --share SHARE      that share (default: 90%)\n"
        "      --policy LIST      among these (default: as of 'sunproxy simulate')\n"
        "      --json             as one object\n"
        "  -h, --help             this text\n\n" SIMULATE_OPTIONS_HELP "\n" TRACE_OPTIONS_HELP "\n"
        "Exit status: 0 done; 64 wrong usage;\n" TRACE_EXIT_HELP
        "74 output could not be written; 130 Ctrl-C.\n",
    .run = advise,
};
