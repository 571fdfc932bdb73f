/* The proofs of peers: what is accepted, once, and what is refused. */
#define UNIT_STARTS_NO_THREAD

#include "origins/peer_auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define START ((int64_t)1700000000 * SECOND)

static const struct peer_words words = {
    .from = {.ptr = "http://a:1", .len = 10},
    .to = {.ptr = "http://b:2", .len = 10},
    .method = {.ptr = "GET", .len = 3},
    .target = {.ptr = "http://h/x?y", .len = 12},
};

static struct peer_keys keys;
static struct peer_auth *sender, *receiver;
static struct buf value;
static struct peer_code sent, code;
static uint64_t incarnation;
static int64_t now_us;

static void
set_key(struct peer_keys *of, const char *text)
{
    struct buf why;

    buf_init(&why, 256);
    ck_assert_msg(peer_keys_read(of, span_str(text), &why), "%s", buf_str(&why));
    buf_free(&why);
}

static void
begin(void)
{
    set_key(&keys, "0123456789abcdef");
    now_us = START + SECOND;
    sender = peer_auth_create(START);
    receiver = peer_auth_create(START);
    ck_assert(sender && receiver);
    buf_init(&value, 4096);
}

static void
end(void)
{
    peer_auth_destroy(sender);
    peer_auth_destroy(receiver);
    buf_free(&value);
}

static void
write_one(void)
{
    buf_reset(&value);
    ck_assert(peer_auth_write(sender, &keys, &words, now_us, &value, &sent));
}

static enum peer_verdict
check_words(const struct peer_words *got)
{
    return peer_auth_check(receiver, &keys, buf_span(&value), got, now_us, &code, &incarnation);
}

static enum peer_verdict
check(void)
{
    return check_words(&words);
}

START_TEST(a_request_is_accepted_once)
{
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    ck_assert(span_equal(peer_auth_sender(buf_span(&value)), words.from));
    ck_assert_uint_eq(incarnation, (uint64_t)START);
    ck_assert_mem_eq(code.bytes, sent.bytes, PEER_CODE);
    ck_assert_int_eq(check(), PEER_AGAIN);
}
END_TEST

START_TEST(requests_may_overtake_each_other_within_the_window)
{
    char *first, *second;

    write_one();
    first = strdup(buf_str(&value));
    write_one();
    second = strdup(buf_str(&value));
    for (unsigned i = 0; i < PEER_WINDOW - 2; i++) {
        write_one();
        ck_assert_int_eq(check(), PEER_ACCEPTED);
    }
    buf_reset(&value);
    buf_append_str(&value, second);
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    ck_assert_int_eq(check(), PEER_AGAIN);
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    buf_reset(&value);
    buf_append_str(&value, first);
    ck_assert_int_eq(check(), PEER_AGAIN); /* too old to be known */
    free(first);
    free(second);
}
END_TEST

