#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/output.h"
#include "study/simulate/simulate.h"

/* No time passes in a simulation, and every fetch succeeds. */
#define STATUS 200

struct simulate_log {
    struct replay_log *log; /* owned */
    const struct trace *trace;
    bool sized;
    char texts[REPLAY_LOG_VICTIMS + 1][TRACE_URL_TEXT]; /* URLs that are numbers */
    struct span victims[REPLAY_LOG_VICTIMS];
};

struct simulate_log *
simulate_log_open(const char *path, enum replay_log_format format,
                  const struct simulate_subject *subject)
{
    struct simulate_log *log = calloc(1, sizeof(*log));

    if (!log) {
        output_complain("out of memory");
        return NULL;
    }
    log->trace = subject->trace;
    log->sized = subject->sized;
    log->log = replay_log_open(path, format, 1);
    if (!log->log) {
        output_complain("cannot write %s: %s", path, strerror(errno));
        free(log);
        return NULL;
    }
    return log;
}

static enum replay_outcome
outcome_of(enum sim_outcome outcome)
{
    switch (outcome) {
    case SIM_HIT:
        return REPLAY_HIT;
    case SIM_MISS:
        return REPLAY_MISS;
    case SIM_EVICTED:
        return REPLAY_EVICTED;
    case SIM_UNCACHED:
        break;
    }
    return REPLAY_UNCACHED;
}

bool
simulate_log_tell(void *context, const struct sim_event *event)
{
    struct simulate_log *log = context;
    const struct trace *trace = log->trace;
    size_t victims =
        event->victim_count < REPLAY_LOG_VICTIMS ? event->victim_count : REPLAY_LOG_VICTIMS;
    struct replay_entry entry = {
        .run = 1,
        .number = event->number + 1,
        .url = trace_url_text(trace, event->id, log->texts[REPLAY_LOG_VICTIMS]),
        .outcome = outcome_of(event->outcome),
        .victims = log->victims,
        .victim_count = victims,
        .evicted = (uint32_t)event->victim_count,
        .status = STATUS,
        .bytes = log->sized ? event->bytes : 0,
    };

    for (size_t i = 0; i < victims; i++)
        log->victims[i] = trace_url_text(trace, event->victims[i], log->texts[i]);
    return replay_log_write(log->log, &entry) == 0;
}

int
simulate_log_close(struct simulate_log *log, const char *path)
{
    int error;

    if (!log)
        return EX_OK;
    error = replay_log_close(log->log);
    free(log);
    if (error == 0)
        return EX_OK;
    output_complain("cannot write %s: %s", path, strerror(error));
    return EX_IOERR;
}
