/*
 * The parts of `sunproxy report`: what was asked for and the page's file (report.c), what a trace
 * is without a cache (report_trace.c), simulations (report_runs.c), replays against a server
 * (report_live.c), tables as JSON (report_table.c), the page around them (report_page.c, report/).
 *
 * Everything that the page draws is a table with named columns; the page offers the same tables as
 * CSV. Numbers of requests and of URLs count from 1, in the order of first appearance.
 */
#ifndef SUNPROXY_CLIENT_REPORT_H
#define SUNPROXY_CLIENT_REPORT_H

#include "base/json.h"
#include "client/simulate_subject.h"

/* ---- tables: report_table.c */

/*
 * Opens a table, a member of the open object, and names its columns, ended by NULL; rows follow,
 * each an array of as many values.
 */
void report_table_open(struct json *j, const char *name, ...) __attribute__((sentinel));
void report_table_close(struct json *j);

/* ---- what a trace is: report_trace.c */

/* Members that say what the trace is: requests, distinct URLs, bytes, time span, and so on. */
void report_trace_facts(struct json *j, const struct simulate_subject *subject);

/*
 * Tables: pattern, frontier, popularity, busiest; shares where there are few URLs; sizes where they
 * are known. False without memory.
 */
bool report_trace_tables(struct json *j, const struct simulate_subject *subject);

/* ---- simulations: report_runs.c */

#define REPORT_WINDOWS 60u /* parts of a trace in which hits are counted */

/*
 * Runs every policy of the options and adds tables: policies; hits, runtime (both at a few shares
 * of the URLs); anomaly (FIFO and RAND at many sizes); curve_urls, and where sizes are known
 * curve_bytes, at `points` sizes. EX_OK; EXIT_INTERRUPTED with tables of what was finished;
 * EX_SOFTWARE after a complaint.
 */
int report_runs(struct json *j, const struct simulate_subject *subject,
                const struct simulate_options *options, size_t points);

/* ---- replays: report_live.c */

/* What `sunproxy replay --json` has measured. */
struct report_live {
    char *path;  /* owned; of the file */
    char *trace; /* owned; as the replay was told */
    char *policy;
    uint64_t requests;
    uint64_t urls; /* capacity; both 0: no cache */
    uint64_t bytes;
    double mean_us; /* averages over the runs */
    double hit_ratio;
    double byte_hit_ratio; /* below 0: unknown */
};

/* EX_OK, or the exit status after a complaint, with nothing to be freed. */
int report_live_read(const char *path, struct report_live *live);
void report_live_free(struct report_live *live);

/*
 * Was it a replay of this trace? By its path and the number of requests; the path does not matter
 * if `only`, the trace is the only one that is reported on.
 */
bool report_live_is_of(const struct report_live *live, const struct simulate_subject *subject,
                       bool only);

/* Table live, of those that are of this trace; no table if none is. */
void report_live_table(struct json *j, const struct simulate_subject *subject, bool only,
                       const struct report_live *lives, size_t count);

/* ---- the page: report_page.c */

/* Writes the page with its data, JSON, so that nothing in it can end or begin a script. */
void report_page_write(FILE *to, struct span title, struct span data);

#endif
