/*
 * HAR 1.2 (HTTP Archive, as browsers' developer tools save it): one JSON text, log.entries[] with
 * startedDateTime, request.method, request.url, response.status and response.content.size. The
 * size is that of the content (unpacked); where it is not known, response.bodySize.
 *
 * Parsed by cJSON, as a tree: some four times the file in memory.
 */
#include <cjson/cJSON.h>

#include "trace/builder.h"
#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/input.h"

#define FILE_FIRST ((size_t)1 << 20U)
#define FILE_MOST ((size_t)1 << 30U)

/* '{', and the name "log" as the first member. */
static bool
sniff(struct span head)
{
    static const char blanks[] = " \t\r\n";
    static const char *const parts[] = {"{", "\"log\"", ":", "{"};
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t len = strlen(parts[i]);

        while (at < head.len && head.ptr[at] != '\0' && strchr(blanks, head.ptr[at]))
            at++;
        if (head.len - at < len || memcmp(head.ptr + at, parts[i], len) != 0)
            return false;
        at += len;
    }
    return true;
}

static const cJSON *
member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* A number that counts bytes: -1 where the archive says so, or nothing. */
static int64_t
bytes_of(const cJSON *number)
{
    if (!cJSON_IsNumber(number) || number->valuedouble < 0 || number->valuedouble > 9e15)
        return -1;
    return (int64_t)number->valuedouble;
}

static bool
take_entry(const cJSON *item, struct trace_entry *entry)
{
    const cJSON *request = member(item, "request");
    const cJSON *response = member(item, "response");
    const cJSON *url = member(request, "url");
    const cJSON *method = member(request, "method");
    const cJSON *status = member(response, "status");
    const cJSON *when = member(item, "startedDateTime");

    if (!cJSON_IsString(url) || !url->valuestring)
        return false;
    entry->url = span_str(url->valuestring);
    if (cJSON_IsString(method) && method->valuestring)
        entry->method = span_str(method->valuestring);
    if (cJSON_IsString(when) && when->valuestring &&
        !fields_iso_date(span_str(when->valuestring), &entry->time_us))
        entry->time_us = TRACE_TIME_UNKNOWN;
    /* Aborted and blocked requests have 0, or a number of the browser's own. */
    if (cJSON_IsNumber(status))
        entry->status = status->valuedouble >= 100 && status->valuedouble < 1000
                            ? (unsigned)status->valuedouble
                            : TRACE_STATUS_NONE;
    entry->size = bytes_of(member(member(response, "content"), "size"));
    if (entry->size < 0)
        entry->size = bytes_of(member(response, "bodySize"));
    return true;
}

static void
add_entries(const cJSON *entries, struct trace_builder *builder)
{
    const cJSON *item;
    uint64_t number = 0;

    cJSON_ArrayForEach(item, entries)
    {
        struct trace_entry entry = TRACE_ENTRY_EMPTY;

        entry.line = ++number;
        if (!take_entry(item, &entry))
            trace_add_bad(builder, number, span_str("(no request.url in this entry)"));
        else if (!trace_add(builder, &entry))
            return;
    }
}

static enum trace_error
read_archive(struct input *in, const struct trace_options *options, struct trace_builder *builder,
             char *why, size_t why_size)
{
    struct span text = input_peek(in, FILE_FIRST);
    const char *end = NULL;
    const cJSON *entries;
    cJSON *root;
    bool good;

    (void)options;
    for (size_t need = FILE_FIRST; text.len >= need && need < FILE_MOST; need *= 2)
        text = input_peek(in, need * 2);
    if (text.len >= FILE_MOST) {
        snprintf(why, why_size, "%s: larger than a HAR file may be (1 GiB)", input_name(in));
        return TRACE_NOT_A_TRACE;
    }
    root = cJSON_ParseWithLengthOpts(text.ptr, text.len, &end, false);
    entries = member(member(root, "log"), "entries");
    if (!root)
        snprintf(why, why_size, "%s: not JSON, or cut short, at byte %zu; expected a HAR file",
                 input_name(in), end ? (size_t)(end - text.ptr) : 0);
    else if (!cJSON_IsArray(entries))
        snprintf(why, why_size, "%s: no array log.entries in it; expected a HAR file",
                 input_name(in));
    else
        add_entries(entries, builder);
    good = cJSON_IsArray(entries);
    cJSON_Delete(root);
    return good ? TRACE_OK : TRACE_NOT_A_TRACE;
}

const struct trace_format trace_format_har = {
    .name = "har",
    .summary = "a HAR file of a browser's developer tools",
    .unit = "entry",
    .is_text = true,
    .sniff = sniff,
    .read = read_archive,
};
