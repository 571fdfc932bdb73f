/*
 * A command that reads the access log from its standard input. A keeper (server/commands/keeper.h),
 * sunproxyd-log, runs it, and passes what the daemon writes on to it by a pipe of the run. When the
 * command ends, it is started again after a pause, in which lines wait in both processes. The next
 * run gets all lines of which the last one has not read the end: nothing is lost that a command
 * has not read.
 *
 * When the daemon has ended, the command reads to the end of the lines, and sunproxyd-log ends with
 * it.
 */
#ifndef SUNPROXY_SERVER_LOGS_LOG_COMMAND_H
#define SUNPROXY_SERVER_LOGS_LOG_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts the keeper, and in it calls enter(context) first, which returns false if it must not go
 * on. Returns the pipe's end for writing, in non-blocking mode; -1 with errno. *keeper is the
 * process, for keeper_wait() after the pipe was closed. Before any other thread.
 */
int log_command_start(const char *command, bool (*enter)(const void *context), const void *context,
                      pid_t *keeper);

#endif
