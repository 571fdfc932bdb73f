/*
 * The parts of `sunproxy replay`: options (replay.c), the server's cache (replay_cache.c), the
 * threads (replay_run.c, replay_worker.c, replay_schedule.c), and the summary (replay_report.c).
 */
#ifndef SUNPROXY_CLIENT_REPLAY_REPLAY_H
#define SUNPROXY_CLIENT_REPLAY_REPLAY_H

#include "client/connect.h"
#include "cli/progress.h"
#include "cli/replay_log.h"
#include "cli/statistics.h"
#include "proxy.h"
#include "trace/trace.h"

/* One pass over a trace. */
struct replay_plan {
    const struct trace *trace;
    const struct server *server;
    int64_t timeout_us;
    int signals;   /* interrupt_catch()'s descriptor */
    unsigned jobs; /* connections, each with a thread and, without a rate, one request at a time */
    double rate;   /* requests per second on a schedule; 0: each after an answer */
    unsigned run;  /* from 1 */
    unsigned runs;
    bool want_victims;
    struct replay_log *log; /* NULL: none */
};

/* The result of a run. */
struct replay_result {
    uint64_t requests; /* that were answered or failed */
    uint64_t outcomes[REPLAY_OUTCOMES];
    uint64_t evictions;
    uint64_t bytes;
    uint64_t bytes_hit;
    uint64_t bytes_coalesced;
    int64_t elapsed_us;

    /* With a rate: departures, those over 1 ms after their scheduled time, and the longest delay.
     */
    uint64_t sent;
    uint64_t late;
    uint64_t max_behind_us;
    int64_t first_sent_us;
    int64_t last_sent_us;

    int failure_status;          /* exit status of the first request that failed; EX_OK: none did */
    struct response_times times; /* of successes; with a rate, from the scheduled time */
};

/*
 * Sends the requests in the order of the trace. Returns EX_OK; EXIT_INTERRUPTED after a signal that
 * plan->signals reports; EX_UNAVAILABLE and the like, after a complaint, when the
 * server is lost, EX_IOERR when the log cannot be written, EX_SOFTWARE without memory. *result
 * holds the finished requests in any case.
 */
int replay_run(const struct replay_plan *plan, struct replay_result *result);

/* The head of the report. */
struct replay_subject {
    const char *path;
    const struct trace *trace;
    const char *server; /* its name */
    unsigned jobs;
    double rate;                     /* 0: none */
    bool interrupted;                /* some requests were not sent */
    char policy[PROXY_MAX_NAME + 1]; /* from the server; "": unknown */
    uint64_t capacity_urls;
    uint64_t capacity_bytes;
};

/* Prints the runs, and mean and standard deviation of several, as a table or as one JSON object. */
void replay_report_table(const struct replay_subject *subject, const struct replay_result *results,
                         size_t count);
int replay_report_json(const struct replay_subject *subject, const struct replay_result *results,
                       size_t count);

#endif