/* Every byte of the field counts. */
START_TEST(a_changed_field_is_refused)
{
    write_one();
    for (size_t i = 0; i < value.len; i++) {
        value.data[i] ^= 1;
        ck_assert_int_ne(check(), PEER_ACCEPTED);
        value.data[i] ^= 1;
    }
    for (size_t len = 0; len < value.len; len++)
        ck_assert_int_ne(peer_auth_check(receiver, &keys, span_of(value.data, len), &words, now_us,
                                         &code, &incarnation),
                         PEER_ACCEPTED);
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

START_TEST(another_request_is_refused)
{
    struct peer_words other = words;

    write_one();
    other.to = span_str("http://c:3");
    ck_assert_int_eq(check_words(&other), PEER_FORGED);
    other = words;
    other.method = span_str("PUT");
    ck_assert_int_eq(check_words(&other), PEER_FORGED);
    other = words;
    other.target = span_str("http://h/x?z");
    ck_assert_int_eq(check_words(&other), PEER_FORGED);
    /* The same bytes, divided in another way. */
    other = words;
    other.method = span_str("GEThttp:");
    other.target = span_str("//h/x?y");
    ck_assert_int_eq(check_words(&other), PEER_FORGED);
    other = words;
    other.says = span_str("tag a");
    ck_assert_int_eq(check_words(&other), PEER_FORGED);
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

START_TEST(times_are_bounded)
{
    const int64_t sent_us = now_us;

    write_one();
    now_us = sent_us + PEER_TIME_US + 1;
    ck_assert_int_eq(check(), PEER_LATE);
    now_us = sent_us - PEER_TIME_US - 1;
    ck_assert_int_eq(check(), PEER_LATE);
    now_us = sent_us + PEER_TIME_US;
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

/* A receiver that has started anew does not know what had come before. */
START_TEST(what_was_sent_before_the_start_is_refused)
{
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    peer_auth_destroy(receiver);
    receiver = peer_auth_create(now_us + 1);
    ck_assert_int_eq(check(), PEER_EARLY);
    now_us += 2;
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

/* It was on its way meanwhile: unlike a clock that is behind for longer. */
START_TEST(what_was_sent_just_before_the_start_is_no_sign_of_a_clock)
{
    write_one();
    peer_auth_destroy(receiver);
    receiver = peer_auth_create(now_us + 1000);
    now_us += 2000;
    ck_assert_int_eq(check(), PEER_EARLY);
    now_us += PEER_START_US;
    ck_assert_int_eq(check(), PEER_LATE);
}
END_TEST

static void
restart(int64_t start_us)
{
    peer_auth_destroy(sender);
    sender = peer_auth_create(start_us);
}

/* A copy of the value, which is free()d. */
static char *
record(void)
{
    return strdup(buf_str(&value));
}

static enum peer_verdict
check_recorded(char *recorded)
{
    buf_reset(&value);
    buf_append_str(&value, recorded);
    return check();
}

START_TEST(a_sender_that_starts_again_is_another_one)
{
    char *recorded;

    write_one();
    recorded = record();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    restart(now_us);
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    ck_assert_int_eq(check(), PEER_AGAIN);
    ck_assert_int_eq(check_recorded(recorded), PEER_AGAIN);
    free(recorded);
}
END_TEST

/* Both send until the connections of the former have ended; each request is accepted once. */
START_TEST(a_process_that_was_replaced_goes_on)
{
    char *recorded[3];

    for (unsigned i = 0; i < 3; i++) {
        write_one();
        recorded[i] = record();
    }
    ck_assert_int_eq(check_recorded(recorded[0]), PEER_ACCEPTED);
    restart(now_us);
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    ck_assert_int_eq(check_recorded(recorded[2]), PEER_ACCEPTED);
    ck_assert_uint_eq(incarnation, (uint64_t)START);
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    ck_assert_int_eq(check_recorded(recorded[1]), PEER_ACCEPTED);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(check_recorded(recorded[i]), PEER_AGAIN);
        free(recorded[i]);
    }
}
END_TEST

/* Of one that was not known before another one came, or that is not known any more, nothing is. */
START_TEST(a_process_that_is_not_known_is_refused_behind_a_later_one)
{
    char *first, *other;

    write_one();
    first = record();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    write_one();
    other = record();
    for (unsigned i = 1; i <= PEER_PROCESSES; i++) {
        restart(START + i);
        write_one();
        ck_assert_int_eq(check(), PEER_ACCEPTED);
    }
    ck_assert_int_eq(check_recorded(first), PEER_AGAIN);
    ck_assert_int_eq(check_recorded(other), PEER_AGAIN);
    free(first);
    free(other);
}
END_TEST

START_TEST(a_clock_that_was_set_back_excludes_a_sender_for_a_while)
{
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    restart(START - 20 * SECOND);
    write_one();
    ck_assert_int_eq(check(), PEER_AGAIN);
    now_us += 2 * PEER_TIME_US + 1;
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

START_TEST(senders_do_not_displace_each_other)
{
    struct peer_words other = words;
    char from[32];

    for (unsigned i = 0; i < PEER_SENDERS; i++) {
        snprintf(from, sizeof(from), "http://sender:%u", i);
        other.from = span_str(from);
        buf_reset(&value);
        ck_assert(peer_auth_write(sender, &keys, &other, now_us, &value, &sent));
        ck_assert_int_eq(check(), PEER_ACCEPTED);
        ck_assert_int_eq(check(), PEER_AGAIN);
    }
    write_one(); /* one too many, until the others are forgotten */
    ck_assert_int_eq(check(), PEER_AGAIN);
    now_us += 2 * PEER_TIME_US + 1;
    write_one();
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

START_TEST(each_key_is_accepted_and_the_first_is_sent)
{
    struct peer_keys old = keys, both, new;

    set_key(&both, "# rotated\n\n  new key new key new key \r\n0123456789abcdef\n");
    set_key(&new, "  new key new key new key ");
    ck_assert_uint_eq(both.count, 2);
    keys = old;
    write_one();
    keys = both;
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    write_one();
    keys = old;
    ck_assert_int_eq(check(), PEER_FORGED);
    keys = new;
    ck_assert_int_eq(check(), PEER_ACCEPTED);
}
END_TEST

static void
refuses_keys(const char *text, const char *sentence)
{
    struct peer_keys of;
    struct buf why;

    buf_init(&why, 256);
    ck_assert(!peer_keys_read(&of, span_str(text), &why));
    ck_assert_str_eq(buf_str(&why), sentence);
    buf_free(&why);
}

/* One daemon has another first key already; the others know the second one alone. */
START_TEST(a_response_is_under_the_key_of_its_request)
{
    const struct peer_keys one = keys;
    char text[PEER_RESPONSE_SIZE];
    struct span response;

    write_one();
    set_key(&keys, "another first key of it\n0123456789abcdef");
    ck_assert_int_eq(check(), PEER_ACCEPTED);
    response = peer_response_write(&keys, &code, PEER_SERVED, text);
    ck_assert_int_eq(peer_response_read(&one, &sent, response), PEER_SERVED);
    code.key = keys.count;
    ck_assert_uint_eq(peer_response_write(&keys, &code, PEER_SERVED, text).len, 0);
}
END_TEST

START_TEST(bad_key_files_are_refused)
{
    char longest[300];

    memset(longest, 'k', sizeof(longest));
    longest[PEER_KEY_MOST + 1] = '\0';
    refuses_keys("", "there is no key");
    refuses_keys("# only this\n\n", "there is no key");
    refuses_keys("0123456789abcde\n", "a key has fewer than 16 bytes, or more than 256");
    refuses_keys(longest, "a key has fewer than 16 bytes, or more than 256");
    refuses_keys("0123456789abcdef0\n0123456789abcdef1\n0123456789abcdef2\n0123456789abcdef3\n"
                 "0123456789abcdef4\n",
                 "there are more than 4 keys");
}
END_TEST

START_TEST(a_response_is_of_the_peer_that_had_the_request)
{
    static const enum peer_outcome outcomes[] = {PEER_SERVED, PEER_FAILED};
    char text[PEER_RESPONSE_SIZE];
    struct peer_code other;
    struct peer_keys wrong;

    set_key(&wrong, "fedcba9876543210");
    write_one();
    other = sent;
    other.bytes[5] ^= 1;
    for (unsigned i = 0; i < 2; i++) {
        struct span response = peer_response_write(&keys, &sent, outcomes[i], text);

        ck_assert_uint_eq(response.len, PEER_RESPONSE_SIZE);
        ck_assert_int_eq(peer_response_read(&keys, &sent, response), outcomes[i]);
        ck_assert_int_eq(peer_response_read(&keys, &other, response), PEER_NONE);
        ck_assert_int_eq(peer_response_read(&wrong, &sent, response), PEER_NONE);
        for (size_t k = 0; k < response.len; k++) {
            text[k] ^= 1;
            ck_assert_int_eq(peer_response_read(&keys, &sent, response), PEER_NONE);
            text[k] ^= 1;
        }
        ck_assert_int_eq(peer_response_read(&keys, &sent, span_of(text, 65)), PEER_NONE);
    }
    ck_assert_int_eq(peer_response_read(&keys, &sent, span_of(NULL, 0)), PEER_NONE);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("peer_auth");
    TCase *tests = tcase_create("proofs");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_request_is_accepted_once);
    tcase_add_test(tests, requests_may_overtake_each_other_within_the_window);
    tcase_add_test(tests, a_changed_field_is_refused);
    tcase_add_test(tests, another_request_is_refused);
    tcase_add_test(tests, times_are_bounded);
    tcase_add_test(tests, what_was_sent_before_the_start_is_refused);
    tcase_add_test(tests, what_was_sent_just_before_the_start_is_no_sign_of_a_clock);
    tcase_add_test(tests, a_sender_that_starts_again_is_another_one);
    tcase_add_test(tests, a_process_that_was_replaced_goes_on);
    tcase_add_test(tests, a_process_that_is_not_known_is_refused_behind_a_later_one);
    tcase_add_test(tests, a_clock_that_was_set_back_excludes_a_sender_for_a_while);
    tcase_add_test(tests, senders_do_not_displace_each_other);
    tcase_add_test(tests, each_key_is_accepted_and_the_first_is_sent);
    tcase_add_test(tests, a_response_is_under_the_key_of_its_request);
    tcase_add_test(tests, bad_key_files_are_refused);
    tcase_add_test(tests, a_response_is_of_the_peer_that_had_the_request);
    suite_add_tcase(suite, tests);
    return suite;
}
