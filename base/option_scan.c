#include "base/option_scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"

#define DASHES 2 /* before the name of a long option */

static bool
is_exact(const struct option *longs, int value, const char *word)
{
    size_t len = strcspn(word + DASHES, "=");

    while (longs->name && longs->val != value)
        longs++;
    return longs->name && strlen(longs->name) == len &&
           strncmp(longs->name, word + DASHES, len) == 0;
}

int
option_scan_next(int argc, char **argv, const char *shorts, const struct option *longs,
                 const char **word)
{
    int value = getopt_long(argc, argv, shorts, longs, NULL);

    if (value == -1)
        return value;
    *word = argv[optind - 1];
    if (value < OPTION_SCAN_LEAST) {
        /* Of a known long option that needs a value or takes none, optopt is the number. */
        if ((value != '?' && value != ':') || optopt < OPTION_SCAN_LEAST ||
            is_exact(longs, optopt, *word))
            return value;
    } else {
        if (optarg == *word)
            *word = argv[optind - 2];
        if (is_exact(longs, value, *word))
            return value;
    }
    optopt = 0;
    return '?';
}

/* A word that begins with two dashes and is no option. */
static void
explain_word(const struct option *longs, const char *word, char *text, size_t size)
{
    char name[64];
    struct nearest nearest = NEAREST_TO(name);
    struct buf several;
    const char *match = NULL;
    size_t matches = 0;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + DASHES, "="), word + DASHES);
    buf_init(&several, 1024);
    for (; longs->name; longs++) {
        nearest_offer(&nearest, longs->name);
        if (strncmp(longs->name, name, strlen(name)) != 0)
            continue;
        match = longs->name;
        buf_printf(&several, "%s--%s", matches++ ? ", " : "", match);
    }
    if (matches > 1)
        snprintf(text, size, "unknown option '--%s'; options that begin with it: %s", name,
                 buf_str(&several));
    else if (match || nearest_is_near(&nearest))
        snprintf(text, size, "unknown option '--%s'; did you mean --%s?", name,
                 match ? match : nearest.best);
    else
        snprintf(text, size, "unknown option '--%s'", name);
    buf_free(&several);
}

const char *
option_scan_error(const struct option *longs, int value, const char *word, char *text, size_t size)
{
    const char *what = value == ':' ? "needs a value" : "takes no value";

    if (optopt == 0) {
        explain_word(longs, word, text, size);
        return text;
    }
    if (optopt < OPTION_SCAN_LEAST) {
        snprintf(text, size, value == ':' ? "option '-%c' %s" : "unknown option '-%c'", optopt,
                 what);
        return text;
    }
    while (longs->name && longs->val != optopt)
        longs++;
    snprintf(text, size, "option '--%s' %s", longs->name ? longs->name : "", what);
    return text;
}
