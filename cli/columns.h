/*
 * Text in columns for people: a heading and the lines below it, from one list of columns.
 */
#ifndef SUNPROXY_CLI_COLUMNS_H
#define SUNPROXY_CLI_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct column {
    const char *name; /* in the heading; NULL where there is none */
    int width;        /* as printf's: negative where text begins on the left */
    bool hidden;      /* nothing is printed of it */
};

/* A line that is being written. What is longer than its column moves the rest to the right. */
struct columns {
    FILE *out;
    const struct column *list;
    size_t count;
    size_t at; /* the column of the next cell; 0 to begin with */
};

/* A line with the columns' names. */
void columns_head(struct columns *columns);

/* The next cell of a line, a space between it and the one before. */
void columns_cell(struct columns *columns, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The line's end; cells may be missing. */
void columns_end(struct columns *columns);

/* A line of two cells. */
void columns_pair(struct columns *columns, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
