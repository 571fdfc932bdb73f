/*
 * A whole subcommand of sunproxy run inside a test, with its output caught: for tables of what
 * commands say, and for the walks through failing allocations and failing system calls.
 */
#ifndef SUNPROXY_TESTS_UNIT_CLI_IN_PROCESS_H
#define SUNPROXY_TESTS_UNIT_CLI_IN_PROCESS_H

#include <stddef.h>

#include "cli/command.h"

#define IN_PROCESS_WORDS 14

/* What a command printed, cut at the buffers' ends. */
struct in_process {
    char out[16384];
    char err[4096];
};

/*
 * Runs a command with these words, ended by NULL, in each of which the first $ stands for `folder`;
 * returns its exit status. Standard output is flushed. `printed` may be NULL.
 */
int in_process_run(const struct command *command, const char *const *words, const char *folder,
                   struct in_process *printed);

#endif
