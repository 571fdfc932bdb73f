/* The review of a stored page without memory: it does not say that the page is one client's. */
#include "http/known_fields.h"
#include "proxy/proxy_rules.h"
#include "proxy/sharing.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)
#define NOW (1000 * SECOND)

static int64_t
now_us(void *context)
{
    (void)context;
    return NOW;
}

START_TEST(what_forbids_its_use_is_not_known)
{
    static const char fields[] = "Cache-Control: max-age=900\r\n" HTTP_ORIGIN_CONTROL
                                 ": Cache-Control: max-age=60\r\n";
    const struct proxy_rules rules = {.max_age_us = 0};
    const struct proxy proxy = {
        .config = {.follows_http = true,
                   .rules = &rules,
                   .clock = {.monotonic_us = now_us, .wall_us = now_us}}};

    for (unsigned n = 1; n <= 2; n++) {
        struct source_head head = {.url = span_str("http://a.test/"),
                                   .fields = span_str(fields),
                                   .status = 200,
                                   .notes = HTTP_KNOWN_ORIGIN_CONTROL,
                                   .born_us = NOW,
                                   .lifetime_us = 60 * SECOND};
        enum http_reason refusal;

        torture_fail_at(2 - n);
        refusal = sharing_review(&proxy, &(struct request){0}, &head);
        torture_fail_at(0);
        ck_assert_int_eq(refusal, n == 1 ? HTTP_REASON_MEMORY : HTTP_REASON_NONE);
        ck_assert_int_eq(head.lifetime_us, n == 1 ? 0 : 60 * SECOND);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy/sharing without memory");
    TCase *tests = tcase_create("review");

    tcase_add_test(tests, what_forbids_its_use_is_not_known);
    suite_add_tcase(suite, tests);
    return suite;
}
