/*
 * A progress line on stderr; on a terminal only.
 */
#ifndef SUNPROXY_CLI_PROGRESS_H
#define SUNPROXY_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
    bool shown;       /* stderr is a terminal */
    bool drawn;       /* the line is on the screen */
    bool bytes;       /* they are counted */
    const char *unit; /* static: of what is counted, where the total is an estimate; or NULL */
    double part;      /* that was drawn last, where the total is an estimate */
    uint64_t total;
    int64_t begun_us;
    char label[32];
};

void progress_begin(struct progress *progress, const char *label, uint64_t total);

/* The same for bytes; a total of 0 is not known. */
void progress_begin_bytes(struct progress *progress, const char *label, uint64_t total);

/*
 * The same for a work whose total is an estimate: it can be set between two calls of
 * progress_draw(), and is not printed. The part that is drawn never falls. `unit` is static, in the
 * plural.
 */
void progress_begin_work(struct progress *progress, const char *label, const char *unit);

/* Redraws the line. */
void progress_draw(struct progress *progress, uint64_t done);

/* Removes the line, so that other text can be printed. */
void progress_clear(struct progress *progress);

/* Where a line is written, and what it begins with. */
struct progress_line {
    char *text;
    size_t size;    /* bytes of text */
    unsigned width; /* columns of the line at most; the bar is shortened first */
    const char *label;
};

/* The line itself: "label [#####     ]  50 %  500/1000  250/s  0:02 left". Returns line->text. */
const char *progress_format(const struct progress_line *line, uint64_t done, uint64_t total,
                            int64_t elapsed_us);

/*
 * The same of a part, without the numbers of what is done and of all:
 * "label [#####     ]  50 %  14.5 million requests/s  0:02 left". `rate` is text, `left_seconds`
 * the time left.
 */
const char *progress_format_work(const struct progress_line *line, double part, const char *rate,
                                 double left_seconds);

/*
 * The same of bytes: "label [#####     ]  50 %  1.0 GiB of 2.0 GiB  25.0 MiB/s  0:41 left"; without
 * a total "label 1.0 GiB  25.0 MiB/s  0:41", where the time is the elapsed one.
 */
const char *progress_format_bytes(const struct progress_line *line, uint64_t done, uint64_t total,
                                  int64_t elapsed_us);

#endif
