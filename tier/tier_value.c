#include "tier/tier_value.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>

#define MAGIC 0x31545053u /* "SPT1" */
#define SEED 0            /* of the record's checksums: the code is over all of it */

struct value_head {
    uint32_t magic, kind;
    uint64_t key; /* which one the code is under: id_of() */
    uint8_t code[PEER_CODE];
};

_Static_assert(sizeof(struct tier_naming) % PEER_CODE == 0, "of whole codes");
_Static_assert(sizeof(struct value_head) == TIER_VALUE_HEAD, "no padding");

/* ---- keys ------------------------------------------------------------------------------------ */

static struct tier_key
name_key(uint64_t high, uint64_t low)
{
    struct tier_key key = {.words = {high, low}};

    snprintf(key.text, sizeof(key.text), "sp%016llx%016llx", (unsigned long long)high,
             (unsigned long long)low);
    return key;
}

bool
tier_naming_make(struct tier_naming *naming, struct span secret)
{
    static const char label[] = "sunproxy: the names of a shared tier";
    char text[sizeof(label)];
    unsigned len = 0;

    memcpy(text, label, sizeof(label));
    for (size_t done = 0; done < sizeof(*naming); done += PEER_CODE) {
        uint8_t code[EVP_MAX_MD_SIZE];

        /* In place of the zero byte. */
        text[sizeof(label) - 1] = (char)('1' + done / PEER_CODE);
        if (!HMAC(EVP_sha256(), secret.ptr, (int)secret.len, (const unsigned char *)text,
                  sizeof(text), code, &len) ||
            len != PEER_CODE)
            return false;
        memcpy((char *)naming + done, code, PEER_CODE);
    }
    return true;
}

struct tier_key
tier_key_of(const struct tier_naming *naming, uint64_t terms, struct span url, struct span variant)
{
    uint64_t words[2];

    for (unsigned i = 0; i < 2; i++) {
        const struct hash_key *keys = naming->words[i];
        const uint64_t parts[] = {terms, keyed_hash(&keys[0], url), keyed_hash(&keys[1], variant)};

        words[i] = keyed_hash(&keys[2], span_of((const char *)parts, sizeof(parts)));
    }
    return name_key(words[0], words[1]);
}

