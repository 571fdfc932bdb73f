/* Several objects of one URL. */
#include "tests/unit/cache/pages.h"

static struct cache *cache;

static void
set_up(void)
{
    cache = pages_cache("lru", 100, 0, 4);
}

static void
tear_down(void)
{
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    cache_destroy(cache);
}

/* Stores a page of that many letters, fresh until 5000. */
static void
put(const char *url, const char *variant, size_t body)
{
    struct request request = {0};

    ck_assert_int_eq(
        request_lookup_variant(&request, cache, url, variant, 0, (struct cache_request){0}),
        CACHE_MISS);
    fill_head(request.found.fill, (int64_t)body, NULL);
    fill_letters(request.found.fill, body);
    ck_assert_int_eq(cache_fill_finish(request.found.fill, true, 1, 0, 5000), CACHE_STORED);
    cache_fill_free(request.found.fill);
    ck_assert_uint_eq(request_take(&request), WAITER_END);
    ck_assert(span_equal(object_variant(request.waiter.object), span_str(variant)));
    request_end(&request);
}

/* The length of the object of a hit; -1 for another answer. */
static int
length_of(const char *url, const char *variant)
{
    struct request request = {0};
    int length = -1;

    if (request_lookup_variant(&request, cache, url, variant, 0, (struct cache_request){0}) ==
        CACHE_HIT) {
        ck_assert(span_equal(object_url(request.found.object), span_str(url)));
        ck_assert(span_equal(object_variant(request.found.object), span_str(variant)));
        length = (int)object_length(request.found.object);
    } else if (request.found.fill) {
        fill_fail(request.found.fill);
        request_take(&request);
    }
    request_end(&request);
    return length;
}

START_TEST(keys_tell_variants_apart)
{
    struct cache_key plain = cache_key_of(span_str("u"));
    struct cache_key empty = cache_key_of_variant(span_str("u"), span_str(""));
    struct cache_key one = cache_key_of_variant(span_str("u"), span_str("h"));
    struct cache_key two = cache_key_of_variant(span_str("u"), span_str("hgzip"));
    struct cache_key other = cache_key_of_variant(span_str("uh"), span_str(""));

    ck_assert_uint_eq(plain.key, empty.key);
    ck_assert_uint_eq(plain.key, hash64_bytes(span_str("u")));
    ck_assert_uint_ne(plain.key, one.key);
    ck_assert_uint_ne(one.key, two.key);
    ck_assert_uint_ne(one.key, other.key);
    ck_assert_uint_eq(plain.hash, one.hash);
    ck_assert_uint_eq(one.hash, two.hash);
}
END_TEST

START_TEST(variants_are_objects_of_their_own)
{
    put("u", "", 1);
    put("u", "h", 2);
    put("u", "hgzip", 3);
    put("uh", "", 4);
    put("t", "", 5);
    put("v", "", 6);
    ck_assert_int_eq(length_of("u", ""), 1);
    ck_assert_int_eq(length_of("u", "h"), 2);
    ck_assert_int_eq(length_of("u", "hgzip"), 3);
    ck_assert_int_eq(length_of("uh", ""), 4);
    ck_assert_int_eq(length_of("u", "hgzi"), -1);
    ck_assert_uint_eq(pages_stats(cache).pages, 6);
}
END_TEST

START_TEST(purges_and_counts_concern_all_variants)
{
    struct request busy = {0};

    for (unsigned soft = 0; soft < 2; soft++) {
        put("u", "", 1);
        put("u", "h", 2);
        put("u", "hgzip", 3);
        put("uh", "", 4);
        put("t", "x", 4);
        request_lookup_variant(&busy, cache, "u", "hbr", 0, (struct cache_request){0});
        ck_assert_uint_eq(cache_count(cache, span_str("u")), 3);
        ck_assert_uint_eq(cache_count_prefix(cache, span_str("u")), 4);
        if (soft)
            ck_assert_uint_eq(cache_expire(cache, span_str("u"), 0), 3);
        else
            ck_assert_uint_eq(cache_purge(cache, span_str("u")), 3);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).busy, 0);
        ck_assert_int_eq(length_of("u", ""), -1);
        ck_assert_int_eq(length_of("u", "h"), -1);
        ck_assert_int_eq(length_of("u", "hgzip"), -1);
        ck_assert_int_eq(length_of("uh", ""), 4);
        ck_assert_int_eq(length_of("t", "x"), 4);
        ck_assert_int_eq(fill_page(busy.found.fill, 1), CACHE_NOT_STORED);
        request_take(&busy);
        request_end(&busy);
        ck_assert_uint_eq(cache_count_prefix(cache, span_str("")), soft ? 5 : 2);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(variants_survive_another_configuration)
{
    static const unsigned shards[] = {1, 64, 7};

    put("u", "", 1);
    put("u", "h", 2);
    put("u", "hgzip", 3);
    for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
        ck_assert_int_eq(cache_configure(cache,
                                         &(struct cache_config){
                                             .policy = policy_spec_of(policy_find("lfu")),
                                             .capacity_pages = 1000,
                                             .shards = shards[i],
                                         }),
                         CACHE_OK);
        ck_assert(cache_is_valid(cache));
        ck_assert_int_eq(length_of("u", ""), 1);
        ck_assert_int_eq(length_of("u", "h"), 2);
        ck_assert_int_eq(length_of("u", "hgzip"), 3);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/variants");
    TCase *tc = tcase_create("variants");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, keys_tell_variants_apart);
    tcase_add_test(tc, variants_are_objects_of_their_own);
    tcase_add_test(tc, purges_and_counts_concern_all_variants);
    tcase_add_test(tc, variants_survive_another_configuration);
    suite_add_tcase(suite, tc);
    return suite;
}
