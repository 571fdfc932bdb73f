/* A tier with every allocation of its callers failing in turn: what fails is answered. */
#include "tests/unit/torture.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tier/tier.h"
#include "tier/tier_journal.h"
#include "tier/tier_value.h"

#define URL "http://origin.test/page"

static const struct peer_keys keys = {1, {{"a key of sixteen bytes", 22}}};

static struct tier *
open_tier(void)
{
    static const struct tier_servers servers = {.count = 1, .of = {{.name = "a.test:1"}}};

    return tier_open(&(struct tier_config){
        .servers = &servers, .keys = &keys, .most = 1000, .poll_us = 1000, .skew_us = 1000});
}

static void
open_and_close(void *context)
{
    struct tier *tier = open_tier();

    (void)context;
    ck_assert(tier || torture_failed());
    tier_close(tier);
}

START_TEST(opening)
{
    ck_assert_uint_ge(torture_walk(open_and_close, NULL), 2);
}
END_TEST

static void
purge_and_offer(void *context)
{
    const struct source_purge purge = {CACHE_BY_TAG, false, span_str("red"), span_str("http://a/")};
    struct tier *tier = open_tier();
    struct source *source = tier_source(tier);
    struct source_waiter waiter = {.notify = NULL};
    struct source_marked before;

    if (!tier) {
        ck_assert(torture_failed());
        return;
    }
    before = source->ops->mark(source, &purge, NULL);
    (void)source->ops->mark(source, &purge, &before);
    /* It waits, also for what there was no memory for. */
    ck_assert(!source->ops->is_synced(source, &waiter));
    ck_assert(source->ops->forget_waiter(source, &waiter));
    (void)source->ops->offer(source, context, span_of(NULL, 0), 5);
    source->ops->outdate(source, span_str(URL), span_of(NULL, 0), true);
    tier_configure(tier, &keys, 9);
    tier_close(tier);
}

static struct object *
make_object(void)
{
    struct object *object = object_make(
        &(struct object_parts){.url = span_str(URL), .status = 200, .inline_size = 100});

    ck_assert_ptr_nonnull(object);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(object_append(object, "x", 1, UINT64_MAX), 0);
    object_complete(object, 7, 1000, object_lifetime_of(60000000));
    return object;
}

START_TEST(purging_and_offering)
{
    struct object *object = make_object();

    ck_assert_uint_ge(torture_walk(purge_and_offer, object), 6);
    object_release(&object);
}
END_TEST

static void
write_values(void *context)
{
    const struct tier_key key = tier_key_of_journal();
    struct tier_journal journal = {.number = 1};
    struct disk_head head = {.status = 200};
    struct buf value, entries;

    buf_init(&value, 100000);
    buf_init(&entries, 100000);
    tier_value_begin(&value, TIER_RECORD);
    tier_record_write(&value, TIER_RECORD, &head, context, span_of(NULL, 0));
    ck_assert(tier_value_end(&value, &keys, &key) || torture_failed());
    tier_entry_write(&entries, &(struct tier_entry){.name = span_str(URL)});
    tier_value_begin(&value, TIER_JOURNAL);
    tier_journal_write(&value, &journal, buf_span(&entries));
    ck_assert(tier_value_end(&value, &keys, &key) || torture_failed());
    buf_free(&value);
    buf_free(&entries);
}

START_TEST(writing_values)
{
    struct object *object = make_object();

    ck_assert_uint_ge(torture_walk(write_values, object), 3);
    object_release(&object);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("torture of a tier");
    TCase *tc = tcase_create("torture");

    tcase_add_test(tc, opening);
    tcase_add_test(tc, purging_and_offering);
    tcase_add_test(tc, writing_values);
    suite_add_tcase(suite, tc);
    return suite;
}
