/*
 * What a subcommand of sunproxy is: one file that defines a struct command, a declaration in
 * client/commands.h or study/commands.h, and a row in client/main.c or in the file of the
 * subcommand that it is a part of.
 */
#ifndef SUNPROXY_CLI_COMMAND_H
#define SUNPROXY_CLI_COMMAND_H

#include <stdio.h>
#include <sysexits.h>

/* Values of long options of several commands; those of a group or a command begin at OPTION_OWN. */
enum { OPTION_HELP = 256, OPTION_OWN };

struct command {
    const char *name;
    const char *summary; /* one line, for the list of subcommands */
    const char *help;    /* the whole text of --help */

    /*
     * Runs it. argv[0] is "sunproxy NAME", which getopt_long() puts in front of its complaints;
     * what follows are the subcommand's own arguments. Returns the program's exit status. What was
     * printed need not be flushed: main() does that, and notices if it cannot.
     */
    int (*run)(int argc, char **argv);

    /* Prints what stands at the end of --help and comes from tables; NULL: nothing */
    void (*lists)(void);

    /* Those that it consists of, called by their last words, ended by NULL; NULL: there are none */
    const struct command *const *parts;
};

/* The exit status of Ctrl-C, as shells have it. */
#define EXIT_INTERRUPTED 130

/*
 * The one of a list, ended by NULL, whose last word is `word`; or NULL after a complaint, which
 * says what was meant and where help is to be had.
 */
const struct command *command_find(const struct command *const *commands, const char *word);

/* A line of a list of names, in help or behind a complaint. */
void command_print_name(FILE *to, const char *name, const char *summary);

/* Prints the text of --help to stdout. Returns EX_OK. */
int command_help(const struct command *command);

/* Says on stderr where help is to be had, after a complaint. Returns EX_USAGE. */
int command_usage(const struct command *command);

#endif
