/*
 * The parts of `sunproxy simulate`: options (simulate.c), the tables (simulate_report.c), the same
 * as Markdown (simulate_markdown.c), hit ratios by window (simulate_windows.c), curves
 * (simulate_curve.c), runs that a signal ended (simulate_partial.c) and the log of a run
 * (simulate_log.c).
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_H

#include "base/json.h"
#include "cli/replay_log.h"
#include "study/simulate/simulate_subject.h"
#include "study/simulate/simulate_windows.h"
#include "study/size_scale.h"

enum simulate_output { SIMULATE_TABLE, SIMULATE_JSON, SIMULATE_CSV, SIMULATE_MARKDOWN };

/* A policy at a size, and what came of it. */
struct simulate_row {
    const char *path;
    struct policy_spec spec;
    uint64_t urls; /* capacity of the whole, not of a sample; both 0: nothing */
    uint64_t bytes;
    double share; /* of the distinct URLs or bytes */
    size_t order; /* of the options */
    struct sim_job job;
    const struct window_tally *tally; /* hits by window; NULL: they were not asked for */
};

/* What is printed of a row: of a sample, estimates for the whole trace. */
struct simulate_figures {
    uint64_t requests;
    uint64_t hits;
    uint64_t bytes;
    uint64_t bytes_hit;
    uint64_t evictions;
    uint64_t insertions;
    uint64_t expired;
    uint64_t not_admitted;
    uint64_t too_large;
    double admitted; /* share of the misses */
};

void simulate_figures_of(const struct simulate_row *row, struct simulate_figures *figures);

/* Below, equal to or above zero as the capacity of `a` is below, equal to or above that of `b`. */
int simulate_compare_sizes(const struct simulate_row *a, const struct simulate_row *b);

/* Rows come by size: how many from the first on have its size. */
size_t simulate_rows_of_a_size(const struct simulate_row *rows, size_t count);

/*
 * ---- tables: simulate_report.c. Tables are printed as they are reported, lines of CSV by
 * simulate_report_flush(), JSON by simulate_report_end(). Signals are the caller's business.
 */

struct simulate_report {
    enum simulate_output output;
    bool by_bytes; /* what is sorted by */
    bool interrupted;
    bool first;      /* no trace has been reported yet */
    size_t runs;     /* of the traces that were reported */
    size_t finished; /* of those */
    struct buf out;  /* the report's own */
    struct json json;
};

void simulate_report_begin(struct simulate_report *report, enum simulate_output output,
                           bool by_bytes);

/* The rows of one trace, which come out sorted; those that were not finished are apart. */
void simulate_report_trace(struct simulate_report *report, const struct simulate_subject *subject,
                           struct simulate_row *rows, size_t count);

/* Prints on stderr for how many rows the error is unknown, and the rate at which it would be known.
 */
void simulate_note_errors(const struct simulate_subject *subject, const struct simulate_row *rows,
                          size_t count);

/* The command ends early, at a signal; `unread` of the traces were not read. */
void simulate_report_interrupted(struct simulate_report *report, size_t unread);

/* Prints of tables and lines what is not printed yet: as simulate_report_end(). */
int simulate_report_flush(struct simulate_report *report);

/* Prints what is not printed yet: EX_OK, or the exit status after a complaint. */
int simulate_report_end(struct simulate_report *report);

/* ---- CSV: simulate_csv.c */

/* Two fields of CSV, each with its comma: the error is empty where it is unknown. */
void simulate_csv_ratio(struct buf *out, double ratio, double error);

/*
 * The last columns of CSV: the number of seeds, and of both ratios the standard deviation, the
 * lowest and the highest.
 */
#define SIMULATE_CSV_SPREAD                            \
    "seeds,hit_ratio_sd,hit_ratio_low,hit_ratio_high," \
    "byte_hit_ratio_sd,byte_hit_ratio_low,byte_hit_ratio_high"
void simulate_csv_spread(struct buf *out, const struct sim_spread *spread, bool sized);

/* A field of CSV (RFC 4180), in quotes where it must be. */
void simulate_csv_text(struct buf *out, const char *text);

/* A line for each row, or for each window of each row. */
void simulate_csv_rows(struct buf *out, const struct simulate_subject *subject,
                       const struct simulate_row *rows, size_t count, bool with_names);

/*
 * ---- runs that a signal ended: simulate_partial.c. Their hit ratios are of the requests so far,
 * or, of a policy that draws, of the seeds so far. Other rows, and those of a sample, are ignored.
 */

/* A line for each, below a heading on standard output, or else on standard error. */
void simulate_partial_print(const struct simulate_subject *subject, const struct simulate_row *rows,
                            size_t count, bool to_stdout);

/* A member "unfinished" of the open object, if there are any. */
void simulate_partial_json(struct json *json, const struct simulate_subject *subject,
                           const struct simulate_row *rows, size_t count);

/* ---- Markdown: simulate_markdown.c */

/* Of sorted rows that are finished: a heading, what was read, a table, tables of windows. */
void simulate_markdown_rows(const struct simulate_subject *subject, const struct simulate_row *rows,
                            size_t count);

struct simulate_curves;

void simulate_markdown_curves(const struct simulate_curves *curves);

/* Seeds with which a policy that draws was run; 1 if there is none. */
unsigned simulate_most_seeds(const struct simulate_row *rows, size_t count);

/* ---- JSON that several commands share: simulate_json.c */

/* Members of the open object that say what the trace is. */
void simulate_json_subject(struct json *json, const struct simulate_subject *subject);

/*
 * Members that say what came of a job: the number of seeds; both ratios, their errors from a sample
 * (0: exact; null: unknown), and over the seeds their standard deviation, lowest and highest;
 * error_unknown, the reason why an error is unknown. Those of bytes are null without sizes.
 */
void simulate_json_ratios(struct json *json, const struct sim_job *job, bool sized);

/* ---- curves: simulate_curve.c */

/* The curves of a trace, over URLs or bytes. */
struct simulate_curves {
    const struct simulate_subject *subject;
    const struct simulate_options *options;
    struct size_scale scale; /* owned */
    bool in_bytes;
    struct simulate_row *rows; /* owned: by policy, then by size */
    size_t count;              /* of the rows */
};

/*
 * Simulates at most `points` sizes, evenly on a logarithmic scale. EX_OK; EXIT_INTERRUPTED with the
 * rows that are finished; or another exit status after a complaint. simulate_curves_free() in any
 * case.
 */
int simulate_curves_make(struct simulate_curves *curves, const struct simulate_subject *subject,
                         const struct simulate_options *options, bool in_bytes, size_t points);
void simulate_curves_free(struct simulate_curves *curves);

/* Reports them, as simulate_report_trace() does rows. */
void simulate_report_curves(struct simulate_report *report, const struct simulate_curves *curves);

/* ---- the log: simulate_log.c */

struct simulate_log;

/* NULL, after a complaint, if it cannot be created. */
struct simulate_log *simulate_log_open(const char *path, enum replay_log_format format,
                                       const struct simulate_subject *subject);

/* For sim_config.tell and its context. */
bool simulate_log_tell(void *log, const struct sim_event *event);

/* EX_OK, or EX_IOERR after a complaint. NULL: EX_OK. */
int simulate_log_close(struct simulate_log *log, const char *path);

#endif
