/* Several objects of one URL. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

static struct cache *cache;

static void
set_up(void)
{
    cache = pages_cache("lru", 100, 0, 4);
}

static void
tear_down(void)
{
    pages_end(cache);
}

/* Stores a page of that many letters, fresh until 5000. */
static void
put(const char *url, const char *variant, size_t body)
{
    struct requester request = {0};

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
    struct requester request = {0};
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
    struct requester busy = {0};

    for (unsigned soft = 0; soft < 2; soft++) {
        put("u", "", 1);
        put("u", "h", 2);
        put("u", "hgzip", 3);
        put("uh", "", 4);
        put("t", "x", 4);
        request_lookup_variant(&busy, cache, "u", "hbr", 0, (struct cache_request){0});
        ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str("u")), 3);
        ck_assert_uint_eq(count_by(cache, CACHE_BY_PREFIX, span_str("u")), 4);
        if (soft)
            ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("u"), 0), 3);
        else
            ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str("u")), 3);
        ck_assert(cache_is_valid(cache));
        ck_assert_int_eq(length_of("u", ""), -1);
        ck_assert_int_eq(length_of("u", "h"), -1);
        ck_assert_int_eq(length_of("u", "hgzip"), -1);
        ck_assert_int_eq(length_of("uh", ""), 4);
        ck_assert_int_eq(length_of("t", "x"), 4);
        ck_assert_int_eq(fill_page(busy.found.fill, 1), CACHE_NOT_STORED);
        request_take(&busy);
        request_end(&busy);
        ck_assert_uint_eq(count_by(cache, CACHE_BY_PREFIX, span_str("")), soft ? 5 : 2);
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

/* ---- responses that vary --------------------------------------------------------------------- */

#define NAMES "accept-encoding"

static enum cache_answer
look_up(struct requester *request, const char *variant, int64_t now_us)
{
    return request_lookup_variant(request, cache, "u", variant, now_us, (struct cache_request){0});
}

static bool
vary(struct requester *request, const char *names, const char *variant)
{
    bool done = cache_fill_vary(request->found.fill, span_str(names), span_str(variant));

    ck_assert(cache_is_valid(cache));
    return done;
}

/* Fills with that many letters; fresh until 5000. */
static void
finish(struct requester *request, size_t body, enum cache_outcome outcome)
{
    fill_head(request->found.fill, (int64_t)body, NULL);
    fill_letters(request->found.fill, body);
    ck_assert_int_eq(cache_fill_finish(request->found.fill, true, 1, 0, 5000), outcome);
    cache_fill_free(request->found.fill);
    ck_assert_uint_eq(request_take(request), WAITER_END);
    ck_assert_uint_eq(object_length(request->waiter.object), body);
    request_end(request);
    ck_assert(cache_is_valid(cache));
}

/* A fetch for u whose response is that of a variant. */
static void
put_varying(const char *variant, size_t body)
{
    struct requester request = {0};

    ck_assert_int_eq(look_up(&request, "", 0), CACHE_MISS);
    ck_assert(vary(&request, NAMES, variant));
    finish(&request, body, CACHE_STORED);
}

/* Is there a record for u, with these names? */
static bool
is_recorded(const char *names)
{
    struct requester request = {0};
    bool found = look_up(&request, "", 0) == CACHE_VARIES;

    if (found) {
        ck_assert_ptr_null(request.found.fill);
        ck_assert_ptr_null(request.waiter.object);
        ck_assert(span_equal(object_url(request.found.object), span_str("u")));
        found = span_equal(object_fields(request.found.object), span_str(names));
    } else if (request.found.fill) {
        fill_fail(request.found.fill);
        request_take(&request);
    }
    request_end(&request);
    ck_assert_uint_eq(pages_stats(cache).varied, found);
    return found;
}

