#include "server/users/user_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/keyed_hash.h"
#include "http/basic_credentials.h"
#include "server/users/user_hash.h"

#define MOST_ERRORS 20u /* that are named */

/* Of the text, in bytes from its begin. */
struct user {
    uint32_t name;
    uint32_t hash; /* ended by a zero byte */
    uint32_t line;
    uint32_t name_len;
};

struct user_file {
    char *text;         /* the names, and the hashes, each ended by a zero byte */
    struct user *users; /* in the order of their names */
    size_t count;
};

/* What user_file_read() works with. */
struct reading {
    struct user_file *file;
    const char *path;
    unsigned line;
    unsigned errors;
    struct buf *why;
};

static struct span
name_of(const struct user_file *file, const struct user *user)
{
    return span_of(file->text + user->name, user->name_len);
}

static void
refuse(struct reading *reading, unsigned line, const char *sentence)
{
    if (reading->errors++ < MOST_ERRORS) {
        buf_end_line(reading->why);
        buf_printf(reading->why, "%s:%u: %s", reading->path, line, sentence);
    } else if (reading->errors == MOST_ERRORS + 1) {
        buf_append_str(reading->why, "\nand further errors");
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *
find_fault(const char *line, size_t len)
{
    const char *colon = memchr(line, ':', len);

    if (memchr(line, '\0', len))
        return "a zero byte";
    if (!colon)
        return "a line is NAME:HASH, and this one has no colon";
    if (colon == line)
        return "the name is missing";
    if (colon - line > HTTP_BASIC_NAME_MAX)
        return "the name is too long";
    if (!http_basic_is_name(span_of(line, (size_t)(colon - line))))
        return "the name is not UTF-8 without control characters";
    return user_hash_find_fault(colon + 1);
}

/* A line of the text, which is ended by a zero byte. */
static void
add_line(struct reading *reading, char *line, size_t len)
{
    struct user_file *file = reading->file;
    const char *fault;

    reading->line++;
    if (len && line[len - 1] == '\r')
        line[--len] = '\0';
    if (len == 0 || *line == '#')
        return;
    fault = find_fault(line, len);
    if (fault) {
        refuse(reading, reading->line, fault);
        return;
    }
    file->users[file->count].name = (uint32_t)(line - file->text);
    file->users[file->count].name_len = (uint32_t)strcspn(line, ":");
    file->users[file->count].hash =
        file->users[file->count].name + file->users[file->count].name_len + 1;
    file->users[file->count].line = reading->line;
    file->count++;
}

static void
add_lines(struct reading *reading, size_t len)
{
    char *text = reading->file->text;

    while (len) {
        char *end = memchr(text, '\n', len);
        size_t line = end ? (size_t)(end - text) : len;

        text[line] = '\0';
        add_line(reading, text, line);
        text += line + (end != NULL);
        len -= line + (end != NULL);
    }
}

/* ---- the whole file -------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b, void *context)
{
    const struct user *one = a, *other = b;
    int order = span_compare(name_of(context, one), name_of(context, other));

    return order ? order : (one->line > other->line) - (one->line < other->line);
}

static void
sort(struct reading *reading)
{
    struct user_file *file = reading->file;
    char sentence[64];

    qsort_r(file->users, file->count, sizeof(*file->users), compare, file);
    for (size_t i = 1; i < file->count; i++) {
        const struct user *before = &file->users[i - 1], *user = &file->users[i];

        if (!span_equal(name_of(file, before), name_of(file, user)))
            continue;
        snprintf(sentence, sizeof(sentence), "line %u has a user of the same name", before->line);
        refuse(reading, user->line, sentence);
    }
}

static size_t
count_lines(struct span text)
{
    size_t lines = 1;

    for (size_t i = 0; i < text.len; i++)
        lines += text.ptr[i] == '\n';
    return lines;
}

static struct user_file *
make(struct span text)
{
    struct user_file *file = calloc(1, sizeof(*file));

    if (!file)
        return NULL;
    file->text = malloc(text.len + 1);
    file->users = calloc(count_lines(text), sizeof(*file->users));
    if (!file->text || !file->users) {
        user_file_free(file);
        return NULL;
    }
    *span_put(file->text, text) = '\0';
    return file;
}

static bool
read_all(struct reading *reading, struct span text)
{
    add_lines(reading, text.len);
    sort(reading);
    if (reading->errors == 0 && reading->file->count == 0)
        refuse(reading, reading->line ? reading->line : 1, "the file has no user");
    return reading->errors == 0;
}

struct user_file *
user_file_read(struct span text, const char *path, struct buf *why)
{
    struct reading reading = {.path = path, .why = why};

    if (text.len > USER_FILE_MAX) {
        buf_end_line(why);
        buf_printf(why, "%s: it is larger than %zu bytes", path, USER_FILE_MAX);
        return NULL;
    }
    reading.file = make(text);
    if (!reading.file) {
        buf_end_line(why);
        buf_printf(why, "%s: %s", path, strerror(ENOMEM));
        return NULL;
    }
    if (read_all(&reading, text))
        return reading.file;
    user_file_free(reading.file);
    return NULL;
}

void
user_file_free(struct user_file *file)
{
    if (!file)
        return;
    free(file->text);
    free(file->users);
    free(file);
}

/* ---- look-ups -------------------------------------------------------------------------------- */

size_t
user_file_count(const struct user_file *file)
{
    return file->count;
}

const char *
user_file_find(const struct user_file *file, struct span name)
{
    size_t low = 0, high = file->count;

    while (low < high) {
        const struct user *user = &file->users[low + (high - low) / 2];
        int order = span_compare(name, name_of(file, user));

        if (order == 0)
            return file->text + user->hash;
        if (order < 0)
            high = (size_t)(user - file->users);
        else
            low = (size_t)(user - file->users) + 1;
    }
    return NULL;
}

const char *
user_file_pick(const struct user_file *file, struct span name)
{
    const struct span first = span_str(file->text + file->users[0].hash);
    const struct hash_key key = {{hash64_bytes(first), first.len}};

    return file->text + file->users[keyed_hash(&key, name) % file->count].hash;
}

bool
user_file_has_same(const struct user_file *a, const struct user_file *b, struct span name)
{
    const char *one = a ? user_file_find(a, name) : NULL;
    const char *other = b ? user_file_find(b, name) : NULL;

    return one && other && strcmp(one, other) == 0;
}
