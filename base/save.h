/*
 * Atomic replacement of a file: written under another name beside it, then renamed.
 */
#ifndef SUNPROXY_BASE_SAVE_H
#define SUNPROXY_BASE_SAVE_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

/* The signals at which a program ends and that it can still do something about. */
#define SAVE_SIGNALS 3u

struct save {
    FILE *file;      /* to be written to */
    char *path;      /* owned; where it goes; symbolic links followed, even to what is not there */
    char *temporary; /* owned; NULL: written in place, as devices and pipes are */
    struct sigaction before[SAVE_SIGNALS]; /* what SIGHUP, SIGINT and SIGTERM did */
};

/* Not an errno: there is something at `path`, and it is no regular file. */
#define SAVE_NO_FILE (-1)

/*
 * May the file at `path` be replaced or written to? EACCES if it is a regular file that grants no
 * write permission to this user, or, also for root, to anyone; another errno, such as EROFS; or 0,
 * also if there is no such file.
 */
int save_check(const char *path);

/*
 * Opens. What save_check() refuses stays as it is. What is there and is no regular file, such as a
 * device or a FIFO, is never replaced: it is written in place, or with `files_only` refused with
 * SAVE_NO_FILE. A file keeps its mode, a new one has that of the umask. Until save_close() SIGHUP,
 * SIGINT and SIGTERM, where they would end the program, first remove the temporary file; so a
 * program has one file open in this way at a time. 0 or an errno, and then there is nothing to
 * close.
 */
int save_open(struct save *save, const char *path, bool files_only);

/*
 * Closes, and puts the file in its place if `keep` and all was written; otherwise the temporary one
 * is removed and what was there before stays. 0 or an errno.
 */
int save_close(struct save *save, bool keep);

#endif
