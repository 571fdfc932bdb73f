/*
 * Tables of text: a heading and lines, from one list of columns.
 */
#ifndef SUNPROXY_CLI_COLUMNS_H
#define SUNPROXY_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct column {
    const char *name; /* in the heading; NULL where there is none */
    int width;        /* as printf's: negative for text that is aligned on the left */
    bool hidden;      /* not printed */
};

/* A line that is being written. A cell longer than its column moves the rest to the right. */
struct columns {
    FILE *out;
    const struct column *list;
    size_t count;
    size_t at; /* the column of the next cell; 0 to begin with */
};

/* Prints a line with the columns' names. */
void columns_head(struct columns *columns);

/* Prints the next cell of a line, after a space. */
void columns_cell(struct columns *columns, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends the line; cells may be missing. */
void columns_end(struct columns *columns);

/* Prints a line of two cells. */
void columns_pair(struct columns *columns, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
