#include "tests/soak/tally.h"

#include <string.h>

#include "tests/unit/unit.h"

static const struct tally before = {.policy = "lru", .hits = 10, .evictions = 5};
static const struct tally_answers usual = {
    .requests = 1000, .hits = 300, .evicted = 40, .stored = 400};

/* Checks a phase; `sentence` is part of what is wrong with it, or NULL. */
static void
check(const char *started_with, struct tally after, struct tally_answers answers, uint64_t purged,
      const char *sentence)
{
    struct buf why;
    bool good;

    buf_init(&why, 4096);
    good = tally_check(started_with, &before, &after, &answers, purged, &why);
    ck_assert_int_eq(good, sentence == NULL);
    ck_assert_msg(sentence ? strstr(buf_str(&why), sentence) != NULL : why.len == 0, "%s",
                  buf_str(&why));
    buf_free(&why);
}

static struct tally
after(const char *policy)
{
    struct tally tally = {.hits = 310, .evictions = 45, .pages = 9};

    strcpy(tally.policy, policy);
    return tally;
}

START_TEST(a_cache_that_works_is_right)
{
    check("lru", after("sieve"), usual, 9, NULL);
}
END_TEST

START_TEST(each_sign_of_a_cache_is_demanded)
{
    struct tally tally = after("lru");
    struct tally_answers answers = usual;

    answers.hits = 49;
    check("lru", tally, answers, 9, "answers that were hits: 49, at least 50");
    answers = usual;
    answers.evicted = 0;
    check("lru", tally, answers, 9, "pages that answers evicted: 0");
    answers = usual;
    answers.stored = 0;
    check("lru", tally, answers, 9, "answers that stored a page: 0");
    check("lru", tally, usual, 0, "pages that the purge removed: 0");
    tally.pages = 0;
    check("lru", tally, usual, 9, "pages in the cache at the end of a phase: 0");
}
END_TEST

START_TEST(answers_and_statistics_have_to_agree)
{
    struct tally tally = after("none");

    tally.hits--;
    check("lru", tally, usual, 9, "hits counted by the daemon: 299, at least 300");
    tally = after("none");
    tally.evictions--;
    check("lru", tally, usual, 9, "evictions counted by the daemon: 39, at least 40");
}
END_TEST

START_TEST(no_cache_is_excused_only_if_the_mix_chose_it)
{
    const struct tally_answers nothing = {.requests = 1000}, few = {.requests = 399};
    struct tally tally = before;

    strcpy(tally.policy, "none");
    check("lru", tally, nothing, 0, NULL);
    check("none", tally, nothing, 0, "answers that were hits: 0, at least 50");
    check("none", tally, few, 0, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("soak/tally");
    TCase *tc = tcase_create("tally");

    tcase_add_test(tc, a_cache_that_works_is_right);
    tcase_add_test(tc, each_sign_of_a_cache_is_demanded);
    tcase_add_test(tc, answers_and_statistics_have_to_agree);
    tcase_add_test(tc, no_cache_is_excused_only_if_the_mix_chose_it);
    suite_add_tcase(suite, tc);
    return suite;
}
