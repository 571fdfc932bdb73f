/* Reads options from the command line and a configuration file, by the rows of the table. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/nearest.h"
#include "base/option_scan.h"
#include "server/config/options_table.h"
#include "server/config/sections.h"
#include "server/limits/cgroup.h"

#define DEPTH 8u         /* of included files */
#define MOST_FILES 1000u /* of a configuration */

static char *
trim(char *text)
{
    char *end;

    while (isspace((unsigned char)*text))
        text++;
    end = text + strlen(text);
    while (end > text && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return text;
}

static void
explain_unknown_key(const char *place, const char *key, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(key);

    for (const struct option_row *row = option_rows; row->help; row++)
        if (row->name && row->when != OPTION_HERE)
            nearest_offer(&nearest, row->name);
    buf_printf(why, "%sunknown key '%s'; ", place, key);
    if (nearest_is_near(&nearest))
        buf_printf(why, "did you mean %s?", nearest.best);
    else
        buf_append_str(why, "see sunproxyd --default-config");
}

/* What is between the quote before `text` and the next single one; two stand for one. *rest is what
 * follows. NULL if no quote does. */
static char *
read_quoted(char *text, char **rest)
{
    char *out = text;

    for (char *at = text; *at; at++) {
        if (*at == '"' && *++at != '"') {
            *rest = at;
            /* The end of the value may be that of what follows it. */
            if (out < at)
                *out = '\0';
            return text;
        }
        *out++ = *at;
    }
    return NULL;
}

/*
 * The value without blanks around it. A # after a blank begins a comment, and so does one at the
 * beginning. A value in double quotes is what is between them, whatever that is. NULL if a quote
 * has no end, or is not followed by the end of the line or a comment.
 */
static char *
read_value(char *text)
{
    char *rest;

    text = trim(text);
    if (*text == '"') {
        text = read_quoted(text + 1, &rest);
        rest = text ? trim(rest) : NULL;
        return rest && (*rest == '\0' || *rest == '#') ? text : NULL;
    }
    for (char *at = text; (at = strchr(at, '#')); at++) {
        if (at == text || isspace((unsigned char)at[-1])) {
            *at = '\0';
            break;
        }
    }
    return trim(text);
}

/* What the files of one configuration are read into. */
struct reading {
    struct options *options;
    const char *path; /* of the first file */
    struct sections sections;
    unsigned depth;  /* of files that include each other */
    struct stat open[DEPTH + 1]; /* the files that are being read, by depth */
    unsigned files;  /* that were read so far */
    bool *given;     /* by row of the table: this file has a line of it */
    bool is_printed; /* command line and files may have given the same value */
    struct buf *why;
};

static bool include(struct reading *reading, const char *place, const char *path);

/* Both have the form "FILE:LINE: ". */
static bool
is_same_file(const char *place, const char *other)
{
    size_t len = (size_t)(strrchr(place, ':') - place);

    while (len && place[len - 1] != ':')
        len--;
    return strncmp(place, other, len) == 0;
}

/* Where this file has the option, or this value of one that is repeated; NULL: nowhere before. */
static const char *
find_given(const struct reading *reading, const struct option_row *row, const char *place,
           const char *value)
{
    const struct options *options = reading->options;
    const struct option_list *list =
        (const struct option_list *)(const void *)((const char *)options + row->offset);

    if (reading->is_printed || !reading->given[row - option_rows])
        return NULL;
    if (row->type != OPTION_LIST)
        return options->places[row - option_rows];
    for (size_t i = 0; i < list->count; i++)
        if (list->places[i] && strcmp(list->items[i], value) == 0 &&
            is_same_file(place, list->places[i]))
            return list->places[i];
    return NULL;
}

/* A line that is not in a section. */
static bool
set_value(struct reading *reading, const char *place, const char *key, const char *value)
{
    const struct option_row *row = option_row_named(key);
    const char *given;

    if (strcmp(key, "include") == 0)
        return include(reading, place, value);
    if (!row) {
        explain_unknown_key(place, key, reading->why);
        return false;
    }
    if (row->when == OPTION_HERE) {
        buf_printf(reading->why, "%s%s can only be given on the command line", place, key);
        return false;
    }
    given = find_given(reading, row, place, value);
    if (given) {
        buf_printf(reading->why, "%s%s is there already, at %.*s", place, key,
                   (int)strlen(given) - 2, given);
        return false;
    }
    reading->given[row - option_rows] = true;
    return option_set(reading->options, row, place, value, reading->why);
}

/* One line of a configuration file; `line` is changed. */
static bool
parse_line(struct reading *reading, const char *place, char *line)
{
    struct buf *why = reading->why;
    char *equals, *key, *value;

    key = trim(line);
    if (*key == '\0' || *key == '#')
        return true;
    if (*key == '[')
        return sections_open(&reading->sections, place, key, why);
    equals = strchr(key, '=');
    if (!equals) {
        buf_printf(why, "%s\"%s\" is not of the form key = value", place, key);
        return false;
    }
    *equals = '\0';
    value = read_value(equals + 1);
    key = trim(key);
    if (!value) {
        buf_printf(why, "%s%s: a value in double quotes ends with the second one", place, key);
        return false;
    }
    return reading->sections.begun ? sections_set(&reading->sections, place, key, value, why)
                                   : set_value(reading, place, key, value);
}

/* Closes the file. `name` stands for it in messages. */
static bool
parse_lines(struct reading *reading, FILE *file, const char *name)
{
    struct buf *why = reading->why;
    bool given[OPTION_ROWS_MAX] = {false}, *before = reading->given;
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    bool ok = true;
    ssize_t len;

    reading->given = given;
    while ((len = getline(&line, &size, file)) >= 0) {
        struct buf place;

        buf_init(&place, PATH_MAX + 32);
        buf_printf(&place, "%s:%u: ", name, ++number);
        if (span_has_zero(span_of(line, (size_t)len))) {
            buf_printf(why, "%sthe line has a zero byte", buf_str(&place));
            ok = false;
        } else {
            ok = parse_line(reading, buf_str(&place), line) && ok;
        }
        buf_end_line(why);
        buf_free(&place);
    }
    if (ferror(file)) {
        buf_printf(why, "%s: %s", name, strerror(errno));
        ok = false;
    }
    sections_end_file(&reading->sections);
    reading->given = before;
    free(line);
    fclose(file);
    return ok;
}

/* Notes that this file is being read. False: it is already. */
static bool
note_file(struct reading *reading, FILE *file)
{
    struct stat *own = &reading->open[reading->depth];

    reading->files++;
    if (fstat(fileno(file), own) != 0 || !S_ISREG(own->st_mode))
        *own = (struct stat){0};
    for (unsigned i = 0; i < reading->depth && own->st_ino; i++)
        if (reading->open[i].st_ino == own->st_ino && reading->open[i].st_dev == own->st_dev)
            return false;
    return true;
}

/* `place` precedes the path in a message. */
static bool
parse_file(struct reading *reading, const char *place, const char *path)
{
    FILE *file = fopen(path, "re");

    if (file && note_file(reading, file))
        return parse_lines(reading, file, path);
    if (file) {
        buf_printf(reading->why, "%sinclude: %s includes itself", place, path);
        fclose(file);
    } else {
        buf_printf(reading->why, "%s%s: %s", place, path, strerror(errno));
    }
    return false;
}

static int
is_conf(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return entry->d_name[0] != '.' && dot && strcmp(dot, ".conf") == 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Is the number of files not reached yet? The first file beyond it is an error. */
static bool
may_read(struct reading *reading, const char *place)
{
    if (reading->files == MOST_FILES) {
        buf_printf(reading->why, "%sinclude: a configuration has at most 1,000 files", place);
        reading->files++;
    }
    return reading->files < MOST_FILES;
}

/* Reads the files *.conf of a folder, in the order of their names as bytes. */
static bool
parse_folder(struct reading *reading, const char *place, const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, is_conf, by_name);
    bool ok = count >= 0;

    if (!ok)
        buf_printf(reading->why, "%sinclude: %s: %s", place, path, strerror(errno));
    for (int i = 0; i < count; i++) {
        struct buf file;

        buf_init(&file, PATH_MAX);
        buf_end_line(reading->why);
        if (may_read(reading, place) && buf_printf(&file, "%s/%s", path, entries[i]->d_name))
            ok = parse_file(reading, place, buf_str(&file)) && ok;
        buf_free(&file);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return ok;
}

/* A path in a file stands beside the first file, unless it is absolute. */
static bool
write_path(const struct reading *reading, const char *path, struct buf *whole)
{
    const char *slash = *path == '/' ? NULL : strrchr(reading->path, '/');

    return (!slash || buf_append(whole, reading->path, (size_t)(slash + 1 - reading->path))) &&
           buf_append_str(whole, path);
}

/* Reads a file, or a folder. */
static bool
read_path(struct reading *reading, const char *place, const char *path)
{
    struct stat st;

    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return parse_folder(reading, place, path);
    return may_read(reading, place) && parse_file(reading, place, path);
}

static bool
include(struct reading *reading, const char *place, const char *path)
{
    struct buf whole;
    bool ok;

    if (reading->depth == DEPTH) {
        buf_printf(reading->why, "%sinclude: files include each other to a depth of %u", place,
                   DEPTH);
        return false;
    }
    reading->depth++;
    buf_init(&whole, PATH_MAX);
    ok = write_path(reading, path, &whole);
    if (ok)
        ok = read_path(reading, place, buf_str(&whole));
    else
        buf_printf(reading->why, "%sinclude: %s", place, strerror(ENAMETOOLONG));
    buf_free(&whole);
    reading->depth--;
    return ok;
}

/* Reads a file with all that it includes, and closes it. */
static bool
parse_config(struct options *options, FILE *file, const char *name, bool printed, struct buf *why)
{
    struct reading reading = {.options = options, .path = name, .is_printed = printed, .why = why};
    bool ok;

    sections_init(&reading.sections);
    (void)note_file(&reading, file);
    ok = parse_lines(&reading, file, name);
    ok = ok && reading.files <= MOST_FILES;
    buf_end_line(why);
    ok = sections_apply(&reading.sections, options, why) && ok;
    sections_free(&reading.sections);
    return ok;
}

static bool
parse_config_file(struct options *options, const char *path, struct buf *why)
{
    FILE *file = fopen(path, "re");

    if (file)
        return parse_config(options, file, path, false, why);
    buf_printf(why, "%s: %s", path, strerror(errno));
    return false;
}

/* The rows as option_scan_next() takes them; val is the row's number + OPTION_SCAN_LEAST. */
static void
make_getopt(struct option longs[OPTION_ROWS_MAX + 1], char shorts[2 * OPTION_ROWS_MAX + 2])
{
    size_t count = 0, len = 0;

    shorts[len++] = ':';
    for (const struct option_row *row = option_rows; row->help; row++) {
        bool argument = row->type != OPTION_FLAG;

        if (!row->name)
            continue;
        longs[count++] = (struct option){row->name, argument ? required_argument : no_argument,
                                         NULL, (int)(row - option_rows) + OPTION_SCAN_LEAST};
        if (row->letter) {
            shorts[len++] = row->letter;
            if (argument)
                shorts[len++] = ':';
        }
    }
    longs[count] = (struct option){0};
    shorts[len] = '\0';
}

static const struct option_row *
row_of_getopt(int value)
{
    if (value >= OPTION_SCAN_LEAST)
        return &option_rows[value - OPTION_SCAN_LEAST];
    for (const struct option_row *row = option_rows; row->help; row++)
        if (row->name && row->letter == (char)value)
            return row;
    return NULL;
}

/*
 * One pass over the command line, for the row `only` and without regard to errors in others, or, if
 * that is NULL, for everything.
 */
static bool
parse_arguments(struct options *options, int argc, char **argv, const struct option_row *only,
                struct buf *why)
{
    struct option longs[OPTION_ROWS_MAX + 1];
    char shorts[3 * OPTION_ROWS_MAX + 2];
    const char *word;
    bool ok = true;
    int value;

    make_getopt(longs, shorts);
    optind = 0; /* glibc: restart the scan */
    opterr = 0;
    while ((value = option_scan_next(argc, argv, shorts, longs, &word)) != -1) {
        bool unknown = value == '?' || value == ':';
        const struct option_row *row = unknown ? NULL : row_of_getopt(value);

        if (only && row != only)
            continue;
        if (unknown) {
            char sentence[512];

            buf_append_str(why, option_scan_error(longs, value, word, sentence, sizeof(sentence)));
            ok = false;
        } else if (row->type != OPTION_FLAG && strpbrk(optarg, "\r\n")) {
            buf_printf(why, "--%s: the value has a line end", row->name);
            ok = false;
        } else if (!option_set(options, row, "--", row->type == OPTION_FLAG ? "yes" : optarg,
                               why)) {
            ok = false;
        }
        buf_end_line(why);
    }
    for (int i = optind; !only && i < argc; i++) {
        buf_printf(why, "\"%s\" is not an option\n", argv[i]);
        ok = false;
    }
    return ok;
}

/* An eighth, so that one client cannot take all slots of the fetches that wait. */
static uint64_t
share_of_fetches(const struct options *options)
{
    uint64_t waiting = options->max_fetches_waiting;

    if (waiting == 0)
        waiting = options->max_fetches - options->max_fetches / 2;
    return waiting < 32 ? 4 : waiting / 8;
}

/* The defaults that follow from other options. */
static void
set_dependent(struct options *options)
{
    if (options->capacity_urls == 0 && options->capacity_bytes == 0)
        options->capacity_bytes = (uint64_t)256 << 20;
    options->memory_limit = cgroup_limits_read(CGROUP_MEMBERSHIP, CGROUP_ROOT).memory;
    options->memory_is_short =
        cgroup_fit_memory(options->memory_limit, &options->capacity_bytes, &options->max_transit);
    if (options->max_fetches_per_client == OPTION_NOT_GIVEN)
        options->max_fetches_per_client = share_of_fetches(options);
}

int
options_parse(struct options *options, int argc, char **argv, struct buf *why)
{
    int status = 0;

    options->argc = argc;
    options->argv = argv;
    /* The file first: the command line overrides it. */
    if (!parse_arguments(options, argc, argv, option_row_named("config"), why))
        return EX_USAGE;
    if (options->config && !parse_config_file(options, options->config, why))
        status = EX_CONFIG;
    buf_end_line(why);
    if (!parse_arguments(options, argc, argv, NULL, why) && status == 0)
        status = EX_USAGE;
    set_dependent(options);
    buf_unend_line(why);
    return status;
}

bool
options_parse_text(struct options *options, struct span text, struct buf *why)
{
    FILE *file = fmemopen((char *)(uintptr_t)text.ptr, text.len, "r");

    if (!file) {
        buf_append_str(why, strerror(errno));
        return false;
    }
    if (!parse_config(options, file, "configuration", true, why))
        return false;
    set_dependent(options);
    return true;
}
