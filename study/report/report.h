/*
 * The parts of `sunproxy report`: what was asked for and the page's file (report.c), what a trace
 * is without a cache (report_trace.c), simulations (report_runs.c) and their tables
 * (report_runs_tables.c), replays against a server (report_live.c), large pages (report_large.c), a
 * bound with variable sizes (report_bound.c), tables as JSON (report_table.c), how the page came
 * about (report_provenance.c), the libraries that draw (report_library.c), the page around them
 * (report_page.c, study/report/).
 *
 * Everything that the page draws is a table with named columns; the page offers the same tables as
 * CSV. Numbers of requests and of URLs count from 1, in the order of first appearance.
 */
#ifndef SUNPROXY_STUDY_REPORT_REPORT_H
#define SUNPROXY_STUDY_REPORT_REPORT_H

#include "base/json.h"
#include "study/capacity_list.h"
#include "study/simulate/simulate.h"
#include "study/size_scale.h"

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
 * The trace's times if its requests are in their order, so that they have a place on an axis of
 * time: no request is earlier than one before it by more than a hundredth of the time of all. NULL
 * otherwise, and without times.
 */
const int64_t *report_times(const struct trace *trace);

/* A value of a row: the time of a request in microseconds; null where it is unknown. */
void report_time(struct json *j, const int64_t *times, size_t request);

/*
 * Tables: pattern, frontier, popularity, busiest, popular; shares where there are few URLs; sizes
 * and large_pages where they are known. False without memory.
 */
bool report_trace_tables(struct json *j, const struct simulate_subject *subject);

/* ---- simulations: report_runs.c */

/*
 * Parts of a trace in which hits are counted: at most this many, and fewer where a part would have
 * fewer requests than REPORT_WINDOW_LEAST, of which a ratio would say little.
 */
#define REPORT_WINDOWS 60u
#define REPORT_WINDOW_LEAST 10u

/*
 * Runs every policy of the options and adds tables: policies; planned (how many sizes each table
 * was to have); hits, runtime (both at the capacities given, or at the default shares); anomaly
 * (FIFO and RAND at many sizes); curve_urls, and where sizes are known curve_bytes and, of a whole
 * trace, bound_bytes, at `points` sizes. Of a sample, numbers are estimates for the whole trace,
 * with the standard errors of ratios; only those of the anomaly are the sample's own, in caches of
 * its URLs. EX_OK; EXIT_INTERRUPTED with tables of what was finished; EX_SOFTWARE after a
 * complaint.
 */
int report_runs(struct json *j, const struct simulate_subject *subject,
                const struct simulate_options *options, const struct capacity_list *capacities,
                size_t points);

/* ---- large pages: report_large.c */

/*
 * Table large_pages: the few pages that take at least 0.2 % of what holds every page and whose
 * repeated requests are 5 % of the requests or have 2 % of the requested bytes, the smallest first:
 * url; bytes, the capacity from which on a cache can hold it, without the policy's overhead;
 * requests and their share; share_of_bytes_saved, if only its first request is a miss. Of a trace
 * with sizes. False without memory, with nothing added.
 */
bool report_large_table(struct json *j, const struct simulate_subject *subject);

/* ---- a bound with variable sizes: report_bound.c */

/*
 * Table bound_bytes: the lowest miss ratios that PFOO-L allows at these sizes in bytes. Of the
 * whole trace, which has sizes. False without memory, with nothing added.
 */
bool report_bound_table(struct json *j, const struct simulate_subject *subject,
                        const struct size_scale *sizes);

/* ---- how the page came about: report_provenance.c */

/*
 * Adds an object "provenance" to the open one: version, date (UTC), machine, the command's
 * arguments without the program's name, and the seeds of randomised policies.
 */
void report_provenance(struct json *j, const struct simulate_options *options,
                       char *const *arguments, size_t count);

/* ---- replays: report_live.c */

/* What `sunproxy replay --json` has measured. */
struct report_live {
    char *path;  /* owned; of the file */
    char *trace; /* owned; as in the arguments of the replay */
    char *policy;
    uint64_t requests;
    uint64_t urls; /* capacity; both 0: no cache, whatever capacity the file states */
    uint64_t bytes;
    double mean_us; /* averages over the runs */
    double hit_ratio;
    double byte_hit_ratio; /* below 0: unknown */
    bool shown;            /* with a trace that it is of */
};

/* EX_OK, or the exit status after a complaint, with nothing to be freed. */
int report_live_read(const char *path, struct report_live *live);
void report_live_free(struct report_live *live);

/*
 * Table live, of those that are replays of this trace: by its path and the number of requests; the
 * path does not matter if `only`, the trace is the only one that is reported on. They are then
 * `shown`. No table if none is.
 */
void report_live_table(struct json *j, const struct simulate_subject *subject, bool only,
                       struct report_live *lives, size_t count);

/* Complains of each that was shown with no trace. */
void report_live_complain(const struct report_live *lives, size_t count);

/* ---- the libraries that draw: report_library.c */

/* JavaScript that the page includes. */
struct report_library {
    struct buf d3;   /* owned; D3 */
    struct buf plot; /* owned; Observable Plot */
};

/*
 * Reads both from the folder; without one, from the folder that SUNPROXY_PLOT_DIR names; without
 * that, from the one where `make install` puts them or, for a program in the tree that it was built
 * in, `make setup`. EX_OK; or after a complaint, with nothing to be freed, EX_UNAVAILABLE, if it
 * says how to get them, or EX_SOFTWARE without memory.
 */
int report_library_read(const char *folder, struct report_library *library);
void report_library_free(struct report_library *library);

/* ---- the page: report_page.c */

/* What a page is made of. */
struct report_page {
    struct span title;
    struct span data; /* JSON */
    const struct report_library *library;
};

/*
 * Writes the page with its data, so that nothing in it can end or begin a script. The page's
 * Content-Security-Policy names its own scripts and styles by their hashes, and so nothing else of
 * the kind is run or applied. False without memory, with nothing written; whether it could be
 * written shows in ferror().
 */
bool report_page_write(FILE *to, const struct report_page *page);

#endif
