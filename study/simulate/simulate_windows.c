#include "study/simulate/simulate_windows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/units.h"
#include "cli/output.h"
#include "cli/statistics.h"

#define MAX_WINDOWS 100000u
#define US 1000000

int
window_length_take(const struct option_row *row, void *field, const char *text)
{
    struct window_length *length = field;

    *length = (struct window_length){0};
    if (units_parse_uint(text, 1, UINT32_MAX, &length->requests))
        return EX_OK;
    if (units_parse_duration(text, &length->us) && length->us > 0)
        return EX_OK;
    return options_wrong(row, "a number of requests (1000), or a duration such as 1h", text);
}

/* ---- windows --------------------------------------------------------------------------------- */

static int64_t
round_down(int64_t time, int64_t unit)
{
    int64_t rest = time % unit;

    return time - (rest < 0 ? rest + unit : rest);
}

/* The earliest and the latest time that is known; false if none is. */
static bool
find_span(const struct trace *trace, int64_t *first, int64_t *last)
{
    *first = INT64_MAX;
    *last = INT64_MIN;
    for (size_t i = 0; trace->times_us && i < trace->request_count; i++) {
        if (trace->times_us[i] == TRACE_TIME_UNKNOWN)
            continue;
        *first = trace->times_us[i] < *first ? trace->times_us[i] : *first;
        *last = trace->times_us[i] > *last ? trace->times_us[i] : *last;
    }
    return *first <= *last;
}

/* The number of windows; 0 after a complaint. */
static uint64_t
count_windows(const struct simulate_subject *subject, const struct window_length *length,
              int64_t *begin)
{
    int64_t first, last;
    uint64_t count;

    if (length->requests)
        count = (subject->trace->request_count + length->requests - 1) / length->requests;
    else if (find_span(subject->trace, &first, &last)) {
        *begin = round_down(first, length->us);
        count = ((uint64_t)last - (uint64_t)*begin) / (uint64_t)length->us + 1;
    } else {
        output_complain("%s: --window of a time needs a trace with times; give a number of "
                        "requests",
                        subject->path);
        return 0;
    }
    if (count <= MAX_WINDOWS)
        return count;
    output_complain("%s: --window: %" PRIu64 " windows; at most %u", subject->path, count,
                    MAX_WINDOWS);
    return 0;
}

static void
number_requests(struct simulate_windows *windows, int64_t begin)
{
    const struct trace *trace = windows->subject->trace;
    const struct window_length *length = &windows->length;
    uint32_t at = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        if (length->requests)
            at = (uint32_t)(i / length->requests);
        else if (trace->times_us[i] != TRACE_TIME_UNKNOWN)
            at = (uint32_t)((trace->times_us[i] - begin) / length->us);
        windows->numbers[i] = at;
    }
}

static void
sum_up(struct simulate_windows *windows, int64_t begin)
{
    const struct sim_trace *sim = &windows->subject->sim;

    for (size_t i = 0; i < windows->count; i++)
        windows->windows[i] = (struct simulate_window){
            .first = SIZE_MAX, .begin_us = begin + (int64_t)i * windows->length.us};
    for (size_t i = windows->subject->warmup; i < sim->request_count; i++) {
        struct simulate_window *window = &windows->windows[windows->numbers[i]];

        window->first = i < window->first ? i : window->first;
        window->last = i;
        window->requests++;
        window->bytes += sim->sizes ? sim->sizes[i] : 0;
    }
}

int
simulate_windows_make(struct simulate_windows *windows, const struct simulate_subject *subject,
                      const struct window_length *length)
{
    int64_t begin = 0;
    uint64_t count = count_windows(subject, length, &begin);

    *windows = (struct simulate_windows){.subject = subject, .length = *length};
    if (count == 0)
        return EX_USAGE;
    windows->count = (size_t)count;
    windows->windows = calloc(windows->count, sizeof(*windows->windows));
    windows->numbers = calloc(subject->trace->request_count, sizeof(*windows->numbers));
    if (!windows->windows || !windows->numbers) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    number_requests(windows, begin);
    sum_up(windows, begin);
    return EX_OK;
}

void
simulate_windows_free(struct simulate_windows *windows)
{
    free(windows->windows);
    free(windows->numbers);
    *windows = (struct simulate_windows){0};
}

