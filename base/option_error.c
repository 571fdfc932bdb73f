#include "base/option_error.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/nearest.h"

/* A word that begins with two dashes and is no option, or the beginning of several. */
static void
explain_word(const struct option *longs, const char *word, char *text, size_t size)
{
    char name[64];
    struct nearest nearest = NEAREST_TO(name);
    struct buf several;
    size_t matches = 0;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
    buf_init(&several, 1024);
    for (; longs->name; longs++) {
        nearest_offer(&nearest, longs->name);
        if (strncmp(longs->name, name, strlen(name)) == 0)
            buf_printf(&several, "%s'--%s'", matches++ ? ", " : "", longs->name);
    }
    if (matches > 1)
        snprintf(text, size, "option '--%s' is ambiguous: %s", name, buf_str(&several));
    else if (nearest_is_near(&nearest))
        snprintf(text, size, "unknown option '--%s'; did you mean --%s?", name, nearest.best);
    else
        snprintf(text, size, "unknown option '--%s'", name);
    buf_free(&several);
}

const char *
option_error(const struct option *longs, int value, const char *word, char *text, size_t size)
{
    const char *what = value == ':' ? "needs a value" : "takes no value";

    if (optopt == 0) {
        explain_word(longs, word, text, size);
        return text;
    }
    if (optopt < OPTION_ERROR_LEAST) {
        snprintf(text, size, value == ':' ? "option '-%c' %s" : "unknown option '-%c'", optopt,
                 what);
        return text;
    }
    while (longs->name && longs->val != optopt)
        longs++;
    snprintf(text, size, "option '--%s' %s", longs->name ? longs->name : "", what);
    return text;
}
