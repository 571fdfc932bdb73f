/*
 * Text broken into lines at its spaces.
 */
#ifndef SUNPROXY_BASE_WRAP_H
#define SUNPROXY_BASE_WRAP_H

#include <stdio.h>

#define WRAP_COLUMNS 79

/*
 * Prints a text in columns `indent` to WRAP_COLUMNS, counted from 0, and ends the line. `at` is the
 * column of the cursor; a new line is begun unless that is before `indent`. A word
 * that is longer than a line has one to itself. Errors show in ferror().
 */
void wrap_print(FILE *to, const char *text, int at, int indent);

#endif
