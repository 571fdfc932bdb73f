#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/output.h"

#define MAX_WIDTH 200
#define MAX_BAR 40

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

const char *
progress_format(char *line, size_t size, unsigned width, const char *label, uint64_t done,
                uint64_t total, int64_t elapsed_us)
{
    double rate = elapsed_us > 0 ? (double)done * 1e6 / (double)elapsed_us : 0;
    double part = total ? (double)done / (double)total : 1;
    char numbers[128], left[32] = "?", bar[MAX_BAR + 1];
    size_t bar_width, filled;
    int len;

    if (part > 1)
        part = 1;
    if (rate > 0)
        format_left(left, sizeof(left), (double)(total - done) / rate);
    len = snprintf(numbers, sizeof(numbers), "%3.0f %%  %" PRIu64 "/%" PRIu64 "  %.0f/s  %s left",
                   part * 100, done, total, rate, left);
    /* What is left of the width beside label, brackets and spaces. */
    bar_width =
        strlen(label) + 4 + (size_t)len < width ? width - strlen(label) - 4 - (size_t)len : 0;
    if (bar_width > MAX_BAR)
        bar_width = MAX_BAR;
    if (bar_width < 5) {
        snprintf(line, size, "%s %s", label, numbers);
    } else {
        filled = (size_t)(part * (double)bar_width);
        memset(bar, '#', filled);
        memset(bar + filled, ' ', bar_width - filled);
        bar[bar_width] = '\0';
        snprintf(line, size, "%s [%s] %s", label, bar, numbers);
    }
    if (width < size)
        line[width] = '\0';
    return line;
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
progress_draw(struct progress *progress, uint64_t done)
{
    struct winsize window;
    unsigned width = 80;
    char line[MAX_WIDTH + 1];

    if (!progress->shown)
        return;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        width = window.ws_col;
    if (width > MAX_WIDTH)
        width = MAX_WIDTH;
    /* One column less: a full line makes some terminals begin the next. */
    progress_format(line, sizeof(line), width - 1, progress->label, done, progress->total,
                    clock_monotonic_us() - progress->begun_us);
    fprintf(stderr, "\r%s\033[K", line);
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
