#include "study/report/report.h"

#include <stdarg.h>

void
report_table_open(struct json *j, const char *name, ...)
{
    const char *column;
    va_list columns;

    json_open_object(j, name);
    json_open_array(j, "columns");
    va_start(columns, name);
    while ((column = va_arg(columns, const char *)))
        json_cstring(j, NULL, column);
    va_end(columns);
    json_close_array(j);
    json_open_array(j, "rows");
}

void
report_table_close(struct json *j)
{
    json_close_array(j);
    json_close_object(j);
}
