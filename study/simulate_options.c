#include "study/simulate_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/output.h"

#define MAX_JOBS 1024

/* Of those, whatever is registered. */
static const char *const usual[] = {"lru", "lfu",    "fifo", "rand", "maxs",      "opt", "sieve",
                                    "arc", "s3fifo", "gdsf", "lirs", "w-tinylfu", NULL};

void
simulate_options_init(struct simulate_options *options)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    *options = (struct simulate_options){.trace = TRACE_OPTIONS_DEFAULT, .seed = 1};
    options->trace.without_times = true;
    options->trace.without_methods = true;
    options->jobs = processors < 1 ? 1 : processors > MAX_JOBS ? MAX_JOBS : (uint64_t)processors;
}

void
simulate_options_free(struct simulate_options *options)
{
    free(options->specs);
    options->specs = NULL;
    options->spec_count = 0;
}

/* ---- policies -------------------------------------------------------------------------------- */

/* The same policy twice is one policy. */
static bool
add_policy(struct simulate_options *options, const struct policy_spec *spec)
{
    struct policy_spec *specs;

    for (size_t i = 0; i < options->spec_count; i++)
        if (policy_spec_equal(&options->specs[i], spec))
            return true;
    specs = realloc(options->specs, (options->spec_count + 1) * sizeof(*specs));
    if (!specs) {
        output_complain("out of memory");
        return false;
    }
    options->specs = specs;
    specs[options->spec_count++] = *spec;
    return true;
}

static bool
add_all_policies(struct simulate_options *options)
{
    for (size_t i = 0; policies[i]; i++) {
        struct policy_spec spec = policy_spec_of(policies[i]);

        if (!add_policy(options, &spec))
            return false;
    }
    return true;
}

/* What is not as it would be in the daemon. */
static void
note_costs(const struct simulate_options *options)
{
    for (size_t i = 0; i < options->spec_count; i++) {
        char text[POLICY_MAX_TEXT];

        if (policy_looks_at_cost(&options->specs[i]))
            output_note("%s: no trace tells what fetching took; all pages cost the same here, not "
                        "so in the daemon",
                        policy_format(&options->specs[i], text, sizeof(text)));
    }
}

bool
simulate_settle_policies(struct simulate_options *options)
{
    if (options->spec_count != 0) {
        note_costs(options);
        return true;
    }
    for (size_t i = 0; usual[i]; i++) {
        struct policy_spec spec = policy_spec_of(policy_find(usual[i]));

        if (spec.ops && !add_policy(options, &spec))
            return false;
    }
    return true;
}

/*
 * Where the first policy of a list ends. The comma stands between policies and between a policy's
 * parameters: what comes next is a parameter if it is a name, an equals sign and no colon before.
 */
static size_t
policy_length(const char *list)
{
    size_t len = strcspn(list, ",");

    while (list[len] == ',') {
        const char *next = list + len + 1;
        size_t name = strcspn(next, "=:,");

        if (next[name] != '=')
            break;
        len += 1 + strcspn(next, ",");
    }
    return len;
}

static bool
take_policies(struct simulate_options *options, const char *list)
{
    while (true) {
        size_t len = policy_length(list);
        struct policy_spec spec;
        char *text = strndup(list, len), why[256];
        bool good;

        if (!text) {
            output_complain("out of memory");
            return false;
        }
        if (strcasecmp(text, "all") == 0) {
            good = add_all_policies(options);
        } else {
            good = policy_parse(text, &spec, why, sizeof(why));
            if (!good)
                output_complain("%s", why);
            else
                good = add_policy(options, &spec);
        }
        free(text);
        if (!good || list[len] == '\0')
            return good;
        list += len + 1;
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* "0.5%" or "25%", below all. */
static bool
parse_percent(const char *text, double *percent)
{
    size_t len = strlen(text);

    return len != 0 && text[len - 1] == '%' && units_parse_decimal(text, len - 1, percent) &&
           *percent < 100;
}

static bool
take_warmup(struct simulate_options *options, const char *argument)
{
    options->warmup = 0;
    options->warmup_percent = 0;
    if (parse_percent(argument, &options->warmup_percent) ||
        units_parse_uint(argument, 0, UINT64_MAX, &options->warmup))
        return true;
    output_complain("--warmup is a number of requests, or per cent of them below 100%%, not '%s'",
                    argument);
    return false;
}

static bool
take_rate(struct simulate_options *options, const char *argument)
{
    if (units_parse_share(argument, &options->rate))
        return true;
    output_complain("--sample is a share above 0 and at most 1, such as 0.01 or 1%%, not '%s'",
                    argument);
    return false;
}

static bool
take_uint(const char *name, const char *argument, uint64_t low, uint64_t high, uint64_t *value)
{
    if (units_parse_uint(argument, low, high, value))
        return true;
    output_complain("%s is a number from %ju to %ju, not '%s'", name, (uintmax_t)low,
                    (uintmax_t)high, argument);
    return false;
}

int
simulate_option(struct simulate_options *options, int option, const char *argument)
{
    switch (option) {
    case SIMULATE_OPTION_POLICY:
        return take_policies(options, argument) ? 1 : -1;
    case SIMULATE_OPTION_SIZES:
        options->sizes = argument;
        return 1;
    case SIMULATE_OPTION_IGNORE_SIZES:
        options->ignore_sizes = true;
        options->trace.without_sizes = true;
        return 1;
    case SIMULATE_OPTION_BY_BYTES:
        options->by_bytes = true;
        return 1;
    case SIMULATE_OPTION_WARMUP:
        return take_warmup(options, argument) ? 1 : -1;
    case SIMULATE_OPTION_SAMPLE:
        return take_rate(options, argument) ? 1 : -1;
    case SIMULATE_OPTION_SEED:
        return take_uint("--seed", argument, 0, UINT64_MAX, &options->seed) ? 1 : -1;
    case 'j':
        return take_uint("--jobs", argument, 1, MAX_JOBS, &options->jobs) ? 1 : -1;
    default:
        return trace_option(&options->trace, option, argument);
    }
}
