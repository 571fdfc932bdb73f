/*
 * The table of options.h, private to five files: options.c defines the rows, options_parse.c
 * parses by them, options_set.c sets fields, options_print.c prints, options_compare.c compares.
 */
#ifndef SUNPROXY_SERVER_OPTIONS_TABLE_H
#define SUNPROXY_SERVER_OPTIONS_TABLE_H

#include <stddef.h>

#include "server/config/options.h"

enum option_type {
    OPTION_FLAG,       /* bool; in a file yes or no */
    OPTION_UINT,       /* uint64_t within [low, high] */
    OPTION_UINT_AUTO,  /* likewise up to high, or the word auto, which is 0 */
    OPTION_OCTAL,      /* uint64_t, written in octal */
    OPTION_BYTES,      /* uint64_t with units */
    OPTION_DURATION,   /* int64_t microseconds with units */
    OPTION_STRING,     /* char *, owned */
    OPTION_POLICY,     /* likewise: a policy that a daemon can run, or "help" */
    OPTION_LOG_FORMAT, /* likewise: plain, json or what log_pattern_compile() takes */
    OPTION_LOG_TARGET, /* likewise: what log_target_parse() takes */
    OPTION_LIST,       /* struct option_list; may be given several times */
    OPTION_CHOICE,     /* uint64_t: which of the words in `argument` separated by '|' */
    OPTION_RATE,       /* struct token_rate, "RATE[:BURST]" a second, or 0 */
    OPTION_RATE_BYTES, /* likewise, with units */
};

/* Is the field a text? */
static inline bool
option_is_text(enum option_type type)
{
    return type == OPTION_STRING || type == OPTION_POLICY || type == OPTION_LOG_FORMAT ||
           type == OPTION_LOG_TARGET;
}

/* Where an option may be given, and when it takes effect. */
enum option_when {
    OPTION_FIXED, /* at the start: to change it, the daemon is restarted */
    OPTION_LIVE,  /* at the start and at each reload */
    OPTION_HERE,  /* on the command line only */
};

struct option_row {
    const char *name; /* long option, and key in a file */
    char letter;      /* short option, or 0 */
    enum option_when when;
    enum option_type type;
    size_t offset; /* in struct options */
    const char *argument;
    const char *start; /* default, as text; NULL: none */
    uint64_t low, high;
    const char *help;
};

/* Marks a number whose default depends on other options. */
#define OPTION_NOT_GIVEN UINT64_MAX

/* A row without a name is a heading of --help; the last row has no help either. */
extern const struct option_row option_rows[];

/* The row of that name; NULL: there is none. */
const struct option_row *option_row_named(const char *name);

/*
 * Sets the field of a row from text (options_set.c). `place` is as option_place() has it. False
 * with a sentence in `why` that begins with place and name and describes valid values.
 */
bool option_set(struct options *options, const struct option_row *row, const char *place,
                const char *text, struct buf *why);

#endif
