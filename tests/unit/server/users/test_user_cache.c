/* The cache of answers to checks of users. */
#define UNIT_STARTS_NO_THREAD

#include "server/users/user_cache.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static struct user_cache *cache;

static struct user_key
key_of(const char *name, const char *password, const char *hash)
{
    struct user_key key;

    ck_assert(user_cache_key(cache, span_str(name), span_str(password), span_str(hash), &key));
    return key;
}

/* 'a': accepted, 'r': refused, '-': there is none. */
static char
find(const struct user_key *key, int64_t now_us)
{
    int64_t until_us = 0;
    bool accepted;

    if (!user_cache_find(cache, key, now_us, &accepted, &until_us))
        return '-';
    ck_assert_int_gt(until_us, now_us);
    return accepted ? 'a' : 'r';
}

static void
set_up(void)
{
    cache = user_cache_create();
}

static void
tear_down(void)
{
    user_cache_free(cache);
}

START_TEST(answers_hold_for_their_time)
{
    struct user_key a = key_of("anna", "x", "h"), b = key_of("bert", "x", "h");

    ck_assert_int_eq(find(&a, 0), '-');
    user_cache_add(cache, &a, true, 100);
    user_cache_add(cache, &b, false, 50);
    ck_assert_int_eq(find(&a, 99), 'a');
    ck_assert_int_eq(find(&a, 100), '-');
    ck_assert_int_eq(find(&b, 49), 'r');
    ck_assert_int_eq(find(&b, 50), '-');
    user_cache_add(cache, &a, false, 200);
    ck_assert_int_eq(find(&a, 99), 'r');
    user_cache_add(cache, &a, true, 300);
    ck_assert_int_eq(find(&a, 99), 'a');
    ck_assert_int_eq(find(&a, 250), 'a');
}
END_TEST

START_TEST(each_part_makes_another_key)
{
    const struct user_key keys[] = {key_of("ab", "c", "d"), key_of("a", "bc", "d"),
                                    key_of("ab", "cd", ""), key_of("ab", "c", "e"),
                                    key_of("", "abc", "d"), key_of("abc", "", "d")};
    const struct user_key again = key_of("ab", "c", "d");
    struct user_cache *mine = cache, *other = user_cache_create();
    struct user_key there;

    user_cache_add(cache, &keys[0], true, 100);
    for (size_t i = 1; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_int_eq(find(&keys[i], 1), '-');
    ck_assert_int_eq(find(&again, 1), 'a');
    /* The key of a process is its own. */
    cache = other;
    there = key_of("ab", "c", "d");
    ck_assert(memcmp(&there, &again, sizeof(there)) != 0);
    user_cache_free(other);
    cache = mine;
}
END_TEST

START_TEST(long_texts_are_refused)
{
    static char text[1026];
    struct user_key key;

    memset(text, 'x', sizeof(text) - 1);
    ck_assert(
        user_cache_key(cache, span_of(text, 1024), span_of(text, 1024), span_of(text, 1024), &key));
    ck_assert(!user_cache_key(cache, span_of(text, 1025), span_of("", 0), span_of("", 0), &key));
}
END_TEST

START_TEST(refused_ones_displace_no_accepted_one)
{
    enum { USERS = 1000, WRONG = 100000 };
    struct user_key key;
    unsigned found = 0;
    char text[16];

    for (unsigned i = 0; i < USERS; i++) {
        snprintf(text, sizeof(text), "%u", i);
        key = key_of(text, "right", "h");
        user_cache_add(cache, &key, true, 1000);
    }
    for (unsigned i = 0; i < WRONG; i++) {
        snprintf(text, sizeof(text), "%u", i);
        key = key_of("anna", text, "h");
        user_cache_add(cache, &key, false, 2000);
    }
    for (unsigned i = 0; i < USERS; i++) {
        snprintf(text, sizeof(text), "%u", i);
        key = key_of(text, "right", "h");
        found += find(&key, 1) == 'a';
    }
    ck_assert_uint_ge(found, USERS - 5);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("user cache");
    TCase *tcase = tcase_create("cache");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, answers_hold_for_their_time);
    tcase_add_test(tcase, each_part_makes_another_key);
    tcase_add_test(tcase, long_texts_are_refused);
    tcase_add_test(tcase, refused_ones_displace_no_accepted_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
