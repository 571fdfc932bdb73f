#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/output.h"

#define MAX_WIDTH 200
#define MAX_BAR 40
#define MOST_ESTIMATED 0.99

/* "0:07", "12:34", "3:02:01". */
static void
format_left(char *text, size_t size, double seconds)
{
    uint64_t s = seconds < 0 ? 0 : seconds > 359999 ? 359999 : (uint64_t)(seconds + 0.5);

    if (s >= 3600)
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%" PRIu64 ":%02" PRIu64, s / 60, s % 60);
}

static const char *
cut(const struct progress_line *line)
{
    if (line->width < line->size)
        line->text[line->width] = '\0';
    return line->text;
}

/* The line of a label, a bar that is filled by this part, and numbers. */
static const char *
put_bar(const struct progress_line *line, double part, const char *numbers)
{
    char bar[MAX_BAR + 1];
    size_t bar_width, filled, len = strlen(numbers);

    /* What is left of the width beside label, brackets and spaces. */
    bar_width = strlen(line->label) + 4 + len < line->width
                    ? line->width - strlen(line->label) - 4 - len
                    : 0;
    if (bar_width > MAX_BAR)
        bar_width = MAX_BAR;
    if (bar_width < 5) {
        snprintf(line->text, line->size, "%s %s", line->label, numbers);
    } else {
        filled = (size_t)(part * (double)bar_width);
        memset(bar, '#', filled);
        memset(bar + filled, ' ', bar_width - filled);
        bar[bar_width] = '\0';
        snprintf(line->text, line->size, "%s [%s] %s", line->label, bar, numbers);
    }
    return cut(line);
}

const char *
progress_format(const struct progress_line *line, uint64_t done, uint64_t total, int64_t elapsed_us)
{
    double rate = elapsed_us > 0 ? (double)done * 1e6 / (double)elapsed_us : 0;
    double part = total ? (double)done / (double)total : 1;
    char numbers[128], left[32] = "?";

    if (part > 1)
        part = 1;
    if (rate > 0)
        format_left(left, sizeof(left), (double)(total - done) / rate);
    snprintf(numbers, sizeof(numbers), "%3.0f %%  %" PRIu64 "/%" PRIu64 "  %.0f/s  %s left",
             part * 100, done, total, rate, left);
    return put_bar(line, part, numbers);
}

const char *
progress_format_bytes(const struct progress_line *line, uint64_t done, uint64_t total,
                      int64_t elapsed_us)
{
    double rate = elapsed_us > 0 ? (double)done * 1e6 / (double)elapsed_us : 0;
    char numbers[160], so_far[32], all[32], speed[32], time[32] = "?";

    units_format_bytes(done, so_far, sizeof(so_far));
    units_format_bytes(total, all, sizeof(all));
    units_format_bytes(rate < 1e18 ? (uint64_t)rate : 0, speed, sizeof(speed));
    if (total == 0) {
        format_left(time, sizeof(time), (double)elapsed_us / 1e6);
        snprintf(line->text, line->size, "%s %s  %s/s  %s", line->label, so_far, speed, time);
        return cut(line);
    }
    if (done > total)
        done = total;
    if (rate > 0)
        format_left(time, sizeof(time), (double)(total - done) / rate);
    snprintf(numbers, sizeof(numbers), "%3.0f %%  %s of %s  %s/s  %s left",
             (double)done / (double)total * 100, so_far, all, speed, time);
    return put_bar(line, (double)done / (double)total, numbers);
}

const char *
progress_format_work(const struct progress_line *line, double part, const char *rate,
                     double left_seconds)
{
    char numbers[128], left[32];

    format_left(left, sizeof(left), left_seconds);
    snprintf(numbers, sizeof(numbers), "%3.0f %%  %s  %s left", part * 100, rate, left);
    return put_bar(line, part, numbers);
}

/* The part grows, and ends below 1 however wrong the total is. */
static void
format_estimated(const struct progress_line *line, struct progress *progress, uint64_t done,
                 int64_t elapsed_us)
{
    double seconds = (double)elapsed_us / 1e6, speed = seconds > 0 ? (double)done / seconds : 0;
    double part = progress->total ? (double)done / (double)progress->total : 0;
    char rate[80];

    if (part > MOST_ESTIMATED)
        part = MOST_ESTIMATED;
    if (part > progress->part)
        progress->part = part;
    snprintf(rate, sizeof(rate), speed < 1e6 ? "%.0f %s/s" : "%.1f million %s/s",
             speed < 1e6 ? speed : speed / 1e6, progress->unit);
    (void)progress_format_work(line, progress->part, rate,
                               part > 0 ? seconds * (1 - part) / part : 0);
}

void
progress_begin(struct progress *progress, const char *label, uint64_t total)
{
    *progress = (struct progress){
        .shown = output_is_lively(stderr), .total = total, .begun_us = clock_monotonic_us()};
    snprintf(progress->label, sizeof(progress->label), "%s", label);
    printable_make(progress->label, strlen(progress->label));
}

void
progress_begin_bytes(struct progress *progress, const char *label, uint64_t total)
{
    progress_begin(progress, label, total);
    progress->bytes = true;
}

void
progress_begin_work(struct progress *progress, const char *label, const char *unit)
{
    progress_begin(progress, label, 0);
    progress->unit = unit;
}

void
progress_draw(struct progress *progress, uint64_t done)
{
    struct winsize window;
    unsigned width = 80;
    int64_t elapsed_us;
    char text[MAX_WIDTH + 1];
    struct progress_line line = {.text = text, .size = sizeof(text), .label = progress->label};

    if (!progress->shown)
        return;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        width = window.ws_col;
    if (width > MAX_WIDTH)
        width = MAX_WIDTH;
    elapsed_us = clock_monotonic_us() - progress->begun_us;
    line.width = width - 1; /* a full line makes some terminals begin the next */
    if (progress->unit)
        format_estimated(&line, progress, done, elapsed_us);
    else
        (progress->bytes ? progress_format_bytes : progress_format)(&line, done, progress->total,
                                                                    elapsed_us);
    fprintf(stderr, "\r%s\033[K", text);
    fflush(stderr);
    progress->drawn = true;
}

void
progress_clear(struct progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}
