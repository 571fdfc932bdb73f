#include "server/peers/peer_item.h"

#include <string.h>

#include "base/word_list.h"
#include "proxy/invalidation.h"

static const char kinds[] = {[CONTROL_PURGE_URL] = 'u',
                             [CONTROL_PURGE_PREFIX] = 'p',
                             [CONTROL_PURGE_ALL] = 'a',
                             [CONTROL_PURGE_TAG] = 't'};

static void
write_name(struct span name, struct buf *out)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];

        if (c > ' ' && c < 127 && c != '%' && c != ',') {
            buf_append_char(out, (char)c);
            continue;
        }
        buf_append_char(out, '%');
        buf_append_char(out, digits[c >> 4]);
        buf_append_char(out, digits[c & 15]);
    }
}

void
peer_item_write(const struct peer_item *item, struct buf *out)
{
    buf_append_char(out, item->written ? 'w' : kinds[item->kind]);
    buf_append_char(out, item->soft ? 's' : 'h');
    write_name(item->name, out);
    if (item->scope.len) {
        buf_append_char(out, ',');
        write_name(item->scope, out);
    }
    buf_append_char(out, ' ');
}

static int
digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *found = c ? strchr(digits, c) : NULL;

    return found ? (int)(found - digits) : -1;
}

/* Appends the name. */
static bool
read_name(struct span text, struct buf *bytes)
{
    for (size_t i = 0; i < text.len; i++) {
        int high, low;

        if (text.ptr[i] != '%') {
            buf_append_char(bytes, text.ptr[i]);
            continue;
        }
        if (text.len - i < 3)
            return false;
        high = digit_of(text.ptr[i + 1]);
        low = digit_of(text.ptr[i + 2]);
        if (high < 0 || low < 0)
            return false;
        buf_append_char(bytes, (char)(high << 4 | low));
        i += 2;
    }
    return !buf_failed(bytes);
}

static bool
read_kind(char letter, enum control_purge *kind)
{
    for (unsigned i = 0; i < sizeof(kinds); i++)
        if (kinds[i] == letter) {
            *kind = (enum control_purge)i;
            return true;
        }
    return false;
}

bool
peer_item_read(struct span *text, struct peer_item *item, struct buf *bytes)
{
    const char *end = text->len ? memchr(text->ptr, ' ', text->len) : NULL, *comma;
    struct span word, scope = {0};
    size_t name_len;

    if (!end || end - text->ptr < 2)
        return false;
    word = span_of(text->ptr, (size_t)(end - text->ptr));
    *text = span_of(end + 1, text->len - word.len - 1);
    item->written = word.ptr[0] == 'w';
    if (!read_kind(item->written ? kinds[CONTROL_PURGE_URL] : word.ptr[0], &item->kind) ||
        (word.ptr[1] != 's' && word.ptr[1] != 'h'))
        return false;
    item->soft = word.ptr[1] == 's';
    word = span_of(word.ptr + 2, word.len - 2);
    comma = memchr(word.ptr, ',', word.len);
    if (comma) {
        scope = span_of(comma + 1, (size_t)(word.ptr + word.len - comma - 1));
        word.len = (size_t)(comma - word.ptr);
    }
    buf_reset(bytes);
    if (!read_name(word, bytes))
        return false;
    name_len = bytes->len;
    if (!read_name(scope, bytes))
        return false;
    item->name = span_of(bytes->data, name_len);
    item->scope = bytes->len > name_len ? span_of(bytes->data + name_len, bytes->len - name_len)
                                        : span_of(NULL, 0);
    return true;
}

#define MOST_TAGS ((size_t)1 << 20) /* bytes of those of a URL */
#define MOST_TOLD ((size_t)1024)    /* and of the items for them */

static void
tell_tags(const struct peer_item *item, const struct buf *tags, struct buf *told)
{
    static const struct peer_item all = {.kind = CONTROL_PURGE_ALL};
    const size_t before = told->len;
    struct span words = buf_span(tags), tag;

    while (words_next(&words, &tag) && told->len <= MOST_TOLD)
        peer_item_write(
            &(struct peer_item){.kind = CONTROL_PURGE_TAG, .name = tag, .scope = item->scope},
            told);
    if (!buf_failed(tags) && told->len <= MOST_TOLD)
        return;
    buf_truncate(told, before);
    if (item->scope.len && before + item->scope.len <= MOST_TOLD) {
        peer_item_write(&(struct peer_item){.kind = CONTROL_PURGE_PREFIX, .name = item->scope},
                        told);
    } else {
        buf_reset(told);
        peer_item_write(&all, told);
    }
}

static void
purge_written(struct proxy *proxy, const struct peer_item *item, struct buf *told)
{
    struct buf tags;

    buf_init(&tags, MOST_TAGS);
    invalidation_purge_url(proxy, item->name, item->scope, &tags);
    if (told)
        tell_tags(item, &tags, told);
    buf_free(&tags);
}

void
peer_item_purge(struct proxy *proxy, const struct peer_item *item, struct buf *told)
{
    if (item->written)
        purge_written(proxy, item, told);
    else if (item->scope.len)
        invalidation_purge_tag(proxy, item->name, item->scope, NULL);
    else if (item->soft)
        (void)control_expire(proxy, item->kind, item->name);
    else
        (void)control_purge(proxy, item->kind, item->name);
}