/* ---- hits ------------------------------------------------------------------------------------ */

bool
window_tally_make(struct window_tally *tally, const struct simulate_windows *windows)
{
    *tally = (struct window_tally){.windows = windows};
    tally->hits = calloc(windows->count, sizeof(*tally->hits));
    tally->bytes_hit = calloc(windows->count, sizeof(*tally->bytes_hit));
    return tally->hits && tally->bytes_hit;
}

void
window_tally_free(struct window_tally *tally)
{
    free(tally->hits);
    free(tally->bytes_hit);
    *tally = (struct window_tally){0};
}

bool
window_tally_tell(void *context, const struct sim_event *event)
{
    struct window_tally *tally = context;

    if (event->outcome == SIM_HIT && event->number >= tally->windows->subject->warmup) {
        uint32_t window = tally->windows->numbers[event->number];

        tally->hits[window]++;
        tally->bytes_hit[window] += event->bytes;
    }
    return true;
}

double
window_tally_hit_ratio(const struct window_tally *tally, size_t window, unsigned seeds)
{
    return statistics_ratio(tally->hits[window], seeds * tally->windows->windows[window].requests);
}

double
window_tally_byte_hit_ratio(const struct window_tally *tally, size_t window, unsigned seeds)
{
    return statistics_ratio(tally->bytes_hit[window],
                            seeds * tally->windows->windows[window].bytes);
}

/* ---- printing -------------------------------------------------------------------------------- */

const char *
simulate_window_name(const struct simulate_windows *windows, size_t window, char *text, size_t size)
{
    const struct simulate_window *w = &windows->windows[window];
    time_t begin = (time_t)(w->begin_us / US - (w->begin_us % US < 0));
    struct tm utc;

    if (windows->length.requests || !gmtime_r(&begin, &utc) ||
        strftime(text, size, "%Y-%m-%d %H:%M:%S", &utc) == 0)
        snprintf(text, size, "%zu-%zu", w->first + 1, w->last + 1);
    return text;
}

static uint64_t
mean(uint64_t sum, unsigned seeds)
{
    return (sum + seeds / 2) / seeds;
}

void
window_tally_json(struct json *j, const struct window_tally *tally, unsigned seeds)
{
    const struct simulate_windows *all = tally->windows;
    bool sized = all->subject->sized;

    json_open_array(j, "windows");
    for (size_t i = 0; i < all->count; i++) {
        const struct simulate_window *w = &all->windows[i];

        if (w->requests == 0)
            continue;
        json_open_object(j, NULL);
        json_uint(j, "first_request", w->first + 1);
        json_uint(j, "last_request", w->last + 1);
        if (all->length.us)
            json_int(j, "begin_us", w->begin_us);
        else
            json_null(j, "begin_us");
        json_uint(j, "requests", w->requests);
        json_uint(j, "hits", mean(tally->hits[i], seeds));
        json_double(j, "hit_ratio", window_tally_hit_ratio(tally, i, seeds), 6);
        if (sized) {
            json_uint(j, "bytes", w->bytes);
            json_uint(j, "bytes_hit", mean(tally->bytes_hit[i], seeds));
            json_double(j, "byte_hit_ratio", window_tally_byte_hit_ratio(tally, i, seeds), 6);
        } else {
            json_null(j, "byte_hit_ratio");
        }
        json_close_object(j);
    }
    json_close_array(j);
}

void
window_tally_csv(struct buf *out, const struct window_tally *tally, size_t window, unsigned seeds)
{
    const struct simulate_windows *all = tally->windows;
    const struct simulate_window *w = &all->windows[window];

    buf_printf(out, "%zu,%zu,", w->first + 1, w->last + 1);
    if (all->length.us)
        buf_printf(out, "%" PRId64, w->begin_us);
    buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%.6f,", w->requests, mean(tally->hits[window], seeds),
               window_tally_hit_ratio(tally, window, seeds));
    if (all->subject->sized)
        buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%.6f", w->bytes,
                   mean(tally->bytes_hit[window], seeds),
                   window_tally_byte_hit_ratio(tally, window, seeds));
    else
        buf_append_str(out, ",,");
}
