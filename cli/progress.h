/*
 * A progress line on stderr; on a terminal only.
 */
#ifndef SUNPROXY_CLI_PROGRESS_H
#define SUNPROXY_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool shown; /* stderr is a terminal */
    bool drawn; /* the line is on the screen */
    uint64_t total;
    int64_t begun_us;
    char label[32];
};

void progress_begin(struct progress *progress, const char *label, uint64_t total);

/* Redraws the line. */
void progress_draw(struct progress *progress, uint64_t done);

/* Removes the line, so that other text can be printed. */
void progress_clear(struct progress *progress);

/*
 * The line itself: "label [#####     ]  50 %  500/1000  250/s  0:02 left", in at most `width`
 * columns; the bar is shortened first. Returns line.
 */
const char *progress_format(char *line, size_t size, unsigned width, const char *label,
                            uint64_t done, uint64_t total, int64_t elapsed_us);

#endif
