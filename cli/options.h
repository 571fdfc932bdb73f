/*
 * The options of a command: tables of rows, for parsing and for --help.
 * Groups of rows can be shared by commands. For the main thread.
 */
#ifndef SUNPROXY_CLI_OPTIONS_H
#define SUNPROXY_CLI_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sysexits.h>

struct option_row;

/*
 * Parses a value, NULL if an optional one is missing, into `field`, which is at the row's offset in
 * the structure of its group. EX_OK, or the exit status after a complaint: options_wrong()'s if
 * the value is wrong. A text that is kept belongs to the caller.
 */
typedef int option_take(const struct option_row *row, void *field, const char *text);

struct option_row {
    const char *name;     /* without dashes */
    char letter;          /* 0: none */
    const char *argument; /* "N", "tsv|jsonl"; "[=N]": may be left out; NULL: there is none */
    option_take *take;
    size_t offset;
    uint64_t low, high; /* bounds, by `take` */
    const char *start;  /* the default, which is parsed first; NULL: the field is unchanged */
    const char *help;   /* without a period; " (default: START)" is added unless it has one */
};

/* An option that only a similar program has, and what to use instead. */
struct option_hint {
    const char *name;
    char letter; /* 0: none */
    const char *instead;
};

/* Rows for one structure, ended by one without a name. */
struct option_group {
    const char *heading; /* NULL: none */
    const struct option_row *rows;
    const char *after;               /* a paragraph after the rows; NULL: none */
    const struct option_hint *hints; /* ended by one without a name; NULL: none */
};

/* Of a command, ended by NULL. */
#define OPTION_GROUPS 5

/* ---- parsers, by the type of their field */

/* bool */
option_take option_flag;
/* const char *; with `high`, of `low` to `high` bytes */
option_take option_text;
/* An enum or unsigned: becomes `low`. Rows of one field and different values exclude each other. */
option_take option_value;
/* An enum or unsigned: one of the argument's words, which count from `low`; less 1 without any */
option_take option_choice;
/* uint64_t, from `low` to `high` */
option_take option_uint;
/* uint64_t: a size such as 64M (units.h) */
option_take option_bytes;
/* int64_t: microseconds of a duration above 0 (units.h) */
option_take option_duration;
/* double: above 0 and at most 1, or as per cent */
option_take option_share;
/* double, from 0 to `high` */
option_take option_number;

/* Complains that "--NAME is WANTED, not 'TEXT'". Returns EX_USAGE. */
int options_wrong(const struct option_row *row, const char *wanted, const char *text);

/* ---- all options of a command */

#define OPTIONS_HELP (-1)

/*
 * Sets the defaults, then parses argv[1] and on; into[i] is the structure of groups[i]. Option
 * --help, -h is added. EX_OK, with the other words from argv[optind] on; OPTIONS_HELP at --help;
 * or the exit status after a complaint.
 */
int options_read(const struct option_group *const *groups, void *const *into, int argc,
                 char **argv);

/*
 * The index of the first word from argv[1] on that is neither one of the options nor the value of
 * one; argc if there is none. An unknown option counts as one without a value.
 */
int options_skip(const struct option_group *const *groups, int argc, char **argv);

/* Prints the rows as --help has them, in lines of 79 columns. */
void options_print(FILE *to, const struct option_group *const *groups);

#endif
