/*
 * A line on stderr that tells how far a long job is; on a terminal only.
 */
#ifndef SUNPROXY_CLI_PROGRESS_H
#define SUNPROXY_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool shown; /* is there anybody to see it? */
    bool drawn; /* a line stands there */
    uint64_t total;
    int64_t begun_us;
    char label[32];
};

void progress_begin(struct progress *progress, const char *label, uint64_t total);

/* Draws the line anew. */
void progress_draw(struct progress *progress, uint64_t done);

/* Takes the line away, so that something else can be printed. */
void progress_clear(struct progress *progress);

/*
 * The line itself: "label [#####     ]  50 %  500/1000  250/s  0:02 left", in at most `width`
 * columns; the bar gives way first. Returns line.
 */
const char *progress_format(char *line, size_t size, unsigned width, const char *label,
                            uint64_t done, uint64_t total, int64_t elapsed_us);

#endif
