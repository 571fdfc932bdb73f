#include "fetch/continued.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "http/field.h"

struct continued {
    unsigned status;
    int64_t content_length;
    XXH3_state_t *given_hash; /* owned: of what the consumer has, */
    uint64_t given;           /* and its bytes */
    uint64_t again;           /* those that it had when the present response began */
    XXH3_state_t *seen_hash;  /* owned: of what has come again, */
    uint64_t seen;            /* and its bytes */
    size_t validator_len;
    char validator[]; /* a field line */
};

/* The line that has the same value for the same bytes only, or almost. Empty: there is none. */
static struct span
find_validator(struct span lines)
{
    struct span rest = lines, line, name, value, found = {0};

    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        if (http_name_is(name, "ETag"))
            return value.len && value.ptr[0] == '"' ? value : span_of(NULL, 0);
        if (http_name_is(name, "Last-Modified"))
            found = value;
    }
    return found;
}

struct continued *
continued_create(const struct fetch_head *head)
{
    const struct span validator = find_validator(head->headers);
    struct continued *c;

    if (!validator.len || head->status != 200)
        return NULL;
    c = calloc(1, sizeof(*c) + validator.len);
    if (!c)
        return NULL;
    c->status = head->status;
    c->content_length = head->content_length;
    c->validator_len = validator.len;
    memcpy(c->validator, validator.ptr, validator.len);
    c->given_hash = XXH3_createState();
    c->seen_hash = XXH3_createState();
    if (!c->given_hash || !c->seen_hash)
        continued_free(&c);
    else
        XXH3_128bits_reset(c->given_hash);
    return c;
}

void
continued_free(struct continued **continued)
{
    struct continued *c = *continued;

    *continued = NULL;
    if (!c)
        return;
    XXH3_freeState(c->given_hash);
    XXH3_freeState(c->seen_hash);
    free(c);
}

void
continued_add(struct continued *c, const void *bytes, size_t len)
{
    XXH3_128bits_update(c->given_hash, bytes, len);
    c->given += len;
}

bool
continued_begin(struct continued *c, const struct fetch_head *head)
{
    c->seen = 0;
    c->again = c->given;
    XXH3_128bits_reset(c->seen_hash);
    return head->status == c->status && head->content_length == c->content_length &&
           span_equal(find_validator(head->headers), span_of(c->validator, c->validator_len));
}

bool
continued_is_through(const struct continued *c)
{
    return c->seen == c->again;
}

bool
continued_skip(struct continued *c, const void **bytes, size_t *len)
{
    const uint64_t missing = c->again - c->seen;
    const size_t skipped = *len < missing ? *len : (size_t)missing;

    if (!missing)
        return true;
    XXH3_128bits_update(c->seen_hash, *bytes, skipped);
    c->seen += skipped;
    *bytes = (const char *)*bytes + skipped;
    *len -= skipped;
    return c->seen < c->again ||
           XXH128_isEqual(XXH3_128bits_digest(c->seen_hash), XXH3_128bits_digest(c->given_hash));
}