START_TEST(a_response_that_varies_moves_and_leaves_a_record)
{
    struct requester leader = {0}, late = {0}, streaming = {.waiter.streams = true}, same = {0};
    struct requester other = {0};

    ck_assert_int_eq(look_up(&leader, "", 0), CACHE_MISS);
    ck_assert_int_eq(look_up(&late, "", 0), CACHE_BUSY);
    ck_assert_int_eq(look_up(&streaming, "", 0), CACHE_BUSY);
    ck_assert(vary(&leader, NAMES, "hgzip"));
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&streaming), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&leader), 0);
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert(is_recorded(NAMES));
    ck_assert_int_eq(look_up(&same, "hgzip", 0), CACHE_BUSY);
    ck_assert_ptr_eq(same.waiter.fill, leader.found.fill);
    ck_assert_int_eq(look_up(&other, "hbr", 0), CACHE_MISS);
    finish(&leader, 5, CACHE_STORED);
    finish(&other, 6, CACHE_STORED);
    ck_assert_uint_eq(request_take(&same), WAITER_END);
    ck_assert(span_equal(object_variant(same.waiter.object), span_str("hgzip")));
    ck_assert_int_eq(length_of("u", "hgzip"), 5);
    ck_assert_int_eq(length_of("u", "hbr"), 6);
    ck_assert(is_recorded(NAMES));
    request_end(&late);
    request_end(&streaming);
    request_end(&same);
    /* The mark of a private response of one variant. */
    ck_assert_int_eq(look_up(&leader, "hfr", 0), CACHE_MISS);
    ck_assert(vary(&leader, NAMES, "hfr"));
    cache_fill_restrict(leader.found.fill, FILL_VALIDATE, 5000);
    finish(&leader, 1, CACHE_STORED);
    ck_assert_int_eq(length_of("u", "hfr"), 1);
    ck_assert(is_recorded(NAMES));
}
END_TEST

START_TEST(a_known_variant_stays_where_it_is)
{
    struct requester leader = {0}, late = {0};

    put_varying("hgzip", 1);
    /* Expired, or for the first time. */
    for (unsigned i = 0; i < 2; i++) {
        const char *variant = i ? "hgzip" : "hbr";

        ck_assert_int_eq(look_up(&leader, variant, 6000), i ? CACHE_STALE : CACHE_MISS);
        ck_assert_int_eq(look_up(&late, variant, 6000), CACHE_BUSY);
        ck_assert(vary(&leader, NAMES, variant));
        ck_assert_uint_eq(request_take(&late), 0);
        finish(&leader, 2, i ? CACHE_REPLACED : CACHE_STORED);
        ck_assert_uint_eq(request_take(&late), WAITER_END);
        request_end(&late);
        ck_assert(is_recorded(NAMES));
    }
    /* Though its record was dropped. */
    ck_assert_int_eq(look_up(&leader, "hbr", 6000), CACHE_STALE);
    put("other", "", 1);
    purge_by(cache, CACHE_BY_URL, span_str("u"));
    ck_assert_uint_eq(pages_stats(cache).varied, 0);
    finish(&leader, 2, CACHE_NOT_STORED);
}
END_TEST

START_TEST(a_fill_finds_the_record_of_its_url)
{
    struct requester leader = {0};
    struct object *record;

    ck_assert_int_eq(look_up(&leader, "", 0), CACHE_MISS);
    ck_assert_ptr_null(cache_fill_names(leader.found.fill));
    ck_assert(vary(&leader, NAMES, "hgzip"));
    record = cache_fill_names(leader.found.fill);
    ck_assert(span_equal(object_fields(record), span_str(NAMES)));
    finish(&leader, 1, CACHE_STORED);
    ck_assert_int_eq(look_up(&leader, "hbr", 0), CACHE_MISS);
    purge_by(cache, CACHE_BY_URL, span_str("u"));
    ck_assert_ptr_null(cache_fill_names(leader.found.fill));
    /* It is the caller's. */
    ck_assert(span_equal(object_fields(record), span_str(NAMES)));
    object_release(&record);
    finish(&leader, 1, CACHE_NOT_STORED);
}
END_TEST

START_TEST(other_names_replace_the_record)
{
    struct requester leader = {0}, late = {0}, old = {0};

    put_varying("hgzip", 1);
    ck_assert_int_eq(look_up(&leader, "hbr", 0), CACHE_MISS);
    ck_assert_int_eq(look_up(&late, "hbr", 0), CACHE_BUSY);
    ck_assert(vary(&leader, "accept-language", "hfr"));
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    request_end(&late);
    ck_assert(is_recorded("accept-language"));
    ck_assert_int_eq(look_up(&late, "hfr", 0), CACHE_BUSY);
    finish(&leader, 2, CACHE_STORED);
    request_take(&late);
    request_end(&late);
    ck_assert_int_eq(length_of("u", "hfr"), 2);
    ck_assert_int_eq(length_of("u", "hbr"), -1);
    /* The variant is the same, the names are not: a waiter may want another one. */
    ck_assert_int_eq(look_up(&leader, "hde", 0), CACHE_MISS);
    ck_assert_int_eq(look_up(&late, "hde", 0), CACHE_BUSY);
    ck_assert(vary(&leader, "cookie", "hde"));
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    ck_assert(is_recorded("cookie"));
    ck_assert_int_eq(look_up(&old, "hde", 0), CACHE_BUSY);
    finish(&leader, 3, CACHE_STORED);
    request_take(&old);
    request_end(&old);
    request_end(&late);
}
END_TEST

