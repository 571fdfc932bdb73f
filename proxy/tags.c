#include "proxy/tags.h"

#include "cache/object.h"
#include "cache/tag_index.h"
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

bool
tags_append(struct buf *tags, struct span tag)
{
    if (tags_have(buf_span(tags), tag))
        return true;
    return tags_count(buf_span(tags)) < OBJECT_MAX_TAGS &&
           tags->len + (tags->len != 0) + tag.len <= OBJECT_MAX_TAG_BYTES &&
           (!tags->len || buf_append_char(tags, ' ')) && buf_append(tags, tag.ptr, tag.len);
}

bool
tags_read(struct span lines, const char *const *fields, struct buf *out)
{
    struct span line, name, value, word;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, fields))
            continue;
        while (next_word(&value, &word))
            if (!tags_append(out, word))
                return false;
    }
    return true;
}
