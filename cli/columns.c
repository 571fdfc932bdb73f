#include "cli/columns.h"

#include <stdarg.h>
#include <string.h>

#include "base/printable.h"

enum { LONGEST_CELL = 512 };

static void
put(struct columns *columns, const char *text)
{
    const struct column *column = &columns->list[columns->at];

    if (!column->hidden)
        fprintf(columns->out, "%s%*s", columns->at ? " " : "", column->width, text);
    columns->at++;
}

static void
put_format(struct columns *columns, const char *format, va_list args)
{
    char text[LONGEST_CELL];

    vsnprintf(text, sizeof(text), format, args);
    printable_make(text, strlen(text));
    put(columns, text);
}

void
columns_head(struct columns *columns)
{
    while (columns->at < columns->count)
        put(columns, columns->list[columns->at].name);
    columns_end(columns);
}

void
columns_cell(struct columns *columns, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put_format(columns, format, args);
    va_end(args);
}

void
columns_end(struct columns *columns)
{
    putc('\n', columns->out);
    columns->at = 0;
}

void
columns_pair(struct columns *columns, const char *label, const char *format, ...)
{
    va_list args;

    put(columns, label);
    va_start(args, format);
    put_format(columns, format, args);
    va_end(args);
    columns_end(columns);
}