START_TEST(a_response_without_names_takes_the_place_of_the_record)
{
    struct requester leader = {0}, late = {0};

    for (unsigned successor = 0; successor < 2; successor++) {
        put_varying("hgzip", 1);
        ck_assert_int_eq(look_up(&leader, successor ? "hgzip" : "hbr", 6000),
                         successor ? CACHE_STALE : CACHE_MISS);
        ck_assert(vary(&leader, "", ""));
        ck_assert_uint_eq(pages_stats(cache).varied, 0);
        ck_assert_int_eq(look_up(&late, "", 0), CACHE_BUSY);
        finish(&leader, 2, CACHE_STORED);
        request_take(&late);
        request_end(&late);
        ck_assert_int_eq(length_of("u", ""), 2);
        ck_assert_int_eq(length_of("u", "hgzip"), 1); /* which no request looks for */
        cache_purge_all(cache);
    }
    /* At the base already. */
    ck_assert_int_eq(look_up(&leader, "", 0), CACHE_MISS);
    ck_assert_int_eq(look_up(&late, "", 0), CACHE_BUSY);
    ck_assert(vary(&leader, "", ""));
    ck_assert_uint_eq(request_take(&late), 0);
    finish(&leader, 2, CACHE_STORED);
    request_take(&late);
    request_end(&late);
}
END_TEST

/* ---- what is at the two places --------------------------------------------------------------- */

enum there { NOTHING, FRESH, EXPIRED, SUCCEEDED, BUSY, MARKER, RECORD, THERE };

/* Puts something at (u, variant), with a fill in *other if that has one. */
static void
place_there(enum there there, const char *variant, struct requester *other)
{
    *other = (struct requester){0};
    if (there == FRESH || there == EXPIRED || there == SUCCEEDED) {
        ck_assert_int_eq(look_up(other, variant, 0), CACHE_MISS);
        fill_head(other->found.fill, 9, NULL);
        fill_letters(other->found.fill, 9);
        cache_fill_finish(other->found.fill, true, 1, 0, there == FRESH ? INT64_MAX : 3000);
        cache_fill_free(other->found.fill);
        request_take(other);
        request_end(other);
        other->found.fill = NULL;
    }
    if (there == BUSY)
        ck_assert_int_eq(look_up(other, variant, 4000), CACHE_MISS);
    if (there == SUCCEEDED)
        ck_assert_int_eq(look_up(other, variant, 4000), CACHE_STALE);
    if (there == MARKER || there == RECORD) {
        ck_assert_int_eq(look_up(other, variant, 4000), CACHE_MISS);
        if (there == MARKER)
            cache_fill_restrict(other->found.fill, FILL_PRIVATE, INT64_MAX);
        else
            ck_assert(cache_fill_vary(other->found.fill, span_str("x"), span_str("somewhere")));
        fill_fail(other->found.fill);
        request_take(other);
        request_end(other);
        other->found.fill = NULL;
    }
    ck_assert(cache_is_valid(cache));
}

/* The fill comes from a place that is neither of the two. */
static void
check_places(enum there at_base, enum there at_target)
{
    struct requester leader = {0}, base, target, found = {0};
    bool joins = at_target == NOTHING || at_target == FRESH || at_target == EXPIRED;
    enum cache_answer answer;

    ck_assert_int_eq(look_up(&leader, "hold", 4000), CACHE_MISS);
    place_there(at_base, "", &base);
    place_there(at_target, "hnew", &target);
    ck_assert(vary(&leader, NAMES, "hnew"));
    ck_assert_int_eq(length_of("u", "hold"), -1);
    ck_assert_uint_eq(pages_stats(cache).varied, at_base != BUSY);
    ck_assert_int_eq(leader.found.fill->link.le_prev != NULL, joins);
    answer = look_up(&found, "", 4000);
    if (at_base == BUSY) {
        ck_assert_int_eq(answer, CACHE_BUSY);
        ck_assert(cache_leave(&found.waiter));
    } else {
        ck_assert_int_eq(answer, CACHE_VARIES);
        /* Those that a later fill has set stay. */
        ck_assert(span_equal(object_fields(found.found.object),
                             span_str(at_base == RECORD ? "x" : NAMES)));
    }
    request_end(&found);
    fill_head(leader.found.fill, 2, NULL);
    fill_letters(leader.found.fill, 2);
    ck_assert_int_eq(cache_fill_finish(leader.found.fill, true, 1, 4000, INT64_MAX),
                     at_target == MARKER ? CACHE_NOT_STORED
                     : at_target == FRESH || at_target == EXPIRED || at_target == SUCCEEDED
                         ? CACHE_REPLACED
                         : CACHE_STORED);
    cache_fill_free(leader.found.fill);
    request_take(&leader);
    request_end(&leader);
    ck_assert(cache_is_valid(cache));
    if (at_target != MARKER)
        ck_assert_int_eq(length_of("u", "hnew"), 2);
    for (unsigned i = 0; i < 2; i++) {
        struct requester *other = i ? &target : &base;

        if (!other->found.fill)
            continue;
        fill_page(other->found.fill, 4);
        ck_assert(request_take(other) & WAITER_END);
        request_end(other);
        ck_assert(cache_is_valid(cache));
    }
    cache_purge_all(cache);
}

