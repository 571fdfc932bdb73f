#include "proxy/tags.h"

#include "cache/object.h"
#include "http/field.h"

const char *const tags_default_fields[] = {"Surrogate-Key", "Cache-Tag", NULL};

/* The next word of *rest; false at the end. */
static bool
next_word(struct span *rest, struct span *word)
{
    const char *end = rest->ptr + rest->len, *from = rest->ptr, *to;

    while (from < end && (*from == ' ' || *from == '\t' || *from == ','))
        from++;
    for (to = from; to < end && *to != ' ' && *to != '\t' && *to != ',';)
        to++;
    *word = span_of(from, (size_t)(to - from));
    *rest = span_of(to, (size_t)(end - to));
    return word->len != 0;
}

static bool
has_word(struct span words, struct span wanted)
{
    struct span word;

    while (next_word(&words, &word))
        if (span_equal(word, wanted))
            return true;
    return false;
}

bool
tags_read(struct span lines, const char *const *fields, struct buf *out)
{
    struct span line, name, value, word;
    unsigned count = 0;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, fields))
            continue;
        while (next_word(&value, &word)) {
            if (has_word(buf_span(out), word))
                continue;
            if (count++ == OBJECT_MAX_TAGS || (out->len && !buf_append_char(out, ' ')) ||
                !buf_append(out, word.ptr, word.len) || out->len > OBJECT_MAX_TAG_BYTES)
                return false;
        }
    }
    return true;
}
