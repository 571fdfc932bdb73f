/* What an option's value may be, and how it gets into its field. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/nearest.h"
#include "base/units.h"
#include "proxy/control.h"
#include "server/config/options_table.h"
#include "server/limits/rate.h"
#include "server/logs/access_line.h"
#include "server/logs/log_target.h"

#define LONGEST_US (365 * 86400 * (int64_t)1000000) /* short enough to be added to a clock */

static void *
field_of(struct options *options, const struct option_row *row)
{
    return (char *)options + row->offset;
}

/* Copies a place of option_place(); that of the command line is NULL. False without memory. */
static bool
copy_place(const char *place, char **copy)
{
    *copy = strcmp(place, "--") == 0 ? NULL : strdup(place);
    return *copy || strcmp(place, "--") == 0;
}

static bool
list_add(struct option_list *list, const char *place, const char *text)
{
    char **items = realloc(list->items, (list->count + 2) * sizeof(*items)), **places;

    if (!items)
        return false;
    list->items = items;
    places = realloc(list->places, (list->count + 1) * sizeof(*places));
    if (!places)
        return false;
    list->places = places;
    if (!copy_place(place, &places[list->count]))
        return false;
    items[list->count] = strdup(text);
    if (!items[list->count]) {
        free(places[list->count]);
        return false;
    }
    items[++list->count] = NULL;
    return true;
}

static bool
note_place(struct options *options, const struct option_row *row, const char *place)
{
    char **noted = &options->places[row - option_rows];

    free(*noted);
    return copy_place(place, noted);
}

static bool
parse_flag(const char *text, bool *value)
{
    *value = strcasecmp(text, "yes") == 0 || strcasecmp(text, "true") == 0 ||
             strcasecmp(text, "on") == 0 || strcmp(text, "1") == 0;
    return *value || strcasecmp(text, "no") == 0 || strcasecmp(text, "false") == 0 ||
           strcasecmp(text, "off") == 0 || strcmp(text, "0") == 0;
}

static bool
parse_octal(const char *text, uint64_t high, uint64_t *value)
{
    char *end;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 8);
    return errno == 0 && *end == '\0' && *value <= high;
}

static void
explain_choice(const struct option_row *row, const char *place, const char *text, struct buf *why)
{
    struct nearest nearest = NEAREST_TO(text);
    char words[128], ask[80], *rest = words, *word;

    snprintf(words, sizeof(words), "%s", row->argument);
    while ((word = strsep(&rest, "|")))
        nearest_offer(&nearest, word);
    buf_printf(why, "%s%s: \"%s\" is not one of %s%s", place, row->name, text, row->argument,
               nearest_ask(&nearest, ask, sizeof(ask)));
}

static bool
check_policy(const struct option_row *row, const char *place, const char *text, struct buf *why)
{
    struct policy_spec spec;
    char sentence[CONTROL_SENTENCE];

    if (strcasecmp(text, "help") == 0 ||
        control_parse_policy(text, &spec, sentence, sizeof(sentence)))
        return true;
    buf_printf(why, "%s%s: %s; --policy help lists them all", place, row->name, sentence);
    return false;
}

static bool
check_log_format(const struct option_row *row, const char *place, const char *text,
                 struct buf *why)
{
    const size_t before = why->len;
    struct access_format format;
    bool ok;

    buf_printf(why, "%s%s: ", place, row->name);
    ok = access_format_init(&format, text, why);
    if (ok)
        buf_truncate(why, before);
    access_format_free(&format);
    return ok;
}

static bool
check_log_target(const struct option_row *row, const char *place, const char *text,
                 struct buf *why)
{
    const size_t before = why->len;
    struct log_target target;
    bool ok;

    buf_printf(why, "%s%s: ", place, row->name);
    ok = log_target_parse(&target, text, why);
    if (ok)
        buf_truncate(why, before);
    return ok;
}

