/* Epochs: what an invalidation outdates, and how seldom it outdates anything else. */
#include "cache/epochs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "tests/unit/unit.h"

static struct epochs *epochs;

static void
set_up(void)
{
    epochs = calloc(1, sizeof(*epochs));
    ck_assert_ptr_nonnull(epochs);
    epochs_init(epochs);
}

static void
tear_down(void)
{
    epochs_destroy(epochs);
    free(epochs);
}

static uint64_t
leave(const char *name)
{
    uint64_t epoch = 0;

    epochs_leave(epochs, hash64_bytes(span_str(name)), &epoch);
    return epoch;
}

static uint64_t
leave_prefix(const char *prefix)
{
    epochs_leave_prefix(epochs, span_str(prefix));
    return epochs_present(epochs);
}

static bool
outdate(struct epochs *e, uint64_t epoch, uint64_t own, struct span url, struct span tags)
{
    return epochs_outdate_url(e, epoch, own, url) || epochs_outdate_tags(e, epoch, own, tags);
}

static bool
outdated(uint64_t epoch, const char *url, const char *tags)
{
    return outdate(epochs, epoch, 0, span_str(url), span_str(tags));
}

START_TEST(a_later_epoch_of_the_url_or_of_a_tag_outdates)
{
    uint64_t before = epochs_present(epochs), after;

    ck_assert_uint_gt(before, 0);
    ck_assert(!outdated(before, "http://h/a", "x y"));
    leave("http://h/a");
    leave("y");
    after = epochs_present(epochs);
    ck_assert_uint_eq(after, before + 2);
    ck_assert(outdated(before, "http://h/a", ""));
    ck_assert(outdated(before, "http://h/b", "x y"));
    ck_assert(!outdated(before, "http://h/b", "x"));
    ck_assert(!outdated(after, "http://h/a", "x y"));
}
END_TEST

START_TEST(prefixes_and_all)
{
    uint64_t before = epochs_present(epochs);

    leave_prefix("http://h/a");
    ck_assert(outdated(before, "http://h/a", "") && outdated(before, "http://h/abc", "x"));
    ck_assert(!outdated(before, "http://h/b", "http://h/a"));
    ck_assert(!outdated(before, "http://h/", ""));
    before = epochs_present(epochs);
    ck_assert(!outdated(before, "http://h/abc", ""));
    leave_prefix("http://h/a");
    ck_assert(outdated(before, "http://h/abc", ""));
    leave_prefix("");
    ck_assert(outdated(before, "ftp://other/", ""));
    ck_assert(!outdated(epochs_present(epochs), "ftp://other/", ""));
}
END_TEST

/* Each prefix concerns its own URLs until the list is full; then the earliest concerns all. */
START_TEST(the_prefix_that_gives_way_concerns_all)
{
    uint64_t before = epochs_present(epochs), first = 0;
    char prefix[32];

    for (unsigned i = 0; i < EPOCH_PREFIXES; i++) {
        uint64_t epoch;

        snprintf(prefix, sizeof(prefix), "http://h/%02u", i);
        epoch = leave_prefix(prefix);
        if (i == 0)
            first = epoch;
    }
    ck_assert(!outdated(before, "http://other/", ""));
    ck_assert(outdated(before, "http://h/00/x", "") && outdated(before, "http://h/31/x", ""));
    leave_prefix("http://one.more/");
    ck_assert(outdated(before, "http://other/", ""));
    ck_assert(!outdated(first, "http://other/", ""));
    ck_assert(outdated(first, "http://one.more/", "") && outdated(first, "http://h/01/", ""));
    ck_assert(!outdated(first, "http://h/00/", ""));
}
END_TEST

