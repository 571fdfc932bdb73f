/* Journals, and what is known of purges when servers have lost theirs. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"
#include "tier/tier_journal.h"

#define URL "http://a.test/"

static void
add_entry(struct buf *entries, uint64_t epoch, enum cache_by by, struct span name)
{
    tier_entry_write(entries, &(struct tier_entry){.id = epoch * 3,
                                                   .epoch = epoch,
                                                   .by = by,
                                                   .name = name,
                                                   .scope = span_str("http://a.test/")});
}

START_TEST(a_journal_comes_back)
{
    struct tier_journal journal = {.incarnation = 9, .number = 12, .floor = 5, .latest = 5}, read;
    struct buf entries, content;
    struct tier_entry entry;
    struct span rest;

    buf_init(&entries, 1 << 20);
    buf_init(&content, 1 << 20);
    add_entry(&entries, 8, CACHE_BY_TAG, span_str("red"));
    add_entry(&entries, 9, CACHE_BY_PREFIX, span_str(""));
    tier_journal_write(&content, &journal, buf_span(&entries));
    ck_assert(tier_journal_read(buf_span(&content), &read, &rest));
    ck_assert_uint_eq(read.incarnation, 9);
    ck_assert_uint_eq(read.number, 12);
    ck_assert_uint_eq(read.count, 2);
    ck_assert_uint_eq(read.floor, 5);
    ck_assert_uint_eq(read.latest, 9);
    ck_assert(tier_entry_next(&rest, &entry));
    ck_assert_uint_eq(entry.id, 24);
    ck_assert_int_eq(entry.by, CACHE_BY_TAG);
    ck_assert(span_equal(entry.name, span_str("red")));
    ck_assert(span_equal(entry.scope, span_str("http://a.test/")));
    ck_assert(tier_entry_next(&rest, &entry));
    ck_assert(!tier_entry_next(&rest, &entry));
    for (size_t len = 0; len < content.len; len++)
        ck_assert(!tier_journal_read(span_of(content.data, len), &read, &rest));
    buf_free(&entries);
    buf_free(&content);
}
END_TEST

START_TEST(a_journal_drops_its_earliest_entries)
{
    struct tier_journal journal = {.number = 10000, .floor = 1, .latest = 1}, read;
    struct buf entries, content;
    struct tier_entry entry;
    struct span rest;
    uint64_t count = 0;

    buf_init(&entries, 1 << 20);
    buf_init(&content, 1 << 20);
    for (uint64_t i = 0; i < 10000; i++)
        add_entry(&entries, 10 + i, CACHE_BY_URL, span_str(URL));
    tier_journal_write(&content, &journal, buf_span(&entries));
    ck_assert_uint_le(content.len, TIER_JOURNAL_BYTES + sizeof(journal));
    ck_assert(tier_journal_read(buf_span(&content), &read, &rest));
    ck_assert_uint_lt(read.count, 10000);
    /* The floor is the epoch of the last that was dropped. */
    ck_assert_uint_eq(read.floor, 10 + 10000 - read.count - 1);
    while (tier_entry_next(&rest, &entry))
        ck_assert_uint_eq(entry.epoch, read.floor + ++count);
    ck_assert_uint_eq(count, read.count);
    buf_free(&entries);
    buf_free(&content);
}
END_TEST

START_TEST(a_long_name_becomes_a_prefix)
{
    char *name = malloc(TIER_JOURNAL_NAME + 1);
    struct tier_entry entry;
    struct buf entries;
    struct span rest;

    memset(name, 'a', TIER_JOURNAL_NAME + 1);
    buf_init(&entries, 1 << 20);
    add_entry(&entries, 1, CACHE_BY_URL, span_of(name, TIER_JOURNAL_NAME));
    add_entry(&entries, 2, CACHE_BY_URL, span_of(name, TIER_JOURNAL_NAME + 1));
    rest = buf_span(&entries);
    ck_assert(tier_entry_next(&rest, &entry));
    ck_assert_int_eq(entry.by, CACHE_BY_URL);
    ck_assert(tier_entry_next(&rest, &entry));
    ck_assert_int_eq(entry.by, CACHE_BY_PREFIX);
    ck_assert_uint_eq(entry.name.len, TIER_JOURNAL_NAME);
    buf_free(&entries);
    free(name);
}
END_TEST

