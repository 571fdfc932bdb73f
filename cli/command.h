/*
 * A subcommand of sunproxy: one file that defines a struct command, a declaration in
 * client/commands.h or study/commands.h, and a row in client/main.c or in the file of the
 * subcommand that it is a part of.
 */
#ifndef SUNPROXY_CLI_COMMAND_H
#define SUNPROXY_CLI_COMMAND_H

#include <limits.h>
#include <stdio.h>
#include <sysexits.h>

#include "cli/options.h"

struct command {
    const char *name;
    const char *summary; /* one line, for the list of commands */

    /* --help: usage and description; the options; exit statuses, or NULL. */
    const char *about;
    const struct option_group *options[OPTION_GROUPS];
    const char *after;

    /* Arguments that are not options: their name, and how many there may be. */
    const char *argument;
    int least, most;

    /*
     * Runs it; argv[0] is "sunproxy NAME". Returns the program's exit status. What was printed need
     * not be flushed: main() does that, and notices if it cannot.
     */
    int (*run)(int argc, char **argv);

    /* Prints the end of --help that comes from tables; NULL: nothing */
    void (*lists)(void);

    /* Its parts, by the last words of their names, ended by NULL; NULL: none */
    const struct command *const *parts;
};

#define COMMAND_MANY INT_MAX

/* The exit status after Ctrl-C, as in shells. */
#define EXIT_INTERRUPTED 130

/*
 * The command of a list, ended by NULL, whose last word is `word`; or NULL after a complaint with
 * the nearest name.
 */
const struct command *command_find(const struct command *const *commands, const char *word);

/* Prints a line of a list of names, in help or after a complaint. */
void command_print_name(FILE *to, const char *name, const char *summary);

#define COMMAND_GO_ON (-1)

/*
 * Reads the command line: options_read(), then the number of the other words, which begin at
 * argv[optind]. COMMAND_GO_ON; or the exit status after --help, which is printed, or a complaint.
 */
int command_read(const struct command *command, void *const *into, int argc, char **argv);

/* Prints the text of --help to stdout. Returns EX_OK. */
int command_help(const struct command *command);

/* Names --help on stderr, after a complaint. Returns EX_USAGE. */
int command_usage(const struct command *command);

/* The run() of a command that has parts: runs the one that argv[1] names, under its whole name.
 * `missing` is the complaint without one. */
int command_run_part(const struct command *command, const char *missing, int argc, char **argv);

#endif
