/*
 * A command that reads the access log from its standard input. A keeper (server/commands/keeper.h),
 * sunproxyd-log, runs it. It starts the command again when it ends, after a pause, and keeps the
 * pipe meanwhile, so that lines wait in it and in the daemon. A command that ends may have read the
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
 * Starts the keeper, and in it calls enter(context) first, which returns false if it must not go
 * on. Returns the pipe's end for writing, in non-blocking mode; -1 with errno. *keeper is the
 * process, for keeper_wait() after the pipe was closed. Before any other thread.
 */
int log_command_start(const char *command, bool (*enter)(const void *context), const void *context,
                      pid_t *keeper);

#endif
