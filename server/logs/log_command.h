/*
 * A command that reads the access log from its standard input. A process of its own,
 * sunproxyd-log, starts it: before the daemon enters the sandbox, with the privileges of --user, by
 * "/bin/sh -c". It starts the command again when it ends, after a pause, and keeps the pipe
 * meanwhile, so that lines wait in it and in the daemon. A command that ends may have read the
 * beginning of a line: the next one begins with the line behind it.
 *
 * When the daemon has ended, the command reads to the end of the pipe, and sunproxyd-log ends with
 * it.
 */
#ifndef SUNPROXY_SERVER_LOGS_LOG_COMMAND_H
#define SUNPROXY_SERVER_LOGS_LOG_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts the process, and in it calls enter(context) first, which returns false if it must not go
 * on. Returns the pipe's end for writing, in non-blocking mode; -1 with errno. *keeper is the
 * process. Before any other thread.
 */
int log_command_start(const char *command, bool (*enter)(const void *context), const void *context,
                      pid_t *keeper);

/* Waits until the process has ended, after the pipe was closed, but two seconds at most. 0 is
 * harmless. */
void log_command_wait(pid_t keeper);

#endif
