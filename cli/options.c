#include "cli/options.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/option_scan.h"
#include "base/units.h"
#include "base/wrap.h"
#include "cli/output.h"

#define MOST_ROWS 64
#define TEXT_COLUMN 25

/* ---- parsers --------------------------------------------------------------------------------- */

int
options_wrong(const struct option_row *row, const char *wanted, const char *text)
{
    output_complain("--%s is %s, not '%s'", row->name, wanted, text);
    return EX_USAGE;
}

int
option_flag(const struct option_row *row, void *field, const char *text)
{
    (void)row;
    (void)text;
    *(bool *)field = true;
    return EX_OK;
}

int
option_value(const struct option_row *row, void *field, const char *text)
{
    (void)text;
    *(unsigned *)field = (unsigned)row->low;
    return EX_OK;
}

int
option_text(const struct option_row *row, void *field, const char *text)
{
    char wanted[64];
    size_t len = strlen(text);

    *(const char **)field = text;
    if (row->high == 0 || (len >= row->low && len <= row->high))
        return EX_OK;
    snprintf(wanted, sizeof(wanted), "a text of %" PRIu64 " to %" PRIu64 " bytes", row->low,
             row->high);
    return options_wrong(row, wanted, text);
}

int
option_choice(const struct option_row *row, void *field, const char *text)
{
    struct nearest nearest = NEAREST_TO(text);
    char words[128], wanted[160] = "", ask[80];
    uint64_t which = 0;
    size_t len = 0;
    char *rest = words, *word;

    snprintf(words, sizeof(words), "%s", row->argument + strspn(row->argument, "[="));
    words[strcspn(words, "]")] = '\0';
    if (!text || units_parse_word(text, words, &which)) {
        *(unsigned *)field = (unsigned)(text ? row->low + which : row->low - 1);
        return EX_OK;
    }
    while ((word = strsep(&rest, "|"))) {
        nearest_offer(&nearest, word);
        len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s%s",
                                len == 0 ? ""
                                : rest   ? ", "
                                         : " or ",
                                word);
    }
    output_complain("--%s is %s, not '%s'%s", row->name, wanted, text,
                    nearest_ask(&nearest, ask, sizeof(ask)));
    return EX_USAGE;
}

int
option_uint(const struct option_row *row, void *field, const char *text)
{
    char wanted[80];

    if (units_parse_uint(text, row->low, row->high, field))
        return EX_OK;
    snprintf(wanted, sizeof(wanted),
             row->high >= INT64_MAX ? "a number from %" PRIu64 " on"
                                    : "a number from %" PRIu64 " to %" PRIu64,
             row->low, row->high);
    return options_wrong(row, wanted, text);
}

int
option_bytes(const struct option_row *row, void *field, const char *text)
{
    return units_parse_bytes(text, field) ? EX_OK
                                          : options_wrong(row, "a size such as 64M or 1.5GB", text);
}

int
option_duration(const struct option_row *row, void *field, const char *text)
{
    int64_t *us = field;

    if (units_parse_duration(text, us) && *us > 0)
        return EX_OK;
    return options_wrong(row, "a duration such as 500ms, 30s or 2m", text);
}

int
option_share(const struct option_row *row, void *field, const char *text)
{
    if (units_parse_share(text, field))
        return EX_OK;
    return options_wrong(row, "a share above 0 and at most 1, such as 0.01 or 1%", text);
}

int
option_number(const struct option_row *row, void *field, const char *text)
{
    double *value = field;
    char wanted[64], *end;

    if ((*text >= '0' && *text <= '9') || *text == '.') {
        *value = strtod(text, &end);
        if (*end == '\0' && *value >= 0 && *value <= (double)row->high)
            return EX_OK;
    }
    snprintf(wanted, sizeof(wanted), "a number from 0 to %" PRIu64, row->high);
    return options_wrong(row, wanted, text);
}

/* ---- the command line ------------------------------------------------------------------------ */

static const struct option_row help_row = {
    .name = "help", .letter = 'h', .help = "print this text and exit"};

/* A row, the structure that it is for, and whether it was given. */
struct known {
    const struct option_row *row;
    void *into;
    bool given;
};

static size_t
collect(const struct option_group *const *groups, void *const *into, struct known *known)
{
    size_t count = 0;

    for (size_t i = 0; groups[i]; i++)
        for (const struct option_row *row = groups[i]->rows; row->name; row++) {
            assert(count + 1 < MOST_ROWS);
            known[count++] = (struct known){row, into[i], false};
        }
    known[count++] = (struct known){&help_row, NULL, false};
    return count;
}

static int
take(const struct known *known, const char *text)
{
    return known->row->take(known->row, (char *)known->into + known->row->offset, text);
}

/* A given option that sets the field of `known` to another value; NULL: none. */
static const struct option_row *
find_rival(const struct known *all, size_t count, const struct known *known)
{
    for (size_t i = 0; known->row->take == option_value && i < count; i++)
        if (all[i].given && all[i].row->take == option_value && all[i].into == known->into &&
            all[i].row->offset == known->row->offset && all[i].row->low != known->row->low)
            return all[i].row;
    return NULL;
}

/* Takes an option of the command line. */
static int
take_given(struct known *all, size_t count, struct known *known, const char *text)
{
    const struct option_row *rival = find_rival(all, count, known);

    known->given = true;
    if (!rival)
        return take(known, text);
    output_complain("--%s and --%s exclude each other", rival->name, known->row->name);
    return EX_USAGE;
}

