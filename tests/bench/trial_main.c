/*
 * trial: what the simulator's parts take by themselves, as a line of JSON. Of a trace alone: the
 * CPU time and the memory that loading takes. With a policy and a capacity in pages: besides, what
 * one run over the loaded trace takes. Memory is that which is the process's own (RssAnon), looked
 * at as the last request of the run is made, so that everything the run holds is still there.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/units.h"
#include "sim/sim.h"
#include "trace/trace.h"

static double
cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Of this process; 0 where the system does not tell. */
static uint64_t
own_bytes(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kibibytes = 0;

    while (status && fgets(line, sizeof(line), status))
        if (sscanf(line, "RssAnon: %" SCNu64, &kibibytes) == 1)
            break;
    if (status)
        fclose(status);
    return kibibytes * 1024;
}

struct last {
    size_t number;
    uint64_t bytes;
};

static bool
look_at_last(void *context, const struct sim_event *event)
{
    struct last *last = context;

    if (event->number == last->number)
        last->bytes = own_bytes();
    return true;
}

static int
run_policy(const struct trace *trace, const char *policy, const char *capacity)
{
    struct sim_trace simulated = {.request_count = trace->request_count,
                                  .ids = trace->ids,
                                  .page_count = trace->url_count,
                                  .keys = trace->keys};
    struct last last = {.number = trace->request_count - 1};
    struct sim_config config = {.seed = 1, .tell = look_at_last, .context = &last};
    struct sim_result result;
    enum sim_error error;
    uint32_t *next = NULL;
    uint64_t before;
    double begun;
    char why[256];

    if (!policy_parse(policy, &config.spec, why, sizeof(why)) ||
        !units_parse_uint(capacity, 1, UINT32_MAX, &config.capacity_pages)) {
        fprintf(stderr, "trial: '%s' at '%s' is no policy with a capacity in pages\n", policy,
                capacity);
        return EX_USAGE;
    }
    begun = cpu_seconds();
    /* 4 bytes a request, made once for all runs: they count with the trace. */
    if (config.spec.ops && config.spec.ops->needs_future) {
        simulated.next = next = sim_next(&simulated);
        if (!next) {
            fputs("trial: out of memory\n", stderr);
            return EX_SOFTWARE;
        }
    }
    before = own_bytes();
    error = sim_run(&simulated, &config, NULL, &result);
    free(next);
    if (error != SIM_OK) {
        fprintf(stderr, "trial: %s\n", sim_strerror(error));
        return EX_SOFTWARE;
    }
    printf(", \"run_cpu_s\": %.3f, \"run_bytes\": %" PRIu64 ", \"pages\": %" PRIu64,
           cpu_seconds() - begun, last.bytes > before ? last.bytes - before : 0, result.pages);
    return EX_OK;
}

int
main(int argc, char **argv)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *trace;
    uint64_t before = own_bytes();
    double begun = cpu_seconds();
    char why[1024];
    int status = EX_OK;

    if (argc != 2 && argc != 4) {
        fputs("usage: trial TRACE [POLICY CAPACITY]\n", stderr);
        return EX_USAGE;
    }
    options.without_times = true; /* as sunproxy simulate --ignore-sizes reads */
    options.without_sizes = true;
    options.without_methods = true;
    if (trace_load(argv[1], &options, &trace, why, sizeof(why)) != TRACE_OK) {
        fprintf(stderr, "trial: %s\n", why);
        return EX_DATAERR;
    }
    printf("{\"load_cpu_s\": %.3f, \"load_bytes\": %" PRIu64
           ", \"requests\": %zu, \"distinct\": %zu",
           cpu_seconds() - begun, own_bytes() - before, trace->request_count, trace->url_count);
    if (argc == 4)
        status = run_policy(trace, argv[2], argv[3]);
    puts("}");
    trace_free(trace);
    return status;
}
