#include "client/explain_lines.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"

/* The next line, split into name and value; NULL at the end. */
static char *
next_line(char **text, char **value)
{
    for (char *line; (line = strsep(text, "\n"));) {
        char *colon = strstr(line, ": ");

        if (!colon)
            continue;
        *colon = '\0';
        *value = colon + 2;
        return line;
    }
    return NULL;
}

void
explain_print(char *text)
{
    char *value;

    for (char *name; (name = next_line(&text, &value));) {
        printable_make(value, strlen(value));
        printf("%-*s %s\n", EXPLAIN_WIDTH, name, value);
    }
}

void
explain_json(struct json *json, const char *key, char *text)
{
    char *value;

    json_open_array(json, key);
    for (char *name; (name = next_line(&text, &value));) {
        json_open_object(json, NULL);
        json_cstring(json, name, value);
        json_close_object(json);
    }
    json_close_array(json);
}