START_TEST(an_own_epoch_does_not_count)
{
    uint64_t before = epochs_present(epochs), own = 0, next = 0;
    const struct span url = span_str("http://h/a"), tag = span_str("x");

    ck_assert_uint_le(epochs_leave(epochs, hash64_bytes(url), &own), before);
    ck_assert_uint_gt(own, before);
    ck_assert_uint_le(epochs_leave(epochs, hash64_bytes(tag), &own), before);
    ck_assert(outdate(epochs, before, 0, url, tag));
    ck_assert(!outdate(epochs, before, own, url, tag));
    leave("x");
    ck_assert(outdate(epochs, before, own, url, tag));
    ck_assert(!outdate(epochs, before, own, url, span_str("")));
    /* What another one has left is said to the next. */
    ck_assert_uint_gt(epochs_leave(epochs, hash64_bytes(tag), &next), own);
}
END_TEST

/* One that has begun earlier and comes to a name later hides no other one, nor is it hidden. */
START_TEST(two_invalidations_hide_neither)
{
    uint64_t before = epochs_present(epochs), own = leave("x"), other = leave("y");
    uint64_t hash = hash64_bytes(span_str("y"));

    ck_assert_uint_gt(other, own);
    ck_assert_uint_eq(epochs_leave(epochs, hash, &own), other);
    ck_assert(outdate(epochs, before, own, span_str("a"), span_str("y")));
    ck_assert(outdate(epochs, before, other, span_str("a"), span_str("y")));
    ck_assert(outdated(own, "a", "y") && outdated(other, "a", "y"));
    ck_assert(!outdate(epochs, before, own, span_str("a"), span_str("x")));
}
END_TEST

/* A million invalidations of other tags, a thousand while each response is under way. */
START_TEST(others_invalidations_outdate_few)
{
    enum { RESPONSES = 1000, MEANWHILE = 1000 };
    unsigned lost = 0, number = 0;

    for (unsigned i = 0; i < RESPONSES; i++) {
        uint64_t sent = epochs_present(epochs);
        char tag[32];

        for (unsigned n = 0; n < MEANWHILE; n++) {
            snprintf(tag, sizeof(tag), "other%u", number++);
            leave(tag);
        }
        snprintf(tag, sizeof(tag), "own%u", i);
        lost += outdated(sent, "http://h/", tag);
        leave(tag);
        ck_assert(outdated(sent, "http://h/", tag));
    }
    ck_assert_uint_le(lost, RESPONSES / 100);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static _Atomic bool stop;

static void *
invalidate(void *context)
{
    unsigned thread = *(unsigned *)context;

    for (unsigned i = 0; !stop; i++) {
        char name[32];

        snprintf(name, sizeof(name), "http://%u/%u", thread, i % 100);
        if (i % 4)
            leave(name);
        else
            leave_prefix(name);
    }
    return NULL;
}

/* What has been invalidated since is outdated at once, whatever others do. */
START_TEST(nothing_is_missed_beside_other_threads)
{
    enum { THREADS = 2 };
    unsigned numbers[THREADS] = {1, 2};
    pthread_t threads[THREADS];

    stop = false;
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, invalidate, &numbers[i]), 0);
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t sent = epochs_present(epochs);
        char name[32];

        snprintf(name, sizeof(name), "http://own/%u", i % 50);
        if (i % 2) {
            leave(name);
            ck_assert(outdated(sent, name, ""));
        } else {
            leave_prefix(name);
            ck_assert(outdated(sent, name, "x"));
        }
    }
    stop = true;
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/epochs");
    TCase *tc = tcase_create("epochs");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_later_epoch_of_the_url_or_of_a_tag_outdates);
    tcase_add_test(tc, prefixes_and_all);
    tcase_add_test(tc, the_prefix_that_gives_way_concerns_all);
    tcase_add_test(tc, an_own_epoch_does_not_count);
    tcase_add_test(tc, two_invalidations_hide_neither);
    tcase_add_test(tc, others_invalidations_outdate_few);
    tcase_add_test(tc, nothing_is_missed_beside_other_threads);
    suite_add_tcase(suite, tc);
    return suite;
}