START_TEST(whatever_is_at_the_two_places)
{
    for (enum there base = 0; base < THERE; base++)
        for (enum there target = 0; target < THERE; target++)
            if (target != RECORD) /* is at the empty variant alone */
                check_places(base, target);
}
END_TEST

/* The fill is the successor of a page at the base, which has expired or was evicted. */
START_TEST(the_successor_of_a_page_at_the_base_varies)
{
    struct requester leader = {0};

    for (unsigned evicted = 0; evicted < 2; evicted++) {
        put("u", "", 9);
        ck_assert_int_eq(look_up(&leader, "", 6000), CACHE_STALE);
        if (evicted)
            ck_assert_int_eq(cache_configure(cache, &(struct cache_config){.shards = 1}), CACHE_OK);
        ck_assert(vary(&leader, NAMES, "hgzip"));
        ck_assert_uint_eq(pages_stats(cache).pages, 0);
        ck_assert_ptr_nonnull(leader.found.fill->previous);
        ck_assert(is_recorded(NAMES));
        finish(&leader, 2, evicted ? CACHE_NOT_STORED : CACHE_STORED);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(what_is_not_stored_does_not_vary)
{
    struct requester request = {0};
    static char variant[OBJECT_MAX_VARIANT + 2];

    request_lookup_variant(&request, cache, "u", "", 0, (struct cache_request){.pass = true});
    ck_assert(vary(&request, NAMES, "hgzip"));
    finish(&request, 1, CACHE_NOT_STORED);
    ck_assert_int_eq(look_up(&request, "", 0), CACHE_MISS);
    purge_by(cache, CACHE_BY_URL, span_str("u"));
    ck_assert(vary(&request, NAMES, "hgzip"));
    finish(&request, 1, CACHE_NOT_STORED);
    ck_assert(!is_recorded(NAMES));
    /* A private response stays so. */
    ck_assert_int_eq(look_up(&request, "", 0), CACHE_MISS);
    cache_fill_restrict(request.found.fill, FILL_PRIVATE, 1000);
    ck_assert(vary(&request, NAMES, "hgzip"));
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    ck_assert_uint_eq(pages_stats(cache).varied, 0);
    fill_fail(request.found.fill);
    request_take(&request);
    request_end(&request);
    cache_purge_all(cache);
    /* Too long. */
    memset(variant, 'x', OBJECT_MAX_VARIANT + 1);
    ck_assert_int_eq(look_up(&request, "", 0), CACHE_MISS);
    ck_assert(!vary(&request, NAMES, variant));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    finish(&request, 1, CACHE_NOT_STORED);
    ck_assert(!is_recorded(NAMES));
}
END_TEST

START_TEST(a_variant_is_validated_and_refreshed)
{
    const struct object_head head = {.status = 200, .fields = span_str("new")};
    struct requester request = {0};
    enum cache_outcome outcome;

    put_varying("hgzip", 7);
    ck_assert_int_eq(look_up(&request, "hgzip", 6000), CACHE_STALE);
    ck_assert(vary(&request, NAMES, "hgzip"));
    ck_assert_int_eq(
        cache_fill_refresh(request.found.fill, &head, true, 1, 6000, INT64_MAX, &outcome), 0);
    ck_assert_int_eq(outcome, CACHE_REPLACED);
    cache_fill_free(request.found.fill);
    request_take(&request);
    ck_assert(span_equal(object_variant(request.waiter.object), span_str("hgzip")));
    request_end(&request);
    ck_assert_int_eq(length_of("u", "hgzip"), 7);
}
END_TEST

/* ---- bounds, purges -------------------------------------------------------------------------- */

START_TEST(the_oldest_of_too_many_variants_is_evicted)
{
    enum { MANY = CACHE_MAX_VARIANTS + 20 };
    struct cache *many = pages_cache("lru", 1000, 0, 1), *before = cache;
    char variant[16];

    cache = many;
    put("u", "", 1000); /* does not count */
    for (int i = 0; i < MANY; i++) {
        snprintf(variant, sizeof(variant), "h%d", (i * 37) % 256);
        put("u", variant, (size_t)i);
        put("v", variant, 1);
        if (i >= 63)
            purge_by(cache, CACHE_BY_URL, span_str("v"));
    }
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str("u")), CACHE_MAX_VARIANTS + 1);
    ck_assert_uint_eq(pages_stats(cache).evictions, 20);
    for (int i = 0; i < MANY; i++) {
        snprintf(variant, sizeof(variant), "h%d", (i * 37) % 256);
        ck_assert_int_eq(length_of("u", variant), i < 20 ? -1 : i);
    }
    ck_assert_int_eq(length_of("u", ""), 1000);
    cache = before;
    cache_destroy(many);
}
END_TEST

