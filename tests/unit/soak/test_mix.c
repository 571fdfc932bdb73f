#include "tests/soak/mix.h"

#include <stdio.h>
#include <string.h>

#include "tests/soak/lane.h"
#include "tests/soak/text.h"
#include "tests/unit/unit.h"

static const struct mix_row page = {"page",     1,          MIX_GET,     .host = "h",
                                    .hosts = 1, .pages = 1, .tail = "?x"};

/* What the origin sends for the row above: lines of 32 bytes, cut to the size. */
static size_t
body_of(const struct mix_ask *ask, char *out, size_t size)
{
    size_t len = 0;

    for (unsigned line = 0; len < ask->size; line++, len += 32) {
        ck_assert_uint_lt(len + 33, size);
        snprintf(out + len, size - len, "%016llx %014x\n", (unsigned long long)ask->hash, line);
    }
    return ask->size;
}

START_TEST(the_shares_add_up)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < mix_count; i++)
        sum += mix_rows[i].share;
    ck_assert_uint_eq(sum, MIX_SHARES);
    ck_assert_uint_le(mix_count, LANE_MOST_ROWS);
}
END_TEST

START_TEST(every_number_has_its_row)
{
    unsigned counts[LANE_MOST_ROWS] = {0};

    for (uint32_t i = 0; i < MIX_SHARES; i++)
        counts[mix_row_at(i) - mix_rows]++;
    for (unsigned i = 0; i < mix_count; i++)
        ck_assert_uint_eq(counts[i], mix_rows[i].share);
}
END_TEST

START_TEST(every_row_draws_a_request)
{
    uint64_t random = 7;

    for (unsigned i = 0; i < mix_count; i++) {
        struct mix_ask ask;

        mix_draw(&ask, &mix_rows[i], &random);
        ck_assert_ptr_eq(ask.row, &mix_rows[i]);
        ck_assert_uint_lt(strlen(ask.url), MIX_URL - 1);
        ck_assert_int_eq(ask.url[0] != '\0', mix_rows[i].host || mix_rows[i].fixed);
        ck_assert_int_eq(ask.size > 0, mix_rows[i].host != NULL);
    }
}
END_TEST

START_TEST(a_body_is_checked_byte_for_byte)
{
    char body[TEXT_SIZE_MAX + 64];
    struct mix_ask ask;
    uint64_t random = 1;
    size_t len;

    mix_draw(&ask, &page, &random);
    ck_assert_str_eq(ask.url, "http://h0.soak/p0?x");
    ck_assert_uint_ge(ask.size, TEXT_SIZE_MIN);
    ck_assert_uint_le(ask.size, TEXT_SIZE_MAX);
    len = body_of(&ask, body, sizeof(body));
    ck_assert_ptr_null(mix_check_text(&ask, body, len));
    for (size_t i = 0; i < len; i++) {
        body[i] ^= 1;
        ck_assert_str_eq(mix_check_text(&ask, body, len), "a body with other bytes");
        body[i] ^= 1;
    }
    ck_assert_ptr_nonnull(strstr(mix_check_text(&ask, body, len - 1), "a body of bytes "));
}
END_TEST

START_TEST(a_page_is_checked_by_its_states)
{
    char body[TEXT_SIZE_MAX + 64];
    struct proxy_fetch_result result = {.status = PROXY_OK};
    struct proxy_page *answer = &result.proxy_fetch_result_u.page;
    struct mix_row past = page, lie = page;
    struct mix_ask ask;
    uint64_t random = 1;

    mix_draw(&ask, &page, &random);
    answer->http_status = 200;
    answer->source = PROXY_HIT;
    answer->body.body_val = body;
    answer->body.body_len = (u_int)body_of(&ask, body, sizeof(body));
    ck_assert_ptr_null(mix_check_page(&ask, &result));
    answer->http_status = 404;
    ck_assert_str_eq(mix_check_page(&ask, &result), "HTTP status 404 instead of 200");
    answer->http_status = 200;
    past.kind = MIX_NO_STORE;
    ask.row = &past;
    ck_assert_str_eq(mix_check_page(&ask, &result), "source 0 instead of 3");
    answer->source = PROXY_BYPASS;
    ck_assert_ptr_null(mix_check_page(&ask, &result));
    lie.status = PROXY_ORIGIN_BROKE;
    ask.row = &lie;
    ck_assert_str_eq(mix_check_page(&ask, &result), "status 0 instead of 8");
    result.status = PROXY_ORIGIN_BROKE;
    ck_assert_ptr_null(mix_check_page(&ask, &result));
    ask.row = &page;
    ck_assert_str_eq(mix_check_page(&ask, &result), "status 8 instead of 0");
}
END_TEST

