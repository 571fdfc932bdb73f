/*
 * A key that sections of a configuration file have, by which they are read and documented.
 */
#ifndef SUNPROXY_BASE_SECTION_KEY_H
#define SUNPROXY_BASE_SECTION_KEY_H

#include <stdbool.h>

/* The kinds of values. */
enum section_value {
    SECTION_WORD,  /* one word, without a comma */
    SECTION_WORDS, /* several, without a comma */
    SECTION_TEXT,  /* any text */
};

struct section_key {
    const char *name; /* NULL ends a list of keys */
    const char *argument;
    const char *help;
    bool repeats;
    enum section_value value;
};

#endif
