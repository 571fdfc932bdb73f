/* Values of the tier: what verifies, and what does not. */
#define UNIT_STARTS_NO_THREAD
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tier/tier_value.h"

#define URL "http://origin.test/page"

static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};

/* Under the first of these keys. */
static struct tier_key
key_of(uint64_t terms, struct span url, struct span variant)
{
    struct tier_naming naming;

    ck_assert(tier_naming_make(&naming, keys.keys[0]));
    return tier_key_of(&naming, terms, url, variant);
}
static const struct peer_keys others = {1, {{"b key of sixteen bytes", 22}}};
static const struct peer_keys both = {
    2, {{"b key of sixteen bytes", 22}, {"a key of sixteen bytes", 22}}};

static struct object *
make_object(size_t len)
{
    struct object *object = object_make(&(struct object_parts){.url = span_str(URL),
                                                               .fields = span_str("A: b\r\n"),
                                                               .tags = span_str("one two"),
                                                               .status = 200,
                                                               .inline_size = (uint32_t)len});

    ck_assert_ptr_nonnull(object);
    for (size_t i = 0; i < len; i++)
        ck_assert_int_eq(object_append(object, &(char){(char)('a' + i % 26)}, 1, UINT64_MAX), 0);
    object_complete(object, 7, 1000, object_lifetime_of(60000000));
    return object;
}

static void
make_value(struct buf *value, enum tier_kind kind, const struct tier_key *key, size_t len)
{
    struct object *object = make_object(len);
    struct disk_head head = {.position = 77, .status = 200, .lifetime = 60000};

    buf_init(value, 1 << 20);
    tier_value_begin(value, kind);
    tier_record_write(value, kind, &head, object, span_str("accept"));
    ck_assert(tier_value_end(value, &keys, key));
    object_release(&object);
}

START_TEST(a_record_comes_back)
{
    const struct tier_key key = key_of(1, span_str(URL), span_of(NULL, 0));
    struct disk_record record;
    struct span content, body;
    enum tier_kind kind;
    struct buf value;

    make_value(&value, TIER_RECORD, &key, 1000);
    ck_assert(tier_value_open(buf_span(&value), &keys, &key, &kind, &content));
    ck_assert_int_eq(kind, TIER_RECORD);
    ck_assert(tier_record_read(content, &record, &body));
    ck_assert(span_equal(record.url, span_str(URL)));
    ck_assert(span_equal(record.fields, span_str("A: b\r\n")));
    ck_assert(span_equal(record.tags, span_str("one two")));
    ck_assert_uint_eq(record.head.position, 77);
    ck_assert_uint_eq(body.len, 1000);
    ck_assert_int_eq(body.ptr[999], 'a' + 999 % 26);
    /* Each key of several is accepted. */
    ck_assert(tier_value_open(buf_span(&value), &both, &key, &kind, &content));
    buf_free(&value);

    make_value(&value, TIER_NAMES, &key, 1000);
    ck_assert(tier_value_open(buf_span(&value), &keys, &key, &kind, &content));
    ck_assert_int_eq(kind, TIER_NAMES);
    ck_assert(tier_record_read(content, &record, &body));
    ck_assert(span_equal(record.names, span_str("accept")));
    ck_assert_uint_eq(body.len, 0);
    ck_assert_uint_eq(record.fields.len, 0);
    buf_free(&value);
}
END_TEST

START_TEST(what_does_not_verify_is_refused)
{
    const struct tier_key key = key_of(1, span_str(URL), span_of(NULL, 0));
    const struct tier_key other = key_of(1, span_str(URL "2"), span_of(NULL, 0));
    struct span content;
    enum tier_kind kind;
    struct buf value;

    make_value(&value, TIER_RECORD, &key, 100);
    ck_assert(!tier_value_open(buf_span(&value), &others, &key, &kind, &content));
    ck_assert(tier_value_is_foreign(buf_span(&value), &others));
    ck_assert(!tier_value_is_foreign(buf_span(&value), &keys));
    ck_assert(!tier_value_is_foreign(buf_span(&value), &both));
    ck_assert(!tier_value_is_foreign(span_str("garbage"), &others));
    ck_assert(!tier_value_open(buf_span(&value), &keys, &other, &kind, &content));
    for (size_t len = 0; len < value.len; len++)
        ck_assert(!tier_value_open(span_of(value.data, len), &keys, &key, &kind, &content));
    for (size_t i = 0; i < value.len; i++) {
        value.data[i] = (char)(value.data[i] ^ 1 << i % 8);
        ck_assert(!tier_value_open(buf_span(&value), &keys, &key, &kind, &content));
        value.data[i] = (char)(value.data[i] ^ 1 << i % 8);
    }
    buf_append(&value, "x", 1);
    ck_assert(!tier_value_open(buf_span(&value), &keys, &key, &kind, &content));
    buf_free(&value);
}
END_TEST

START_TEST(keys_differ)
{
    const struct tier_key one = key_of(1, span_str("ab"), span_str("c"));
    const struct tier_key two = key_of(1, span_str("a"), span_str("bc"));
    const struct tier_key three = key_of(2, span_str("ab"), span_str("c"));

    ck_assert_uint_eq(strlen(one.text), TIER_KEY_LEN);
    ck_assert_str_ne(one.text, two.text);
    ck_assert_str_ne(one.text, three.text);
    ck_assert_str_eq(tier_key_of_journal().text, "sp00000000000000000000000000000000");
}
END_TEST

START_TEST(keys_are_made_from_what_the_daemons_share)
{
    const struct tier_key one = key_of(1, span_str(URL), span_of(NULL, 0));
    struct tier_naming naming;
    struct tier_key other;

    ck_assert(tier_naming_make(&naming, keys.keys[0]));
    ck_assert_str_eq(tier_key_of(&naming, 1, span_str(URL), span_of(NULL, 0)).text, one.text);
    ck_assert(tier_naming_make(&naming, span_str("another key of sixteen bytes")));
    other = tier_key_of(&naming, 1, span_str(URL), span_of(NULL, 0));
    ck_assert_uint_ne(other.words[0], one.words[0]);
    ck_assert_uint_ne(other.words[1], one.words[1]);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("tier_value");
    TCase *tests = tcase_create("values");

    tcase_add_test(tests, a_record_comes_back);
    tcase_add_test(tests, what_does_not_verify_is_refused);
    tcase_add_test(tests, keys_differ);
    tcase_add_test(tests, keys_are_made_from_what_the_daemons_share);
    suite_add_tcase(suite, tests);
    return suite;
}
