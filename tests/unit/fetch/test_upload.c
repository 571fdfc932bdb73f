/* Bodies of requests, piece by piece. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/body.h"

#include "tests/unit/unit.h"

/* A source that answers as its script says, with pieces of 'a'. */
struct source {
    const struct answer {
        enum fetch_supply answer;
        size_t len;
    } * next;
    unsigned calls;
};

static enum fetch_supply
answer(void *context, void *buffer, size_t size, size_t *len)
{
    struct source *source = context;
    const struct answer *now = source->next++;

    source->calls++;
    *len = now->len;
    memset(buffer, 'a', now->len < size ? now->len : size);
    return now->answer;
}

START_TEST(no_body)
{
    struct upload upload;
    char piece[3];
    size_t len;

    upload_init(&upload, &(struct request_body){0}, NULL, NULL);
    ck_assert_int_eq(upload.stage, UPLOAD_COMPLETE);
    ck_assert_int_eq(upload_read(&upload, piece, 3, &len), UPLOAD_ENDED);
}
END_TEST

/* A source is not asked beyond a known length, and for no more than is left of it. */
START_TEST(a_source_of_known_length)
{
    static const struct answer script[] = {{FETCH_SUPPLIED, 3},
                                           {FETCH_SUPPLY_LATER, 0},
                                           {FETCH_SUPPLIED, 2},
                                           {FETCH_SUPPLY_FAILED, 0}};
    const struct request_body body = {.kind = REQUEST_BODY_SUPPLIED, .length = 5};
    struct source source = {.next = script};
    struct upload upload;
    char piece[4];
    size_t len;

    upload_init(&upload, &body, answer, &source);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_PIECE);
    ck_assert_uint_eq(len, 3);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_WAITS);
    ck_assert_uint_eq(len, 0);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_PIECE);
    ck_assert_uint_eq(len, 2);
    ck_assert_int_eq(upload.stage, UPLOAD_COMPLETE);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_ENDED);
    ck_assert_uint_eq(source.calls, 3);
}
END_TEST

START_TEST(a_source_of_unknown_length)
{
    static const struct answer script[] = {{FETCH_SUPPLIED, 4}, {FETCH_SUPPLY_END, 0}};
    const struct request_body body = {.kind = REQUEST_BODY_SUPPLIED, .length = -1};
    struct source source = {.next = script};
    struct upload upload;
    char piece[4];
    size_t len;

    upload_init(&upload, &body, answer, &source);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_PIECE);
    ck_assert_int_eq(upload.stage, UPLOAD_FLOWS);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_ENDED);
    ck_assert_int_eq(upload.stage, UPLOAD_COMPLETE);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_ENDED);
    ck_assert_uint_eq(source.calls, 2);
}
END_TEST

/* An early end, an empty piece, one that is too long, a failure. */
START_TEST(sources_that_are_wrong)
{
    static const struct answer script[] = {
        {FETCH_SUPPLY_END, 0}, {FETCH_SUPPLIED, 0}, {FETCH_SUPPLIED, 5}, {FETCH_SUPPLY_FAILED, 3}};
    const struct request_body body = {.kind = REQUEST_BODY_SUPPLIED, .length = 9};
    struct source source = {.next = script + _i};
    struct upload upload;
    char piece[4];
    size_t len;

    upload_init(&upload, &body, answer, &source);
    ck_assert_int_eq(upload_read(&upload, piece, 4, &len), UPLOAD_FAILED);
    ck_assert_uint_eq(len, 0);
    ck_assert_ptr_nonnull(upload.reason);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/upload");
    TCase *tc = tcase_create("upload");

    tcase_add_test(tc, no_body);
    tcase_add_test(tc, a_source_of_known_length);
    tcase_add_test(tc, a_source_of_unknown_length);
    tcase_add_loop_test(tc, sources_that_are_wrong, 0, 4);
    suite_add_tcase(suite, tc);
    return suite;
}
