#include "trace/formats/json_line.h"

#include <math.h>
#include <stdio.h>

#define LONGEST_NAME 64u
#define LARGEST 1e18 /* a larger number is none of a log's, and would not fit */

bool
json_line_parse(struct json_line *json, struct span line)
{
    static const char zero[] = "\\u0000";

    json_line_free(json);
    json->number_count = 0;
    if (line.len == 0 || line.ptr[0] != '{' ||
        memmem(line.ptr, line.len, zero, sizeof(zero) - 1) != NULL)
        return false;
    json->root = cJSON_ParseWithLength(line.ptr, line.len);
    if (json->root && !cJSON_IsObject(json->root))
        json_line_free(json);
    return json->root != NULL;
}

void
json_line_free(struct json_line *json)
{
    cJSON_Delete(json->root);
    json->root = NULL;
}

void
json_line_end(struct line_reader *reader)
{
    json_line_free((void *)reader->state);
}

static const cJSON *
find(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    const char *dot = strchr(name, '.');
    char outer[LONGEST_NAME];

    if (item || !dot || (size_t)(dot - name) >= sizeof(outer))
        return item;
    memcpy(outer, name, (size_t)(dot - name));
    outer[dot - name] = '\0';
    item = cJSON_GetObjectItemCaseSensitive(object, outer);
    return cJSON_IsObject(item) ? find(item, dot + 1) : NULL;
}

static struct span
print_number(struct json_line *json, double number)
{
    char *text;
    int len;

    if (json->number_count == JSON_LINE_NUMBERS || !(fabs(number) <= LARGEST))
        return span_of("", 0);
    text = json->numbers[json->number_count++];
    len = snprintf(text, JSON_LINE_NUMBER_BYTES, number == floor(number) ? "%.0f" : "%.6f", number);
    return span_of(text, len > 0 ? (size_t)len : 0);
}

struct span
json_line_text(struct json_line *json, const char *name)
{
    const cJSON *item = find(json->root, name);

    if (cJSON_IsString(item) && item->valuestring)
        return span_str(item->valuestring);
    return cJSON_IsNumber(item) ? print_number(json, item->valuedouble) : span_of("", 0);
}

struct span
json_line_first(struct json_line *json, const char *const *names)
{
    struct span text = span_of("", 0);

    for (size_t i = 0; names[i] && text.len == 0; i++)
        text = json_line_text(json, names[i]);
    return text;
}

bool
json_line_has(const struct json_line *json, const char *name)
{
    return find(json->root, name) != NULL;
}
