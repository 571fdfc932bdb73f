/*
 * Whole subcommands of sunproxy run inside a test, with what they print thrown away: for the walks
 * through failing allocations and failing system calls. Those that talk to a server find one that
 * served.h describes.
 */
#ifndef SUNPROXY_TESTS_UNIT_CLI_COMMANDS_H
#define SUNPROXY_TESTS_UNIT_CLI_COMMANDS_H

/* Makes a folder with the traces that the rows name and a server's socket, and removes it with all
 * that is in it. */
void commands_set_up(void);
void commands_tear_down(void);

/* How many rows there are, and a row's words, for messages. */
unsigned commands_count(void);
const char *commands_text(unsigned row);

/* Runs a row; returns the exit status, with standard output flushed and standard error silent. */
int commands_run(unsigned row);

#endif