/* ---- what a journal lacks -------------------------------------------------------------------- */

/* Appends an entry with this id and epoch. */
static void
add_id(struct buf *entries, uint64_t id, uint64_t epoch)
{
    tier_entry_write(entries,
                     &(struct tier_entry){
                         .id = id, .epoch = epoch, .by = CACHE_BY_TAG, .name = span_str("red")});
}

START_TEST(what_a_journal_lacks)
{
    static const struct {
        uint64_t id, epoch;
    } expected[] = {{2, 20}, {4, 41}, {5, 50}};
    struct buf has, one, two, lacking;
    struct span copies[2], rest;
    struct tier_entry entry;

    buf_init(&has, 10000);
    buf_init(&one, 10000);
    buf_init(&two, 10000);
    buf_init(&lacking, 10000);
    add_id(&has, 1, 10);
    add_id(&has, 4, 40);
    add_id(&has, 6, 60);
    add_id(&one, 3, 5); /* not later than the floor */
    add_id(&one, 1, 10);
    add_id(&one, 2, 20);
    add_id(&one, 6, 59);
    add_id(&two, 2, 19); /* it has a later epoch in the other one */
    add_id(&two, 4, 41);
    add_id(&two, 5, 50);
    copies[0] = buf_span(&one);
    copies[1] = buf_span(&two);
    tier_entries_lacking(&lacking, buf_span(&has), 5, &(struct tier_known){copies, 2});
    ck_assert(!buf_failed(&lacking));
    rest = buf_span(&lacking);
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        ck_assert(tier_entry_next(&rest, &entry));
        ck_assert_uint_eq(entry.id, expected[i].id);
        ck_assert_uint_eq(entry.epoch, expected[i].epoch);
    }
    ck_assert_uint_eq(rest.len, 0);
    /* With them it lacks nothing. */
    buf_append(&has, lacking.data, lacking.len);
    buf_reset(&lacking);
    tier_entries_lacking(&lacking, buf_span(&has), 5, &(struct tier_known){copies, 2});
    ck_assert_uint_eq(lacking.len, 0);
    buf_free(&has);
    buf_free(&one);
    buf_free(&two);
    buf_free(&lacking);
}
END_TEST

/* ---- what is kept ---------------------------------------------------------------------------- */

static unsigned
count_bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

/* Can a purge that a majority has kept be in none of the journals that were read? */
static bool
can_be_missed(unsigned servers, unsigned kept)
{
    for (unsigned keepers = 0; keepers < 1u << servers; keepers++)
        if (count_bits(keepers) > servers / 2 && !(keepers & kept))
            return true;
    return false;
}

/* Of each set of servers that are read, and of those that have lost their journals. */
START_TEST(a_purge_is_kept_exactly_if_it_can_be_missed_nowhere)
{
    for (unsigned servers = 1; servers <= 7; servers++)
        for (unsigned kept = 0; kept < 1u << servers; kept++)
            for (unsigned lost = 1; lost < 1u << servers; lost++) {
                const struct tier_journals journals = {servers, count_bits(kept), count_bits(lost)};
                const unsigned all = (1u << servers) - 1;
                const enum tier_judgement expected = !can_be_missed(servers, kept) ? TIER_IS_KEPT
                                                     : can_be_missed(servers, all & ~lost)
                                                         ? TIER_IS_LOST
                                                         : TIER_MAY_BE_KEPT;

                if (!(kept & lost))
                    ck_assert_int_eq(tier_journal_judge(&journals), expected);
            }
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("tier_journal");
    TCase *tests = tcase_create("tier_journal");

    tcase_add_test(tests, a_journal_comes_back);
    tcase_add_test(tests, a_journal_drops_its_earliest_entries);
    tcase_add_test(tests, a_long_name_becomes_a_prefix);
    tcase_add_test(tests, what_a_journal_lacks);
    tcase_add_test(tests, a_purge_is_kept_exactly_if_it_can_be_missed_nowhere);
    suite_add_tcase(suite, tests);
    return suite;
}