START_TEST(what_must_not_be_stored_is_checked)
{
    char body[TEXT_SIZE_MAX + 64];
    struct proxy_fetch_result result = {.status = PROXY_OK};
    struct proxy_page *answer = &result.proxy_fetch_result_u.page;
    struct mix_row gone = page;
    struct mix_ask ask;
    uint64_t random = 1;

    gone.http_status = answer->http_status = 404;
    gone.unstored = true;
    mix_draw(&ask, &gone, &random);
    answer->source = PROXY_MISS;
    answer->body.body_val = body;
    answer->body.body_len = (u_int)body_of(&ask, body, sizeof(body));
    ck_assert_ptr_null(mix_check_page(&ask, &result));
    answer->ending.stored = true;
    ck_assert_str_eq(mix_check_page(&ask, &result), "a page that must not be stored was stored");
    answer->ending.stored = false;
    answer->source = PROXY_HIT;
    ck_assert_str_eq(mix_check_page(&ask, &result), "a page that must not be stored is a hit");
    gone.kind = MIX_NO_STORE;
    gone.unstored = false;
    answer->source = PROXY_BYPASS;
    answer->ending.stored = true;
    ck_assert_str_eq(mix_check_page(&ask, &result), "a page past the cache was stored");
}
END_TEST

START_TEST(rare_rows_come_in_turn)
{
    unsigned counts[LANE_MOST_ROWS] = {0};

    ck_assert_uint_gt(mix_rare_count(), 20);
    for (uint64_t i = 0; i < 3 * mix_rare_count(); i++)
        counts[mix_rare_at(i) - mix_rows]++;
    for (unsigned i = 0; i < mix_count; i++) {
        ck_assert_uint_eq(counts[i], mix_rows[i].rare ? 3 : 0);
        ck_assert(!mix_rows[i].rare || mix_rows[i].status != PROXY_TIMED_OUT);
    }
}
END_TEST

START_TEST(administration_is_expected_to_be_refused_over_tcp)
{
    const struct mix_row purge = {"purge", 1, MIX_PURGE_ALL, .host = NULL};
    const struct mix_ask ask = {.row = &purge};

    ck_assert_ptr_null(mix_check_status(&ask, true, PROXY_OK));
    ck_assert_ptr_null(mix_check_status(&ask, false, PROXY_DENIED));
    ck_assert_ptr_nonnull(mix_check_status(&ask, true, PROXY_DENIED));
    ck_assert_ptr_nonnull(mix_check_status(&ask, false, PROXY_OK));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("soak/mix");
    TCase *tc = tcase_create("mix");

    tcase_add_test(tc, the_shares_add_up);
    tcase_add_test(tc, every_number_has_its_row);
    tcase_add_test(tc, every_row_draws_a_request);
    tcase_add_test(tc, a_body_is_checked_byte_for_byte);
    tcase_add_test(tc, a_page_is_checked_by_its_states);
    tcase_add_test(tc, what_must_not_be_stored_is_checked);
    tcase_add_test(tc, rare_rows_come_in_turn);
    tcase_add_test(tc, administration_is_expected_to_be_refused_over_tcp);
    suite_add_tcase(suite, tc);
    return suite;
}
