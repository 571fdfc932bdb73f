/*
 * Tables of hit ratios by window: a line for each window, a column for each policy.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "study/simulate/simulate.h"

static const char *
format_length(const struct window_length *length, char *text, size_t size)
{
    if (length->us)
        return units_format_duration(length->us, text, size);
    snprintf(text, size, "%" PRIu64 " request%s", length->requests,
             length->requests == 1 ? "" : "s");
    return text;
}

static double
ratio(const struct simulate_row *row, size_t window, bool of_bytes)
{
    unsigned seeds = row->job.spread.runs;

    return 100 * (of_bytes ? window_tally_byte_hit_ratio(row->tally, window, seeds)
                           : window_tally_hit_ratio(row->tally, window, seeds));
}

/* Names of the columns. */
static void
print_head(const struct simulate_row *rows, size_t count, bool markdown)
{
    bool timed = rows[0].tally->windows->length.us != 0;
    char text[POLICY_MAX_TEXT];

    printf(markdown ? "| %s | %s |" : "  %-19s %10s", timed ? "begin" : "requests",
           timed ? "requests" : "number");
    for (size_t i = 0; i < count; i++)
        printf(markdown ? " %s |" : " %10.10s", policy_format(&rows[i].spec, text, sizeof(text)));
    putchar('\n');
    if (!markdown)
        return;
    printf("|---|--:|");
    for (size_t i = 0; i < count; i++)
        printf("--:|");
    putchar('\n');
}

/* Rows of one size. */
static void
print_size(const struct simulate_row *rows, size_t count, bool of_bytes, bool markdown)
{
    const struct simulate_windows *windows = rows[0].tally->windows;
    char text[64], length[48];

    printf("\n%s hit ratio, %s, by window of %s%s, %%%s", of_bytes ? "byte" : "object",
           capacity_format(rows[0].urls, rows[0].bytes, text, sizeof(text)),
           format_length(&windows->length, length, sizeof(length)),
           windows->length.us ? " (UTC)" : "", markdown ? ":\n\n" : "\n");
    print_head(rows, count, markdown);
    for (size_t w = 0; w < windows->count; w++) {
        if (windows->windows[w].requests == 0)
            continue;
        printf(markdown ? "| %s | %" PRIu64 " |" : "  %-19s %10" PRIu64,
               simulate_window_name(windows, w, text, sizeof(text)), windows->windows[w].requests);
        for (size_t i = 0; i < count; i++)
            printf(markdown ? " %.2f |" : " %10.2f", ratio(&rows[i], w, of_bytes));
        putchar('\n');
    }
}

static void
print_all(const struct simulate_row *rows, size_t count, bool markdown)
{
    size_t same;

    for (size_t i = 0; i < count; i += same) {
        same = simulate_rows_of_a_size(rows + i, count - i);
        print_size(rows + i, same, false, markdown);
        if (rows[0].tally->windows->subject->sized)
            print_size(rows + i, same, true, markdown);
    }
}

void
simulate_windows_print(const struct simulate_row *rows, size_t count)
{
    print_all(rows, count, false);
}

void
simulate_windows_markdown(const struct simulate_row *rows, size_t count)
{
    print_all(rows, count, true);
}
