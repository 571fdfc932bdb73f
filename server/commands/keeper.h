/*
 * Keepers: processes that run commands of the operator for the daemon, which cannot start any in
 * its sandbox. The daemon starts a keeper before it enters the sandbox. A keeper has the privileges
 * of --user, no descriptor but the standard ones and one to the daemon, and ends when the daemon
 * has ended. It runs a command by "/bin/sh -c", and again with a growing pause when it ends.
 */
#ifndef SUNPROXY_SERVER_COMMANDS_KEEPER_H
#define SUNPROXY_SERVER_COMMANDS_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper {
    const char *name;                       /* of the process */
    bool (*enter)(const void *context);     /* called first; false: it must not go on */
    const void *context;                    /* for enter() */
    void (*keep)(const void *what, int fd); /* the work of the process */
    const void *what;
};

/*
 * Starts the process, which ends with keep(what, fd); fd is its number from then on. The caller
 * keeps its own, and closes it. Before any other thread. -1 with errno.
 */
pid_t keeper_start(const struct keeper *keeper, int fd);

/* Waits until the process has ended, after its descriptor was closed, but two seconds at most. 0 is
 * harmless. */
void keeper_wait(pid_t keeper);

/* ---- in the process -------------------------------------------------------------------------- */

#define KEEPER_CANNOT_RUN 127 /* what a shell says of a command that it does not find */

/*
 * Runs a command with these descriptors as standard input and output, in a session of its own.
 * `out` -1: standard error. The number of the process, or -1.
 */
pid_t keeper_run(const char *command, int in, int out);

/* How a command ended: "has ended with status 1"; `text` has KEEPER_END_TEXT bytes. */
#define KEEPER_END_TEXT 48u
const char *keeper_describe_end(int status, char *text);

/* ---- pauses ---------------------------------------------------------------------------------- */

#define KEEPER_LONGEST_PAUSE_MS 60000
#define KEEPER_STEADY_US ((int64_t)60 * 1000000) /* after this time a pause is short again */

/*
 * The pause before a command that ran for this long is started again. *pause_ms is the caller's
 * memory, 0 at first: each pause is twice the last one, from first_ms up to the longest.
 */
int keeper_next_pause(int *pause_ms, int first_ms, int64_t ran_us);

#endif
