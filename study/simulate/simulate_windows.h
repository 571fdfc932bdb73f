/*
 * Hit ratios by window of a trace: a number of requests, or a duration.
 *
 * Windows of time begin at multiples of their length since 1970, or since the beginning of a trace
 * whose times are relative, so that windows of an hour are those of the clock (UTC). A request of
 * unknown time is in the window of the request before it. Requests of the warm-up count nowhere.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_WINDOWS_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_WINDOWS_H

#include "base/json.h"
#include "study/simulate/simulate_subject.h"

/* As --window was given; both 0: there are no windows. */
struct window_length {
    uint64_t requests;
    int64_t us;
};

static inline bool
window_length_is_given(const struct window_length *length)
{
    return length->requests != 0 || length->us != 0;
}

/* For a struct window_length: "1000" requests, or a duration such as "1h". */
option_take window_length_take;

struct simulate_window {
    size_t first;      /* the lowest number of its requests, from 0 */
    size_t last;       /* and the highest; those of a window of time need not be in a row */
    int64_t begin_us;  /* of a window of time */
    uint64_t requests; /* without the warm-up; 0: the window is empty, and is not printed */
    uint64_t bytes;    /* that they ask for; 0 without sizes */
};

/* The windows of a trace. */
struct simulate_windows {
    const struct simulate_subject *subject;
    struct window_length length;
    struct simulate_window *windows; /* owned */
    size_t count;
    uint32_t *numbers; /* owned: by request, its window */
};

/* Hits of one policy at one size, by window; of several seeds, sums. */
struct window_tally {
    const struct simulate_windows *windows;
    uint64_t *hits; /* owned */
    uint64_t *bytes_hit;
};

/*
 * Divides a trace into windows. EX_OK; EX_USAGE where time is asked for and the trace has none, or
 * where there would be too many windows; EX_SOFTWARE without memory; both after a complaint.
 * simulate_windows_free() in any case.
 */
int simulate_windows_make(struct simulate_windows *windows, const struct simulate_subject *subject,
                          const struct window_length *length);
void simulate_windows_free(struct simulate_windows *windows);

/* False without memory. window_tally_free() in any case. */
bool window_tally_make(struct window_tally *tally, const struct simulate_windows *windows);
void window_tally_free(struct window_tally *tally);

/* For sim_config.tell, with the tally as its context. */
bool window_tally_tell(void *tally, const struct sim_event *event);

/* Mean ratios over `seeds` runs in a window that is not empty. */
double window_tally_hit_ratio(const struct window_tally *tally, size_t window, unsigned seeds);
double window_tally_byte_hit_ratio(const struct window_tally *tally, size_t window, unsigned seeds);

/*
 * How a window is named: "2024-05-31 12:00:00" (UTC) where windows are of time, else "1-1000", the
 * requests from 1. Returns text; `size` of 48 is enough.
 */
const char *simulate_window_name(const struct simulate_windows *windows, size_t window, char *text,
                                 size_t size);

struct simulate_row;

/*
 * Of rows of one trace that all have a tally: prints a table of hit ratios by window and policy, as
 * text or as Markdown, for the rows of each size, which come one after another.
 */
void simulate_windows_print(const struct simulate_row *rows, size_t count);
void simulate_windows_markdown(const struct simulate_row *rows, size_t count);

/* A member "windows" of the open object: an object for each window that is not empty. */
void window_tally_json(struct json *j, const struct window_tally *tally, unsigned seeds);

/* CSV: the names of the columns of a window, and the same of one window. */
#define WINDOW_CSV_COLUMNS                                               \
    "first_request,last_request,begin_us,requests,hits,hit_ratio,bytes," \
    "bytes_hit,byte_hit_ratio"
void window_tally_csv(struct buf *out, const struct window_tally *tally, size_t window,
                      unsigned seeds);

#endif