/* Is a text of this type one that it may be? */
static bool
check_text(const struct option_row *row, const char *place, const char *text, struct buf *why)
{
    switch (row->type) {
    case OPTION_POLICY:
        return check_policy(row, place, text, why);
    case OPTION_LOG_FORMAT:
        return check_log_format(row, place, text, why);
    case OPTION_LOG_TARGET:
        return check_log_target(row, place, text, why);
    default:
        return true;
    }
}

bool
option_set(struct options *options, const struct option_row *row, const char *place,
           const char *text, struct buf *why)
{
    void *field = field_of(options, row);
    char *copy;

    if (!note_place(options, row, place)) {
        buf_append_str(why, "out of memory");
        return false;
    }
    switch (row->type) {
    case OPTION_FLAG:
        if (parse_flag(text, field))
            return true;
        buf_printf(why, "%s%s: \"%s\" is not yes or no", place, row->name, text);
        return false;
    case OPTION_UINT:
        if (units_parse_uint(text, row->low, row->high, field))
            return true;
        if (row->high == UINT64_MAX)
            buf_printf(why, "%s%s: \"%s\" is not a whole number", place, row->name, text);
        else
            buf_printf(why, "%s%s: \"%s\" is not a number from %" PRIu64 " to %" PRIu64, place,
                       row->name, text, row->low, row->high);
        return false;
    case OPTION_UINT_AUTO:
        *(uint64_t *)field = 0;
        if (strcasecmp(text, "auto") == 0 || units_parse_uint(text, 0, row->high, field))
            return true;
        buf_printf(why, "%s%s: \"%s\" is not a number from 1 to %" PRIu64 " or auto", place,
                   row->name, text, row->high);
        return false;
    case OPTION_OCTAL:
        if (parse_octal(text, row->high, field))
            return true;
        buf_printf(why, "%s%s: \"%s\" is not an octal number up to %" PRIo64, place, row->name,
                   text, row->high);
        return false;
    case OPTION_BYTES: {
        uint64_t bytes;

        if (units_parse_bytes(text, &bytes) && bytes >= row->low &&
            (row->high == 0 || bytes <= row->high)) {
            *(uint64_t *)field = bytes;
            return true;
        }
        buf_printf(why, "%s%s: \"%s\" is not a size such as 64M", place, row->name, text);
        if (row->low > 1)
            buf_printf(why, ", of at least %" PRIu64 " bytes", row->low);
        if (row->high)
            buf_printf(why, "%s of at most %" PRIu64 " bytes", row->low > 1 ? " and" : "",
                       row->high);
        return false;
    }
    case OPTION_DURATION: {
        int64_t us;

        if (units_parse_duration(text, &us) && us >= (int64_t)row->low && us <= LONGEST_US) {
            *(int64_t *)field = us;
            return true;
        }
        buf_printf(why, "%s%s: \"%s\" is not a time such as 500ms, 30s or 5m, of at most 365d",
                   place, row->name, text);
        return false;
    }
    case OPTION_RATE:
    case OPTION_RATE_BYTES:
        if (rate_parse(text, row->type == OPTION_RATE_BYTES, field))
            return true;
        buf_printf(why, "%s%s: \"%s\" is not a rate per second such as %s, or 0", place, row->name,
                   text, row->type == OPTION_RATE ? "100 or 100:250" : "1M or 1M:20M");
        return false;
    case OPTION_CHOICE:
        if (units_parse_word(text, row->argument, field))
            return true;
        explain_choice(row, place, text, why);
        return false;
    case OPTION_POLICY:
    case OPTION_STRING:
    case OPTION_LOG_FORMAT:
    case OPTION_LOG_TARGET:
        if (!check_text(row, place, text, why))
            return false;
        copy = strdup(text);
        if (!copy)
            break;
        free(*(char **)field);
        *(char **)field = copy;
        return true;
    case OPTION_LIST:
        if (list_add(field, place, text))
            return true;
        break;
    }
    buf_append_str(why, "out of memory");
    return false;
}
