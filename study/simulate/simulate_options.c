#include "study/simulate/simulate_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/output.h"

#define MAX_JOBS 1024
#define MAX_SEEDS 1000
#define SIMULATE_SEEDS "5"

void
simulate_options_init(struct simulate_options *options)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    *options = (struct simulate_options){.trace = TRACE_OPTIONS_DEFAULT};
    options->trace.without_times = true;
    options->trace.without_methods = true;
    options->header_bytes = SIMULATE_HEADER_BYTES;
    options->jobs = processors < 1 ? 1 : processors > MAX_JOBS ? MAX_JOBS : (uint64_t)processors;
}

void
simulate_options_free(struct simulate_options *options)
{
    free(options->specs);
    options->specs = NULL;
    options->spec_count = 0;
    free(options->all_sizes);
    options->all_sizes = NULL;
    options->sizes_count = 0;
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

/* Of the registry: all, or the usual ones. */
static bool
add_policies(struct simulate_options *options, bool only_usual)
{
    for (size_t i = 0; policies[i]; i++) {
        struct policy_spec spec = policy_spec_of(policies[i]);

        if ((policies[i]->usual || !only_usual) && !add_policy(options, &spec))
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
            output_note("%s: traces have no fetch times; all pages cost the same here, unlike in "
                        "the daemon",
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
    return add_policies(options, true);
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

/* EX_OK, or the exit status after a complaint. */
static int
take_policy(struct simulate_options *options, const char *text)
{
    struct policy_spec spec;
    char why[256];

    if (strcasecmp(text, "all") == 0)
        return add_policies(options, false) ? EX_OK : EX_SOFTWARE;
    if (policy_parse(text, &spec, why, sizeof(why)))
        return add_policy(options, &spec) ? EX_OK : EX_SOFTWARE;
    output_complain("%s", why);
    return EX_USAGE;
}

int
simulate_take_policies(const struct option_row *row, void *field, const char *list)
{
    (void)row;
    while (true) {
        size_t len = policy_length(list);
        char *text = strndup(list, len);
        int status;

        if (!text) {
            output_complain("out of memory");
            return EX_SOFTWARE;
        }
        status = take_policy(field, text);
        free(text);
        if (status != EX_OK || list[len] == '\0')
            return status;
        list += len + 1;
    }
}

/* ---- the table ------------------------------------------------------------------------------- */

/* "0.5%" or "25%", below all. */
static bool
parse_percent(const char *text, double *percent)
{
    size_t len = strlen(text);

    return len != 0 && text[len - 1] == '%' && units_parse_decimal(text, len - 1, percent) &&
           *percent < 100;
}

static int
take_warmup(const struct option_row *row, void *field, const char *text)
{
    struct simulate_options *options = field;

    options->warmup = 0;
    options->warmup_percent = 0;
    if (parse_percent(text, &options->warmup_percent) ||
        units_parse_uint(text, 0, UINT64_MAX, &options->warmup))
        return EX_OK;
    return options_wrong(row, "a number of requests, or per cent of them below 100%", text);
}

static int
take_ignore_sizes(const struct option_row *row, void *field, const char *text)
{
    struct simulate_options *options = field;

    options->trace.without_sizes = true;
    return option_flag(row, &options->ignore_sizes, text);
}

/* "1" could be meant as 1 % or as all. */
static int
take_sample(const struct option_row *row, void *field, const char *text)
{
    struct simulate_options *options = field;

    if (units_parse_share(text, &options->rate) &&
        (options->rate < 1 || text[strlen(text) - 1] == '%'))
        return EX_OK;
    return options_wrong(row, "a share of the URLs such as 1% or 0.01; all of them are 100%", text);
}

static int
take_header_bytes(const struct option_row *row, void *field, const char *text)
{
    struct simulate_options *options = field;

    options->header_bytes_given = true;
    return option_uint(row, &options->header_bytes, text);
}

/* Times are read only where they are needed. */
static int
take_ttl(const struct option_row *row, void *field, const char *text)
{
    struct simulate_options *options = field;

    options->trace.without_times = false;
    return option_duration(row, &options->storage.ttl_us, text);
}

static int
take_sizes(const struct option_row *row, void *field, const char *path)
{
    struct simulate_options *options = field;
    const char **all =
        realloc(options->all_sizes, (options->sizes_count + 1) * sizeof(*options->all_sizes));

    (void)row;
    if (!all) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    options->all_sizes = all;
    all[options->sizes_count++] = path;
    options->sizes = path;
    return EX_OK;
}

#define AT(field) offsetof(struct simulate_options, field)

static const struct option_row rows[] = {
    {"ignore-sizes", 0, NULL, take_ignore_sizes, 0, 0, 0, NULL,
     "count every page as 1, whatever its size"},
    {"sizes", 0, "FILE", take_sizes, 0, 0, 0, NULL,
     "sizes for a trace that has none: one line per URL, with URL, tab, bytes; where most are "
     "known, the others are assumed to be their median"},
    {"count-bytes", 0, "body|whole", option_choice, AT(count_bytes), SIMULATE_COUNT_BODY, 0,
     "whole",
     "what counts in bytes: whole pages as in the server: body, URL, --header-bytes, "
     "and bookkeeping; or bodies alone, as traces have them"},
    {"header-bytes", 0, "N", take_header_bytes, 0, 0, 65536, NULL,
     "bytes of header fields of each page with --count-bytes whole (default: 300 are assumed)"},
    {"ttl", 0, "DURATION", take_ttl, 0, 0, 0, NULL,
     "pages expire this long after they were stored, such as 10m; the trace must have times "
     "(default: never)"},
    {"max-page", 0, "SIZE", option_bytes, AT(storage.max_page), 1, UINT32_MAX, NULL,
     "do not store pages that are larger (default: no bound)"},
    {"min-uses", 0, "N", option_uint, AT(storage.min_uses), 1, UINT32_MAX, "1",
     "store a page at the N-th request that misses it"},
    {"by-bytes", 0, NULL, option_flag, AT(by_bytes), 0, 0, NULL,
     "rank by the byte hit ratio instead of the hit ratio"},
    {"warmup", 0, "N", take_warmup, 0, 0, 0, NULL,
     "do not count the first N requests, or N% of them"},
    {"sample", 0, "RATE", take_sample, 0, 0, 0, NULL,
     "simulate a share of the URLs, such as 1% or 0.01, or 100% for all, in a cache smaller by the "
     "same factor; the estimated error is printed, or why the sample does not give one"},
    {"seed", 0, "N", option_uint, AT(seed), 0, UINT64_MAX, "1",
     "seed of the sample, and of the first run of policies that draw random numbers"},
    {"seeds", 0, "N", option_uint, AT(seeds), 1, MAX_SEEDS, SIMULATE_SEEDS,
     "runs of each policy that draws random numbers, with successive seeds; the mean is printed, "
     "and the standard deviation"},
    {"jobs", 'j', "N", option_uint, AT(jobs), 1, MAX_JOBS, NULL,
     "number of threads (default: one per processor)"},
    {0},
};

const struct option_group simulate_option_group = {.heading = "The simulation", .rows = rows};
