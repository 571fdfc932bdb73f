/*
 * The progress line of `sunproxy get`: on stderr, if that is a terminal to which no page is
 * written.
 */
#ifndef SUNPROXY_CLIENT_GET_GET_PROGRESS_H
#define SUNPROXY_CLIENT_GET_GET_PROGRESS_H

#include "cli/progress.h"
#include "client/get/get.h"

struct get_progress {
    bool wanted;
    struct progress line;
    size_t number; /* of the answer that it is about; 0: none yet */
    bool upload;   /* and of its request's body */
    int64_t total;
    int64_t next_us; /* when to draw it again */
    const struct get_options *options;
};

void get_progress_init(struct get_progress *progress, const struct get_options *options);

/*
 * Draws the line if its time has come, about the answer that is being written, of `count`. Returns
 * the microseconds until it should be called again; INT64_MAX: never.
 */
int64_t get_progress_update(struct get_progress *progress, const struct get_answer *answer,
                            size_t count);

/* Removes the line, so that other text can be printed. */
void get_progress_clear(struct get_progress *progress);

#endif
