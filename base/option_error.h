/*
 * What is wrong with an option, as a sentence for a person.
 */
#ifndef SUNPROXY_BASE_OPTION_ERROR_H
#define SUNPROXY_BASE_OPTION_ERROR_H

#include <getopt.h>
#include <stddef.h>

/* The least `val` of the long options below: above all letters. */
#define OPTION_ERROR_LEAST 256

/*
 * After getopt_long() has returned '?' or ':', with opterr 0 and a colon in front of its short
 * options. `word` is argv[optind - 1]. An unknown long option is answered with the nearest known
 * one, an abbreviation of several with these. Returns text. Reads optopt: for one thread.
 */
const char *option_error(const struct option *longs, int value, const char *word, char *text,
                         size_t size);

#endif
