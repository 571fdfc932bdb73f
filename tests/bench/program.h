/*
 * What the programs of this folder that make one measurement have in common: options that fill a
 * configuration, and a result that is one line of JSON.
 */
#ifndef BENCH_PROGRAM_H
#define BENCH_PROGRAM_H

#include <getopt.h>
#include <stdbool.h>

#include "base/buf.h"

/* Stores the argument of an option in a configuration. False if it is not valid. */
typedef bool program_set(void *config, int which, const char *text);

/* Status of program_parse(): the program goes on. */
#define PROGRAM_GOES_ON (-1)

/*
 * Parses a command line of long options only; 'h' in the table is --help. Prints the help to stdout
 * where it is asked for and to stderr where an option is wrong. Returns PROGRAM_GOES_ON or the exit
 * status.
 */
int program_parse(int argc, char **argv, const struct option *table, const char *help,
                  program_set *set, void *config);

/* Prints a line and frees the buffer. False if the buffer has failed, or the output. */
bool program_print(struct buf *line);

#endif