static void
make_getopt(const struct known *known, size_t count, struct option *longs, char *shorts)
{
    *shorts++ = ':'; /* a missing value is ':' and not '?' */
    for (size_t i = 0; i < count; i++) {
        const struct option_row *row = known[i].row;
        int argument = !row->argument            ? no_argument
                       : row->argument[0] == '[' ? optional_argument
                                                 : required_argument;

        longs[i] = (struct option){row->name, argument, NULL, OPTION_SCAN_LEAST + (int)i};
        if (!row->letter)
            continue;
        *shorts++ = row->letter;
        for (int colons = argument == required_argument ? 1
                          : argument == no_argument     ? 0
                                                        : 2;
             colons > 0; colons--)
            *shorts++ = ':';
    }
    longs[count] = (struct option){0};
    *shorts = '\0';
}

/* The option of a value of option_scan_next(); NULL: none. */
static struct known *
find(struct known *known, size_t count, int value)
{
    if (value >= OPTION_SCAN_LEAST)
        return &known[value - OPTION_SCAN_LEAST];
    for (size_t i = 0; i < count; i++)
        if (known[i].row->letter && known[i].row->letter == value)
            return &known[i];
    return NULL;
}

/* After option_scan_next() has met an unknown option: the hint for it, or NULL. */
static const struct option_hint *
find_hint(const struct option_group *const *groups, int value, const char *word)
{
    size_t len = optopt == 0 ? strcspn(word, "=") : 0;

    if (value != '?' || optopt >= OPTION_SCAN_LEAST)
        return NULL;
    for (size_t i = 0; groups[i]; i++)
        for (const struct option_hint *hint = groups[i]->hints; hint && hint->name; hint++)
            if (optopt
                    ? hint->letter == optopt
                    : strlen(hint->name) == len - 2 && strncmp(hint->name, word + 2, len - 2) == 0)
                return hint;
    return NULL;
}

static int
complain(const struct option_group *const *groups, const struct option *longs, int value,
         const char *word)
{
    const struct option_hint *hint = find_hint(groups, value, word);
    char why[512];

    if (!hint)
        output_complain("%s", option_scan_error(longs, value, word, why, sizeof(why)));
    else if (optopt)
        output_complain("unknown option '-%c' (--%s): %s", optopt, hint->name, hint->instead);
    else
        output_complain("unknown option '--%s': %s", hint->name, hint->instead);
    return EX_USAGE;
}

int
options_read(const struct option_group *const *groups, void *const *into, int argc, char **argv)
{
    struct known known[MOST_ROWS];
    struct option longs[MOST_ROWS + 1];
    char shorts[3 * MOST_ROWS + 2];
    size_t count = collect(groups, into, known);
    const char *word;
    int value, status = EX_OK;

    for (size_t i = 0; i < count && status == EX_OK; i++)
        if (known[i].row->start)
            status = take(&known[i], known[i].row->start);
    make_getopt(known, count, longs, shorts);
    optind = 0; /* glibc: restart the scan */
    opterr = 0;
    while (status == EX_OK && (value = option_scan_next(argc, argv, shorts, longs, &word)) != -1) {
        struct known *of = value == '?' || value == ':' ? NULL : find(known, count, value);

        if (!of)
            status = complain(groups, longs, value, word);
        else if (of->row == &help_row)
            status = OPTIONS_HELP;
        else
            status = take_given(known, count, of, optarg);
    }
    return status;
}

/* By its name, or if that has no pointer by its letter. NULL: none. */
static const struct option_row *
find_row(const struct option_group *const *groups, const char *name, char letter)
{
    for (size_t i = 0; groups[i]; i++)
        for (const struct option_row *row = groups[i]->rows; row->name; row++)
            if (name ? strcmp(row->name, name) == 0 : row->letter && row->letter == letter)
                return row;
    return NULL;
}

static bool
needs_value(const struct option_row *row)
{
    return row && row->argument && row->argument[0] != '[';
}

/* Is the word that follows this option its value? */
static bool
takes_next(const struct option_group *const *groups, const char *word)
{
    if (word[1] == '-')
        return needs_value(find_row(groups, word + 2, 0));
    /* What follows a letter that needs a value is the value. */
    for (const char *letter = word + 1; *letter; letter++)
        if (needs_value(find_row(groups, NULL, *letter)))
            return letter[1] == '\0';
    return false;
}

int
options_skip(const struct option_group *const *groups, int argc, char **argv)
{
    int at = 1;

    while (at < argc && argv[at][0] == '-' && argv[at][1])
        at += 1 + takes_next(groups, argv[at]);
    return at < argc ? at : argc;
}

/* ---- help ------------------------------------------------------------------------------------ */

static void
print_row(FILE *to, const struct option_row *row)
{
    char text[1024];
    bool adds = row->start && !strstr(row->help, "(default");
    int at = row->letter ? fprintf(to, "  -%c, ", row->letter) : fprintf(to, "      ");

    at += fprintf(to, "--%s", row->name);
    if (row->argument)
        at += fprintf(to, "%s%s", row->argument[0] == '[' ? "" : " ", row->argument);
    snprintf(text, sizeof(text), "%s%s%s%s", row->help, adds ? " (default: " : "",
             adds ? row->start : "", adds ? ")" : "");
    /* At least two spaces; a value follows its name after one space. */
    wrap_print(to, text, at > TEXT_COLUMN - 2 ? TEXT_COLUMN : at, TEXT_COLUMN);
}

void
options_print(FILE *to, const struct option_group *const *groups)
{
    for (size_t i = 0; groups[i]; i++) {
        if (groups[i]->heading)
            fprintf(to, "%s%s:\n", i ? "\n" : "", groups[i]->heading);
        for (const struct option_row *row = groups[i]->rows; row->name; row++)
            print_row(to, row);
        if (groups[i]->after)
            wrap_print(to, groups[i]->after, 0, 2);
    }
    fputc('\n', to);
    print_row(to, &help_row);
}
