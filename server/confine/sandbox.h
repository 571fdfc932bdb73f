/*
 * The daemon's sandbox: the files and system calls that serving takes, and no others. Files by
 * Landlock (landlock.h), system calls by seccomp (syscall_filter.h).
 *
 * One thread, after sockets and logs are open and privileges are given up (privileges.h), and
 * before any other thread starts: later threads inherit it.
 */
#ifndef SUNPROXY_SERVER_CONFINE_SANDBOX_H
#define SUNPROXY_SERVER_CONFINE_SANDBOX_H

#include <stdbool.h>

#include "base/buf.h"

#define SANDBOX_MOST_SOCKETS 50

/* Files of this daemon's, beside those that any program reads. NULL: none. */
struct sandbox_files {
    const char *sockets[SANDBOX_MOST_SOCKETS + 1]; /* removed at the end */
    const char *access_log;                        /* opened already, and again on SIGHUP */
    const char *request_db;                        /* made, with its log, and opened again */
    const char *store;                             /* a folder, whose files are made and removed */
    bool rings;                                    /* which may be read by rings (io_uring) */
    const char *cacert;                            /* read */
};

/*
 * Enters the sandbox for good. `measures` gets a phrase on what is in force and what this kernel
 * does not have: "system calls are filtered, files are restricted (Landlock 7)". False with a
 * sentence in `why` if the kernel refuses what it has.
 */
bool sandbox_enter(const struct sandbox_files *files, struct buf *measures, struct buf *why);

#endif
