#include "rules/name_list.h"

#include <stdlib.h>

#include "base/hash.h"
#include "http/field.h"
#include "http/octet.h"

#define HOST_MAX_LEN 253u /* RFC 1035 section 2.3.4 */
#define USER_MAX_LEN 255u
#define SLOTS_LEAST 16u

static struct span
name_at(const struct name_list *list, size_t at)
{
    return span_of(list->names + at + 2, (unsigned char)list->names[at]);
}

/* The slot of a name, or the empty one where it belongs. */
static uint32_t *
find(const struct name_list *list, struct span name)
{
    size_t i = hash64_bytes(name) & list->mask;

    while (list->slots[i] && !span_equal(name_at(list, list->slots[i] - 1), name))
        i = (i + 1) & list->mask;
    return &list->slots[i];
}

static bool
is_host(struct span name)
{
    if (name.len == 0 || name.len > HOST_MAX_LEN || name.ptr[0] == '.' ||
        name.ptr[name.len - 1] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!http_octet_is(name.ptr[i], HTTP_OCTET_HOST) ||
            (name.ptr[i] == '.' && name.ptr[i - 1] == '.'))
            return false;
    return true;
}

/* What the line has: a name, or nothing. False: something else. */
static bool
read_host(struct span line, struct span *name, bool *alone)
{
    const char *comment = line.len ? memchr(line.ptr, '#', line.len) : NULL;

    *alone = false;
    *name = http_trim(comment ? span_of(line.ptr, (size_t)(comment - line.ptr)) : line);
    if (name->len == 0)
        return true;
    *alone = span_take_char(name, '=');
    if (!*alone && span_take_char(name, '*') && (name->len == 0 || name->ptr[0] != '.'))
        return false;
    if (!*alone)
        (void)span_take_char(name, '.');
    if (name->len && name->ptr[name->len - 1] == '.')
        name->len--;
    return is_host(*name);
}

/* The same. */
static bool
read_user(struct span line, struct span *name, bool *alone)
{
    *alone = true;
    *name = http_trim(line);
    if (name->len && name->ptr[0] == '#')
        name->len = 0;
    for (size_t i = 0; i < name->len; i++)
        if ((unsigned char)name->ptr[i] < 0x20 || name->ptr[i] == 0x7f || name->ptr[i] == ':')
            return false;
    return name->len <= USER_MAX_LEN;
}

static void
add(struct name_list *list, enum name_list_kind kind, struct span name, bool alone)
{
    const bool lower = kind == NAME_LIST_HOSTS;
    char *at = list->names + list->len;
    uint32_t *slot;

    at[0] = (char)(unsigned char)name.len;
    at[1] = alone ? '=' : '.';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        at[2 + i] = lower && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    slot = find(list, span_of(at + 2, name.len));
    if (*slot) {
        /* Of both the wider one. */
        if (!alone)
            list->names[*slot] = '.';
        return;
    }
    *slot = (uint32_t)list->len + 1;
    list->len += name.len + 2;
    list->count++;
}

/* Memory for as many names as there may be in the content. */
static bool
allocate(struct name_list *list, struct span content)
{
    size_t lines = 1, slots = SLOTS_LEAST;

    for (size_t i = 0; i < content.len; i++)
        lines += content.ptr[i] == '\n';
    while (slots < 2 * lines)
        slots *= 2;
    *list = (struct name_list){.mask = slots - 1};
    if (content.len > UINT32_MAX / 2)
        return false;
    list->names = malloc(content.len + 2 * lines);
    list->slots = calloc(slots, sizeof(*list->slots));
    return list->names && list->slots;
}

static bool
fail(struct name_list *list, struct buf *why, const char *path, size_t line, const char *what)
{
    buf_printf(why, "%s:%zu: %s", path, line, what);
    name_list_free(list);
    return false;
}

bool
name_list_init(struct name_list *list, enum name_list_kind kind, struct span content,
               const char *path, struct buf *why)
{
    const uint64_t digest = hash64_bytes(content);
    struct span line, name;
    size_t number = 0;
    bool alone;

    if (!allocate(list, content))
        return fail(list, why, path, 0, "there is no memory for the list");
    while (content.len) {
        const char *end = memchr(content.ptr, '\n', content.len);

        number++;
        if (!end)
            return fail(list, why, path, number, "the last line has no end: the file may be cut");
        line = span_of(content.ptr, (size_t)(end - content.ptr));
        content = span_of(end + 1, content.len - line.len - 1);
        if (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        if (!(kind == NAME_LIST_HOSTS ? read_host : read_user)(line, &name, &alone))
            return fail(list, why, path, number,
                        kind == NAME_LIST_HOSTS ? "is not the name of a host"
                                                : "is not the name of a user");
        if (name.len)
            add(list, kind, name, alone);
    }
    list->digest = digest;
    return list->count != 0 || fail(list, why, path, number, "the list has no name");
}

bool
name_list_has_host(const struct name_list *list, struct span host)
{
    struct span name = host;

    while (list->slots && name.len) {
        uint32_t at = *find(list, name);
        const char *dot;

        if (at && (name.len == host.len || list->names[at] == '.'))
            return true;
        dot = memchr(name.ptr, '.', name.len);
        if (!dot)
            break;
        name = span_of(dot + 1, name.len - (size_t)(dot + 1 - name.ptr));
    }
    return false;
}

bool
name_list_has(const struct name_list *list, struct span name)
{
    return list->slots && *find(list, name) != 0;
}

void
name_list_free(struct name_list *list)
{
    free(list->names);
    free(list->slots);
    *list = (struct name_list){0};
}
