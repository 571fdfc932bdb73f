/*
 * The options of a command line, one after the other, and what is wrong with one as a sentence.
 * getopt_long() with exact names: it accepts any unambiguous beginning of a long option, so that a
 * script that abbreviates would fail, or mean something else, once there is another option. Reads
 * and sets getopt's globals: for one thread.
 */
#ifndef SUNPROXY_BASE_OPTION_SCAN_H
#define SUNPROXY_BASE_OPTION_SCAN_H

#include <getopt.h>
#include <stddef.h>

/* The least `val` of the long options below: above all letters. */
#define OPTION_SCAN_LEAST 256

/*
 * getopt_long(), except that an abbreviated name is unknown: '?' with optopt 0. `shorts` begins
 * with a colon, opterr is 0. `word` becomes the word of the command line that has the option.
 */
int option_scan_next(int argc, char **argv, const char *shorts, const struct option *longs,
                     const char **word);

/*
 * After option_scan_next() has returned '?' or ':' and set `word`. An unknown long option is
 * answered with the nearest known one, the beginning of several with these. Returns text.
 */
const char *option_scan_error(const struct option *longs, int value, const char *word, char *text,
                              size_t size);

#endif
