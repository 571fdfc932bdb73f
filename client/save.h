/*
 * Writing a file so that nobody ever sees half of it: under another name beside it, then renamed.
 */
#ifndef SUNPROXY_CLIENT_SAVE_H
#define SUNPROXY_CLIENT_SAVE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

struct save {
    FILE *file;      /* to be written to */
    char *path;      /* owned; where it goes; symbolic links followed */
    char *temporary; /* owned; NULL: written in place, as devices and pipes are */
    sigset_t before; /* signals as they were */
};

/*
 * Opens. Signals that end programs wait until save_close(), so that nothing stays behind. 0 or an
 * errno, and then there is nothing to close.
 */
int save_open(struct save *save, const char *path);

/*
 * Closes, and puts the file in its place if `keep` and all was written; otherwise the temporary one
 * is removed and what was there before stays. 0 or an errno.
 */
int save_close(struct save *save, bool keep);

#endif
