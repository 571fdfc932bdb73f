#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/log_pattern.h"
#include "base/wrap.h"
#include "server/config/options_table.h"
#include "server/config/sections.h"
#include "server/limits/rate.h"

void
options_print_help(FILE *out)
{
    fputs("Usage: sunproxyd [OPTION]...\n"
          "A caching web proxy that speaks Sun RPC (program 0x23451111, versions 1 and 2).\n"
          "Runs in the foreground until SIGTERM or SIGINT. With --http it serves HTTP too.\n",
          out);
    for (const struct option_row *row = option_rows; row->help; row++) {
        struct buf text;
        int at = 0;

        if (!row->name) {
            fprintf(out, "\n%s:\n", row->help);
            continue;
        }
        at += row->letter ? fprintf(out, "  -%c, ", row->letter) : fprintf(out, "      ");
        at += fprintf(out, "--%s", row->name);
        if (row->argument)
            at += fprintf(out, " %s", row->argument);
        buf_init(&text, 1024);
        buf_append_str(&text, row->help);
        if (row->start && row->type != OPTION_FLAG && !strstr(row->help, "(default") &&
            strcmp(row->start, "0") != 0)
            buf_printf(&text, " (default: %s)", row->start);
        /* Two spaces at least. */
        wrap_print(out, buf_str(&text), at > 32 ? 34 : at, 34);
        buf_free(&text);
    }
    fputs("\nExit status: 0 stopped by a signal, 64 wrong usage, 69 port or socket in use,\n"
          "71 a system call failed, 73 no access log or request database, 78 wrong\n"
          "configuration.\n",
          out);
}

void
options_print_log_format(FILE *out)
{
    for (const struct log_directive *row = log_directives; row->name; row++)
        fprintf(out, "%%%s\t%s\n", row->name, row->help);
    for (const struct log_named_pattern *row = log_named_patterns; row->name; row++)
        fprintf(out, "%s\t%s\n", row->name, row->text);
}

/* Prints text as comments of at most 79 columns. */
static void
print_comment(FILE *out, const char *text)
{
    const size_t width = 77;

    while (*text) {
        size_t len = strlen(text);

        if (len > width) {
            len = width;
            while (len > 0 && text[len] != ' ')
                len--;
            if (len == 0)
                len = strcspn(text, " ");
        }
        fprintf(out, "# %.*s\n", (int)len, text);
        text += len;
        while (*text == ' ')
            text++;
    }
}

void
options_print_defaults(FILE *out)
{
    fputs(
        "# Configuration of sunproxyd(8), read with --config FILE.\n"
        "#\n"
        "# Every option is listed as a comment, with its default or, if it has none, with the form\n"
        "# of its value. To change one, remove its #. A # after a blank begins a comment; a value\n"
        "# in double quotes is taken as it is. To check the file:\n"
        "#\n"
        "#     sunproxyd --config FILE --check-config\n",
        out);
    for (const struct option_row *row = option_rows; row->help; row++) {
        if (row->when == OPTION_HERE)
            continue;
        if (!row->name) {
            /* A heading of nothing but options of the command line is left out. */
            if (row[1].name && row[1].when != OPTION_HERE)
                fprintf(out, "\n\n# ---- %s ----\n", row->help);
            continue;
        }
        fputc('\n', out);
        print_comment(out, row->help);
        if (row->type == OPTION_CHOICE)
            fprintf(out, "# One of %s.\n", row->argument);
        fprintf(out, "#%s = %s\n", row->name, row->start ? row->start : row->argument);
    }
    fputs("\n\n# ---- Sections ----\n\n"
          "# A section ends with the next one, or with its file: options stand before the first.\n"
          "# \"include = PATH\" reads another file there, or the files *.conf of a folder.\n",
          out);
    sections_print_defaults(out);
}

/* Would it be read as another value than this without quotes (read_value() of options.c)? */
static bool
needs_quotes(const char *text)
{
    size_t len = strlen(text);

    if (len == 0)
        return false;
    if (*text == '"' || *text == '#' || isspace((unsigned char)*text) ||
        isspace((unsigned char)text[len - 1]))
        return true;
    for (const char *at = text + 1; (at = strchr(at, '#')); at++)
        if (isspace((unsigned char)at[-1]))
            return true;
    return false;
}

static void
print_text(FILE *out, const char *text)
{
    bool quotes = needs_quotes(text);

    if (quotes)
        fputc('"', out);
    for (; *text; text++) {
        if (quotes && *text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputs(quotes ? "\"\n" : "\n", out);
}

static void
print_choice(FILE *out, const char *words, uint64_t value)
{
    while (value-- > 0)
        words = strchr(words, '|') + 1;
    fprintf(out, "%.*s\n", (int)strcspn(words, "|"), words);
}

static void
print_duration(FILE *out, int64_t us)
{
    if (us % 1000000 == 0)
        fprintf(out, "%" PRId64 "s\n", us / 1000000);
    else
        fprintf(out, "%" PRId64 "us\n", us);
}

void
options_print_config(const struct options *options, FILE *out)
{
    for (const struct option_row *row = option_rows; row->help; row++) {
        const void *field = (const char *)options + row->offset;
        char rate[RATE_TEXT];

        if (!row->name) {
            fprintf(out, "%s# %s\n", row == option_rows ? "" : "\n", row->help);
            continue;
        }
        if (row->when == OPTION_HERE)
            continue;
        if (row->type == OPTION_LIST) {
            const struct option_list *list = field;

            for (size_t item = 0; item < list->count; item++) {
                fprintf(out, "%s = ", row->name);
                print_text(out, list->items[item]);
            }
            continue;
        }
        if (option_is_text(row->type) && !*(char *const *)field)
            continue;
        fprintf(out, "%s = ", row->name);
        switch (row->type) {
        case OPTION_FLAG:
            fprintf(out, "%s\n", *(const bool *)field ? "yes" : "no");
            break;
        case OPTION_UINT_AUTO:
            if (*(const uint64_t *)field == 0) {
                fputs("auto\n", out);
                break;
            }
        /* fall through */
        case OPTION_UINT:
        case OPTION_BYTES:
            fprintf(out, "%" PRIu64 "\n", *(const uint64_t *)field);
            break;
        case OPTION_OCTAL:
            fprintf(out, "%04" PRIo64 "\n", *(const uint64_t *)field);
            break;
        case OPTION_DURATION:
            print_duration(out, *(const int64_t *)field);
            break;
        case OPTION_RATE:
        case OPTION_RATE_BYTES:
            fprintf(out, "%s\n", rate_format(field, rate, sizeof(rate)));
            break;
        case OPTION_CHOICE:
            print_choice(out, row->argument, *(const uint64_t *)field);
            break;
        case OPTION_STRING:
        case OPTION_POLICY:
        case OPTION_LOG_FORMAT:
        case OPTION_LOG_TARGET:
            print_text(out, *(char *const *)field);
            break;
        case OPTION_LIST:
            break;
        }
    }
}
