#include "server/http/http_peer_response.h"

#include "base/word_list.h"
#include "http/known_fields.h"
#include "rules/rules.h"
#include "rules/tag_rules.h"
#include "server/http/http_exchange.h"

/* Without rules the lines have all tags that paths do not give. */
bool
http_peer_restores(const struct http_exchange *x, unsigned known)
{
    return known & HTTP_KNOWN_ORIGIN_CONTROL ||
           (x->config->table && object_tags(x->exchange.object).len);
}

/* Have the lines and the URL all of the object's tags? */
static bool
have_tags(const struct http_exchange *x, struct span lines, const char *const *fields)
{
    const struct object *object = x->exchange.object;
    struct buf tags;
    bool all;

    buf_init(&tags, OBJECT_MAX_TAG_BYTES);
    all = tags_read(lines, fields, &tags) &&
          tag_rules_apply(&x->config->tag_rules, object_url(object), &tags) &&
          words_count(buf_span(&tags)) >= words_count(object_tags(object));
    buf_free(&tags);
    return all;
}

void
http_peer_restore(const struct http_exchange *x, struct buf *lines)
{
    const char *const *fields = x->config->rules.tag_fields;
    const struct object *object = x->exchange.object;
    const struct span stored = object_fields(object), tags = object_tags(object);

    if (!rules_restore_response(stored, lines))
        buf_append(lines, stored.ptr, stored.len);
    fields = fields && *fields ? fields : tags_default_fields;
    if (tags.len && !have_tags(x, stored, fields))
        buf_printf(lines, "%s: %.*s\r\n", fields[0], (int)tags.len, tags.ptr);
}

void
http_peer_write(struct http_writer *lines, const struct http_exchange *x, enum peer_outcome outcome)
{
    char text[PEER_RESPONSE_SIZE];
    struct span value;

    if (!x->peer)
        return;
    value = peer_response_write(&x->config->peers.group.keys, &x->peer_code, outcome, text);
    if (value.len)
        http_write_field(lines, PEER_FIELD, value);
}