/* Makes the record of a URL, and stores no page if there is no policy. */
static void
record(const char *url)
{
    struct requester request = {0};

    request_lookup_variant(&request, cache, url, "", 0, (struct cache_request){0});
    ck_assert(cache_fill_vary(request.found.fill, span_str(NAMES), span_str("hx")));
    fill_page(request.found.fill, 1);
    request_take(&request);
    request_end(&request);
}

START_TEST(records_are_bounded_and_pages_have_theirs)
{
    struct cache *before = cache;

    for (unsigned stored = 0; stored < 2; stored++) {
        cache = stored ? pages_cache("lru", 2 * CACHE_MAX_MARKS, 0, 1) : pages_cache(NULL, 0, 0, 1);
        for (int i = 0; i < (int)CACHE_MAX_MARKS + 100; i++)
            record(pages_url(i));
        ck_assert_uint_eq(pages_stats(cache).varied, CACHE_MAX_MARKS + (stored ? 100 : 0));
        ck_assert_uint_eq(pages_stats(cache).passed, 0);
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
    cache = before;
}
END_TEST

START_TEST(purges_drop_records_and_configurations_keep_them)
{
    for (unsigned how = 0; how < 5; how++) {
        put_varying("hgzip", 1);
        ck_assert_int_eq(cache_configure(cache,
                                         &(struct cache_config){
                                             .policy = policy_spec_of(policy_find("lru")),
                                             .capacity_pages = 1000,
                                             .shards = 1 + how,
                                         }),
                         CACHE_OK);
        ck_assert(is_recorded(NAMES));
        if (how == 0)
            ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str("u")), 1);
        else if (how == 1)
            ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("u")), 1);
        else if (how == 2)
            ck_assert_uint_eq(cache_purge_all(cache), 1);
        else if (how == 3)
            ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("u"), 0), 1);
        else
            ck_assert_uint_eq(expire_by(cache, CACHE_BY_PREFIX, span_str(""), 0), 1);
        ck_assert_uint_eq(pages_stats(cache).varied, 0);
        ck_assert_uint_eq(pages_stats(cache).pages, how >= 3);
        cache_purge_all(cache);
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
    tcase_add_test(tc, a_response_that_varies_moves_and_leaves_a_record);
    tcase_add_test(tc, a_known_variant_stays_where_it_is);
    tcase_add_test(tc, a_fill_finds_the_record_of_its_url);
    tcase_add_test(tc, other_names_replace_the_record);
    tcase_add_test(tc, a_response_without_names_takes_the_place_of_the_record);
    tcase_add_test(tc, whatever_is_at_the_two_places);
    tcase_add_test(tc, the_successor_of_a_page_at_the_base_varies);
    tcase_add_test(tc, what_is_not_stored_does_not_vary);
    tcase_add_test(tc, a_variant_is_validated_and_refreshed);
    tcase_add_test(tc, the_oldest_of_too_many_variants_is_evicted);
    tcase_add_test(tc, records_are_bounded_and_pages_have_theirs);
    tcase_add_test(tc, purges_drop_records_and_configurations_keep_them);
    suite_add_tcase(suite, tc);
    return suite;
}
