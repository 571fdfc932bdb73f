/*
 * Landlock: what files the process may open, which ports it may bind, and which processes it may
 * signal, as rules that the kernel holds it to. Kernels have more of it from version to version;
 * what one does not know it does not restrict. See landlock(7).
 */
#ifndef SUNPROXY_SERVER_CONFINE_LANDLOCK_H
#define SUNPROXY_SERVER_CONFINE_LANDLOCK_H

#include <stdbool.h>

/* What may be done with a file, or with all files in a folder and in those under it. */
enum landlock_use {
    LANDLOCK_READ = 1,   /* and list folders */
    LANDLOCK_WRITE = 2,  /* not truncate */
    LANDLOCK_CREATE = 4, /* regular files */
    LANDLOCK_REMOVE = 8, /* all but folders */
    LANDLOCK_TRUNCATE = 16,
};

struct landlock {
    int version; /* of the kernel's Landlock; 0: none, and nothing is restricted */
    int rules;   /* descriptor; -1: none */
};

/*
 * Begins with rules that forbid every use of files and every bind() of a TCP port, and signals and,
 * with `abstract_sockets` false, connections to abstract sockets of processes that are not under
 * the same rules. 0 or an errno.
 */
int landlock_begin(struct landlock *landlock, bool abstract_sockets);

/* Allows uses of what the path leads to; one that is not there is passed over. 0 or an errno. */
int landlock_allow(struct landlock *landlock, const char *path, unsigned uses);

/*
 * Holds the calling thread and those that it starts to the rules, for good, or drops them if
 * `enforce` is false. New privileges must have been ruled out. 0 or an errno.
 */
int landlock_end(struct landlock *landlock, bool enforce);

#endif