struct tier_key
tier_key_of_journal(void)
{
    return name_key(0, 0);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static bool
compute(struct span secret, const struct tier_key *key, uint32_t kind, struct span content,
        uint8_t code[PEER_CODE])
{
    uint8_t inner[EVP_MAX_MD_SIZE];
    char text[sizeof(uint32_t) + TIER_KEY_LEN + PEER_CODE];
    unsigned len = 0;

    /* Of a code over the content, with kind and key, so that the content is not copied. */
    if (!HMAC(EVP_sha256(), secret.ptr, (int)secret.len, (const unsigned char *)content.ptr,
              content.len, inner, &len) ||
        len != PEER_CODE)
        return false;
    memcpy(text, &kind, sizeof(kind));
    memcpy(text + sizeof(kind), key->text, TIER_KEY_LEN);
    memcpy(text + sizeof(kind) + TIER_KEY_LEN, inner, PEER_CODE);
    return HMAC(EVP_sha256(), secret.ptr, (int)secret.len, (const unsigned char *)text,
                sizeof(text), code, &len) &&
           len == PEER_CODE;
}

/* Names a key without telling it. */
static uint64_t
id_of(struct span secret)
{
    static const char text[] = "sunproxy: the key of a shared tier";
    uint8_t code[EVP_MAX_MD_SIZE] = {0};
    unsigned len = 0;
    uint64_t id;

    (void)HMAC(EVP_sha256(), secret.ptr, (int)secret.len, (const unsigned char *)text,
               sizeof(text), code, &len);
    memcpy(&id, code, sizeof(id));
    return id;
}

void
tier_value_begin(struct buf *value, enum tier_kind kind)
{
    const struct value_head head = {.magic = MAGIC, .kind = kind};

    buf_reset(value);
    buf_append(value, &head, sizeof(head));
}

bool
tier_value_end(struct buf *value, const struct peer_keys *keys, const struct tier_key *key)
{
    struct value_head head;

    if (buf_failed(value) || !keys->count)
        return false;
    memcpy(&head, value->data, sizeof(head));
    head.key = id_of(keys->keys[0]);
    if (!compute(keys->keys[0], key, head.kind,
                 span_of(value->data + sizeof(head), value->len - sizeof(head)), head.code))
        return false;
    memcpy(value->data, &head, sizeof(head));
    return true;
}

bool
tier_value_open(struct span value, const struct peer_keys *keys, const struct tier_key *key,
                enum tier_kind *kind, struct span *content)
{
    struct value_head head;
    uint8_t code[PEER_CODE];

    if (value.len < sizeof(head))
        return false;
    memcpy(&head, value.ptr, sizeof(head));
    if (head.magic != MAGIC || head.kind < TIER_RECORD || head.kind > TIER_JOURNAL)
        return false;
    *kind = (enum tier_kind)head.kind;
    *content = span_of(value.ptr + sizeof(head), value.len - sizeof(head));
    for (unsigned i = 0; i < keys->count; i++)
        if (head.key == id_of(keys->keys[i]) &&
            compute(keys->keys[i], key, head.kind, *content, code) &&
            CRYPTO_memcmp(code, head.code, sizeof(code)) == 0)
            return true;
    return false;
}

bool
tier_value_is_foreign(struct span value, const struct peer_keys *keys)
{
    struct value_head head;

    if (value.len < sizeof(head))
        return false;
    memcpy(&head, value.ptr, sizeof(head));
    for (unsigned i = 0; i < keys->count; i++)
        if (head.key == id_of(keys->keys[i]))
            return false;
    return head.magic == MAGIC;
}

/* ---- records --------------------------------------------------------------------------------- */

static void
append_body(struct buf *value, const struct object *object)
{
    struct object_place place = {0};
    struct span run;

    while ((run = object_read(object, &place)).len)
        buf_append(value, run.ptr, run.len);
}

void
tier_record_write(struct buf *value, enum tier_kind kind, struct disk_head *head,
                  const struct object *object, struct span names)
{
    struct disk_record texts = {.url = object_url(object), .names = names};
    const size_t at = value->len;
    size_t len;

    head->body_len = 0;
    if (kind == TIER_RECORD) {
        texts.variant = object_variant(object);
        texts.fields = object_fields(object);
        texts.tags = object_tags(object);
        head->body_len = object_length(object);
    }
    head->url_len = (uint32_t)texts.url.len;
    head->variant_len = (uint32_t)texts.variant.len;
    head->names_len = (uint32_t)texts.names.len;
    head->fields_len = (uint32_t)texts.fields.len;
    head->tags_len = (uint32_t)texts.tags.len;
    len = disk_head_len(head);
    if (!buf_reserve(value, len + (size_t)head->body_len + 1))
        return;
    disk_head_write(value->data + at, SEED, head, &texts, object);
    value->len = at + len;
    if (kind == TIER_RECORD)
        append_body(value, object);
}

bool
tier_record_read(struct span content, struct disk_record *record, struct span *body)
{
    if (!disk_head_read(content.ptr, content.len, SEED, record) ||
        record->head.body_len != content.len - record->head.head_len)
        return false;
    *body = span_of(content.ptr + record->head.head_len, (size_t)record->head.body_len);
    for (size_t part = 0, done = 0; done < body->len; part++, done += DISK_PART) {
        const size_t left = body->len - done;

        if (!disk_part_verify(record, SEED, part, body->ptr + done,
                              left < DISK_PART ? left : DISK_PART))
            return false;
    }
    return true;
}
