/*
 * What a subcommand of sunproxy is: one file that defines a struct command, a declaration in
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

    /* Arguments that are no options: what one is called, and how many there may be. */
    const char *argument;
    int least, most;

    /*
     * Runs it; argv[0] is "sunproxy NAME". Returns the program's exit status. What was printed need
     * not be flushed: main() does that, and notices if it cannot.
     */
    int (*run)(int argc, char **argv);

    /* Prints what stands at the end of --help and comes from tables; NULL: nothing */
    void (*lists)(void);

    /* Those that it consists of, called by their last words, ended by NULL; NULL: there are none */
    const struct command *const *parts;
};

#define COMMAND_MANY INT_MAX

/* The exit status of Ctrl-C, as shells have it. */
#define EXIT_INTERRUPTED 130

/*
 * The one of a list, ended by NULL, whose last word is `word`; or NULL after a complaint, which
 * says what was meant and where help is to be had.
 */
const struct command *command_find(const struct command *const *commands, const char *word);

/* A line of a list of names, in help or behind a complaint. */
void command_print_name(FILE *to, const char *name, const char *summary);

#define COMMAND_GO_ON (-1)

/*
 * Reads the command line: options_read(), then the number of the other words, which begin at
 * argv[optind]. COMMAND_GO_ON; or the exit status after --help, which is printed, or a complaint.
 */
int command_read(const struct command *command, void *const *into, int argc, char **argv);

/* Prints the text of --help to stdout. Returns EX_OK. */
int command_help(const struct command *command);

/* Says on stderr where help is to be had, after a complaint. Returns EX_USAGE. */
int command_usage(const struct command *command);

#endif
