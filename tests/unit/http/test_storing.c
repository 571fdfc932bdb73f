/* What a shared cache that validates may store, and for how long: RFC 9111 sections 3 and 4.2. */
#include "http/storing.h"

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
#define AN_HOUR_BEFORE "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT\r\n"
#define FRESH "Cache-Control: max-age=60\r\n"
#define TAG "ETag: \"a\"\r\n"
#define S INT64_C(1000000)

#define OK HTTP_REASON_NONE
#define NO_METHOD HTTP_REASON_METHOD
#define NO_STATUS HTTP_REASON_STATUS
#define NO_LIFETIME HTTP_REASON_UNSTATED

static struct http_storing
evaluate(const char *method, const char *request, unsigned status, const char *lines,
         const struct http_storing_rules *rules)
{
    const struct http_received received = {
        .method = http_method_of(span_str(method)),
        .request_lines = span_str(request),
        .status = status,
        .lines = span_str(lines),
        .arrival = {.wall_s = NOW},
    };
    struct http_storing storing;

    http_evaluate_response(&received, rules, &storing);
    ck_assert_int_ge(storing.lifetime_us, 0);
    ck_assert_int_ge(storing.age_us, 0);
    return storing;
}

static struct http_storing
get(unsigned status, const char *lines)
{
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    return evaluate("GET", "", status, lines, &rules);
}

START_TEST(statuses_and_methods)
{
    static const struct {
        const char *method;
        unsigned status;
        const char *lines;
        enum http_reason refusal;
    } rows[] = {
        {"GET", 200, FRESH, OK},
        {"HEAD", 200, FRESH, NO_METHOD},
        {"POST", 200, FRESH, NO_METHOD},
        {"get", 200, FRESH, NO_METHOD},
        /* an explicit lifetime makes any final status storable */
        {"GET", 203, FRESH, OK},
        {"GET", 204, FRESH, OK},
        {"GET", 299, FRESH, OK},
        {"GET", 302, FRESH, OK},
        {"GET", 303, FRESH, OK},
        {"GET", 307, "Expires: Sun, 06 Nov 1994 09:49:37 GMT\r\n", OK},
        {"GET", 403, "Cache-Control: s-maxage=9\r\n", OK},
        {"GET", 499, FRESH, OK},
        {"GET", 500, FRESH, OK},
        {"GET", 503, FRESH, OK},
        {"GET", 599, FRESH, OK},
        /* no final status, or none at all */
        {"GET", 100, FRESH, NO_STATUS},
        {"GET", 103, FRESH, NO_STATUS},
        {"GET", 199, FRESH, NO_STATUS},
        {"GET", 600, FRESH, NO_STATUS},
        {"GET", 999, FRESH, NO_STATUS},
        {"GET", 0, FRESH, NO_STATUS},
        /* neither is a whole response */
        {"GET", 206, FRESH, HTTP_REASON_PARTIAL},
        {"GET", 304, FRESH, NO_STATUS},
        /* what one client's odd request causes is not for others */
        {"GET", 400, FRESH, NO_STATUS},
        {"GET", 413, FRESH, NO_STATUS},
        {"GET", 414, FRESH, NO_STATUS},
        /* RFC 9111 section 3.1: its challenge is not */
        {"GET", 407, FRESH TAG, NO_STATUS},
        /* RFC 6585: MUST NOT be stored */
        {"GET", 428, FRESH, NO_STATUS},
        {"GET", 429, FRESH TAG, NO_STATUS},
        {"GET", 431, FRESH, NO_STATUS},
        {"GET", 511, "Cache-Control: public, s-maxage=60\r\n" TAG, NO_STATUS},
        /* without a lifetime: RFC 9110 15.1, with a validator */
        {"GET", 200, TAG, OK},
        {"GET", 200, AN_HOUR_BEFORE, OK},
        {"GET", 203, TAG, OK},
        {"GET", 204, TAG, OK},
        {"GET", 300, TAG, OK},
        {"GET", 301, TAG, OK},
        {"GET", 308, TAG, OK},
        {"GET", 404, TAG, OK},
        {"GET", 405, TAG, OK},
        {"GET", 410, TAG, OK},
        {"GET", 501, TAG, OK},
        {"GET", 201, TAG, NO_LIFETIME},
        {"GET", 202, TAG, NO_LIFETIME},
        {"GET", 302, TAG, NO_LIFETIME},
        {"GET", 307, TAG, NO_LIFETIME},
        {"GET", 403, TAG, NO_LIFETIME},
        {"GET", 500, TAG, NO_LIFETIME},
        {"GET", 503, TAG, NO_LIFETIME},
        {"GET", 599, TAG, NO_LIFETIME},
        {"GET", 599, TAG "Cache-Control: public\r\n", OK},
        /* neither a lifetime nor a validator: of no use */
        {"GET", 200, "", NO_LIFETIME},
        {"GET", 200, "Cache-Control: no-cache\r\n", NO_LIFETIME},
        {"GET", 200, "Cache-Control: max-age=0\r\n", HTTP_REASON_STALE},
        {"GET", 200, "Cache-Control: max-age=0\r\n" TAG, OK},
        {"GET", 200, "Expires: 0\r\n", HTTP_REASON_STALE},
        {"GET", 200, "Age: 60\r\n" FRESH, HTTP_REASON_STALE},
        {"GET", 200, "Age: 59\r\n" FRESH, OK},
        {"GET", 200, "Cache-Control: max-age=0, stale-if-error=60\r\n", OK},
        {"GET", 200, "Cache-Control: max-age=0, stale-while-revalidate=60\r\n", OK},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing =
            evaluate(rows[i].method, "", rows[i].status, rows[i].lines, &rules);

        ck_assert_msg(storing.refusal == rows[i].refusal, "%s %u %s: %s", rows[i].method,
                      rows[i].status, rows[i].lines, http_reason_word(storing.refusal));
    }
    rules.client_errors = true;
    ck_assert_int_eq(evaluate("GET", "", 400, FRESH, &rules).refusal, OK);
    ck_assert_int_eq(evaluate("GET", "", 414, FRESH, &rules).refusal, OK);
    ck_assert_int_eq(evaluate("GET", "", 431, FRESH, &rules).refusal, NO_STATUS);
    ck_assert_int_eq(evaluate("GET", "", 304, FRESH, &rules).refusal, NO_STATUS);
}
END_TEST

/* RFC 9110 section 9.3.3. */
START_TEST(responses_to_post)
{
    static const struct {
        const char *method, *lines;
        bool own_location;
        enum http_reason refusal;
    } rows[] = {
        {"POST", FRESH, true, OK},
        {"POST", FRESH, false, NO_METHOD},
        {"POST", TAG, true, NO_METHOD},
        {"POST", DATE AN_HOUR_BEFORE, true, NO_METHOD},
        {"POST", "Cache-Control: no-store, max-age=9\r\n", true, HTTP_REASON_NO_STORE},
        {"PUT", FRESH, true, NO_METHOD},
        {"HEAD", FRESH, true, NO_METHOD},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.heuristic_percent = 10;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const struct http_received received = {
            .method = http_method_of(span_str(rows[i].method)),
            .request_lines = span_str(""),
            .status = 200,
            .lines = span_str(rows[i].lines),
            .arrival = {.wall_s = NOW},
            .own_location = rows[i].own_location,
        };
        struct http_storing storing;

        http_evaluate_response(&received, &rules, &storing);
        ck_assert_msg(storing.refusal == rows[i].refusal, "row %zu", i);
    }
}
END_TEST

START_TEST(directives)
{
    static const struct {
        unsigned status;
        const char *request, *lines;
        enum http_reason refusal;
    } rows[] = {
        {200, "", "Cache-Control: no-store, max-age=60\r\n", HTTP_REASON_NO_STORE},
        {200, "", "Cache-Control: No-StOrE\r\n" TAG, HTTP_REASON_NO_STORE},
        {200, "", "Cache-Control: private, max-age=60\r\n", HTTP_REASON_PRIVATE},
        {200, "", "Cache-Control: private=\"a\", max-age=60\r\n", HTTP_REASON_PRIVATE},
        {200, "", "Cache-Control: private=\"a b\", max-age=60\r\n", HTTP_REASON_PRIVATE},
        /* 5.2.2.3 */
        {200, "", "Cache-Control: max-age=3600, no-store, must-understand\r\n", OK},
        {599, "", "Cache-Control: max-age=3600, no-store, must-understand\r\n",
         HTTP_REASON_NO_STORE},
        {299, "", "Cache-Control: max-age=3600, no-store, must-understand\r\n",
         HTTP_REASON_NO_STORE},
        {200, "", "Cache-Control: max-age=3600, must-understand\r\n", OK},
        {200, "", "Set-Cookie: a=b\r\n" FRESH, HTTP_REASON_SET_COOKIE},
        {200, "", "Vary: *\r\n" FRESH, HTTP_REASON_VARY_ANY},
        {200, "", "Vary: A, *\r\n" FRESH, HTTP_REASON_VARY_ANY},
        {200, "", "Vary: A\r\n" FRESH, OK},
        {200, "", FRESH "X\r\n", HTTP_REASON_MALFORMED},
        {200, "", "Pragma: no-cache\r\n" FRESH, OK},
        /* 5.2.1.5 */
        {200, "Cache-Control: no-store\r\n", FRESH, HTTP_REASON_REQUEST_NO_STORE},
        {200, "Cache-Control: no-cache\r\n", FRESH, OK},
        {200, "Pragma: no-cache\r\n", FRESH, OK},
        /* 3.5 */
        {200, "Authorization: Basic x\r\n", FRESH, HTTP_REASON_AUTHORIZATION},
        {200, "authorization:\r\n", FRESH, HTTP_REASON_AUTHORIZATION},
        {200, "Authorization: x\r\n", "Cache-Control: max-age=60, public\r\n", OK},
        {200, "Authorization: x\r\n", "Cache-Control: max-age=60, must-revalidate\r\n", OK},
        {200, "Authorization: x\r\n", "Cache-Control: s-maxage=60\r\n", OK},
        {200, "Authorization: x\r\n", "Cache-Control: max-age=60, proxy-revalidate\r\n",
         HTTP_REASON_AUTHORIZATION},
        {200, "Proxy-Authorization: x\r\n", FRESH, OK},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing =
            evaluate("GET", rows[i].request, rows[i].status, rows[i].lines, &rules);

        ck_assert_msg(storing.refusal == rows[i].refusal, "%s %s: %s", rows[i].request,
                      rows[i].lines, http_reason_word(storing.refusal));
    }
}
END_TEST

/* 5.2.2.4, 5.2.2.7: where the fields named are not stored, the rest is. */
START_TEST(named_fields_by_a_switch)
{
    static const struct {
        const char *lines;
        enum http_reason refusal;
        bool always_validate;
    } rows[] = {
        {"Cache-Control: private=\"a\", max-age=60\r\n", OK, false},
        {"Cache-Control: no-cache=\"a\", max-age=60\r\n", OK, false},
        {"Cache-Control: private=\"a b\", max-age=60\r\n", HTTP_REASON_PRIVATE, false},
        {"Cache-Control: private=\"a\", private, max-age=60\r\n", HTTP_REASON_PRIVATE, false},
        {"Cache-Control: no-cache=\"vary\", max-age=60\r\n", OK, true},
        {"Cache-Control: private=\"set-cookie\", max-age=60\r\nSet-Cookie: a\r\n",
         HTTP_REASON_SET_COOKIE, false},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.drops_named_fields = true;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = evaluate("GET", "", 200, rows[i].lines, &rules);

        ck_assert_msg(storing.refusal == rows[i].refusal, "%s", rows[i].lines);
        ck_assert_msg(storing.always_validate == rows[i].always_validate, "%s", rows[i].lines);
    }
}
END_TEST

START_TEST(cookies_by_a_switch)
{
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.set_cookie = true;
    rules.heuristic_percent = 10;
    ck_assert_int_eq(evaluate("GET", "", 200, "Set-Cookie: a=b\r\n" FRESH, &rules).refusal, OK);
    ck_assert_int_eq(evaluate("GET", "", 200, "Set-Cookie: a=b\r\n" TAG, &rules).refusal,
                     HTTP_REASON_SET_COOKIE);
    ck_assert_int_eq(
        evaluate("GET", "", 200, "Set-Cookie: a=b\r\n" DATE AN_HOUR_BEFORE, &rules).refusal,
        HTTP_REASON_SET_COOKIE);
    /* A validation for another client would give it the first one's cookie. */
    ck_assert_int_eq(
        evaluate("GET", "", 200, "Set-Cookie: a=b\r\nCache-Control: max-age=0\r\n" TAG, &rules)
            .refusal,
        HTTP_REASON_SET_COOKIE);
    ck_assert_int_eq(
        evaluate("GET", "", 200, "Set-Cookie: a=b\r\nCache-Control: no-cache, max-age=9\r\n" TAG,
                 &rules)
            .refusal,
        HTTP_REASON_SET_COOKIE);
}
END_TEST

START_TEST(ages_and_lifetimes)
{
    static const struct {
        const char *lines;
        int64_t age_us, lifetime_us;
        enum http_lifetime lifetime;
    } rows[] = {
        {TAG, 0, 0, HTTP_LIFETIME_UNSTATED},
        {FRESH, 0, 60 * S, HTTP_LIFETIME_EXPLICIT},
        {"Cache-Control: max-age=0\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {"Cache-Control: max-age='60'\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {"Cache-Control: s-maxage=9, max-age=60\r\n", 0, 9 * S, HTTP_LIFETIME_EXPLICIT},
        {"Age: 7200\r\n" FRESH, 7200 * S, 60 * S, HTTP_LIFETIME_EXPLICIT},
        {"Age: 2147483647\r\n" FRESH, 2147483647 * S, 60 * S, HTTP_LIFETIME_EXPLICIT},
        {"Age: 99999999999999999999\r\n" FRESH, 2147483648 * S, 60 * S, HTTP_LIFETIME_EXPLICIT},
        {"Age: 7200;foo=bar\r\n" FRESH, 0, 60 * S, HTTP_LIFETIME_EXPLICIT},
        /* a slow and a fast clock of the origin, with Age: RFC 9111 4.2.3 */
        {"Date: Sun, 06 Nov 1994 08:49:27 GMT\r\nExpires: Sun, 06 Nov 1994 08:49:47 GMT\r\n"
         "Age: 25\r\n",
         25 * S, 20 * S, HTTP_LIFETIME_EXPLICIT},
        {"Date: Sun, 06 Nov 1994 08:49:47 GMT\r\nExpires: Sun, 06 Nov 1994 08:49:57 GMT\r\n"
         "Age: 15\r\n",
         15 * S, 10 * S, HTTP_LIFETIME_EXPLICIT},
        /* Expires before Date is no negative lifetime */
        {DATE "Expires: Mon, 01 Jan 0000 00:00:00 GMT\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {"Date: Mon, 01 Jan 0000 00:00:00 GMT\r\n" FRESH, 2147483648 * S, 60 * S,
         HTTP_LIFETIME_EXPLICIT},
        {DATE "Expires: Thu, 18 Aug 2050 02:01:18 UTC\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {DATE "Expires: Thu, 18 Aug 50 02:01:18 GMT\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {DATE "Expires: Thu, 18 Aug 2050 2:01:18 GMT\r\n", 0, 0, HTTP_LIFETIME_EXPLICIT},
        {"Date: foo\r\nExpires: Sun, 06 Nov 1994 08:49:47 GMT\r\n", 0, 10 * S,
         HTTP_LIFETIME_EXPLICIT},
        {DATE AN_HOUR_BEFORE, 0, 0, HTTP_LIFETIME_UNSTATED},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = get(200, rows[i].lines);

        ck_assert_msg(storing.age_us == rows[i].age_us, "%s: age %lld", rows[i].lines,
                      (long long)storing.age_us);
        ck_assert_msg(storing.lifetime_us == rows[i].lifetime_us, "%s: lifetime %lld",
                      rows[i].lines, (long long)storing.lifetime_us);
        ck_assert_msg(storing.lifetime == rows[i].lifetime, "%s", rows[i].lines);
    }
}
END_TEST

/* RFC 9111 section 4.2.2. */
START_TEST(heuristic_lifetimes)
{
    static const struct {
        unsigned status;
        const char *lines;
        int64_t lifetime_us;
        enum http_lifetime lifetime;
    } rows[] = {
        {200, DATE AN_HOUR_BEFORE, 360 * S, HTTP_LIFETIME_HEURISTIC},
        {200, AN_HOUR_BEFORE, 360 * S, HTTP_LIFETIME_HEURISTIC},
        {404, DATE AN_HOUR_BEFORE, 360 * S, HTTP_LIFETIME_HEURISTIC},
        {501, DATE AN_HOUR_BEFORE, 360 * S, HTTP_LIFETIME_HEURISTIC},
        {201, DATE AN_HOUR_BEFORE, 0, HTTP_LIFETIME_UNSTATED},
        {403, DATE AN_HOUR_BEFORE, 0, HTTP_LIFETIME_UNSTATED},
        {599, DATE AN_HOUR_BEFORE, 0, HTTP_LIFETIME_UNSTATED},
        {599, DATE AN_HOUR_BEFORE "Cache-Control: public\r\n", 360 * S, HTTP_LIFETIME_HEURISTIC},
        {200, DATE AN_HOUR_BEFORE FRESH, 60 * S, HTTP_LIFETIME_EXPLICIT},
        {200, DATE AN_HOUR_BEFORE "Expires: 0\r\n", 0, HTTP_LIFETIME_EXPLICIT},
        {200, DATE "Last-Modified: x\r\n", 0, HTTP_LIFETIME_UNSTATED},
        {200, DATE "Last-Modified: Sun, 06 Nov 1994 09:49:37 GMT\r\n", 0, HTTP_LIFETIME_UNSTATED},
        {200, DATE "Last-Modified: Fri, 04 Nov 1994 08:49:37 GMT\r\n", 7200 * S,
         HTTP_LIFETIME_HEURISTIC},
        {200, DATE "Last-Modified: Mon, 01 Jan 0001 00:00:00 GMT\r\n", 7200 * S,
         HTTP_LIFETIME_HEURISTIC},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.heuristic_percent = 10;
    rules.heuristic_max_us = 7200 * S;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = evaluate("GET", "", rows[i].status, rows[i].lines, &rules);

        ck_assert_msg(storing.lifetime_us == rows[i].lifetime_us, "%s: %lld", rows[i].lines,
                      (long long)storing.lifetime_us);
        ck_assert_msg(storing.lifetime == rows[i].lifetime, "%s", rows[i].lines);
    }
}
END_TEST

START_TEST(limits_of_redirects_and_errors)
{
    static const struct {
        unsigned status;
        int64_t lifetime_us, if_error_us;
    } rows[] = {
        {200, 60 * S, 600 * S}, {301, 9 * S, 9 * S}, {308, 9 * S, 9 * S},
        {404, 5 * S, 5 * S},    {503, 5 * S, 5 * S},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.redirect_max_us = 9 * S;
    rules.negative_max_us = 5 * S;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = evaluate(
            "GET", "", rows[i].status, "Cache-Control: max-age=60, stale-if-error=600\r\n", &rules);

        ck_assert_int_eq(storing.lifetime_us, rows[i].lifetime_us);
        ck_assert_int_eq(storing.stale_if_error_us, rows[i].if_error_us);
    }
    rules.negative_max_us = 0;
    ck_assert_int_eq(evaluate("GET", "", 404, FRESH, &rules).refusal, HTTP_REASON_STALE);
}
END_TEST

/* For clients that know nothing of freshness. */
START_TEST(what_states_no_lifetime_may_be_kept)
{
    static const struct {
        unsigned status;
        const char *lines;
        enum http_reason refusal;
        enum http_lifetime lifetime;
        int64_t lifetime_us;
    } rows[] = {
        {200, "", OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        {200, TAG, OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        {200, "Cache-Control: public\r\n", OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        {301, "", OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        {308, "", OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        /* No heuristic applies to these. */
        {200, DATE AN_HOUR_BEFORE, OK, HTTP_LIFETIME_UNSTATED, HTTP_UNLIMITED},
        {203, DATE AN_HOUR_BEFORE, OK, HTTP_LIFETIME_HEURISTIC, 360 * S},
        {203, "", NO_LIFETIME, HTTP_LIFETIME_UNSTATED, 0},
        {302, "", NO_LIFETIME, HTTP_LIFETIME_UNSTATED, 0},
        {404, "", NO_LIFETIME, HTTP_LIFETIME_UNSTATED, 0},
        {404, TAG, OK, HTTP_LIFETIME_UNSTATED, 0},
        /* What states a lifetime has that. */
        {200, FRESH, OK, HTTP_LIFETIME_EXPLICIT, 60 * S},
        {301, FRESH, OK, HTTP_LIFETIME_EXPLICIT, 60 * S},
        {200, "Cache-Control: max-age=0\r\n", HTTP_REASON_STALE, HTTP_LIFETIME_EXPLICIT, 0},
        {200, "Expires: 0\r\n" TAG, OK, HTTP_LIFETIME_EXPLICIT, 0},
        {200, "Cache-Control: no-store\r\n", HTTP_REASON_NO_STORE, HTTP_LIFETIME_UNSTATED,
         HTTP_UNLIMITED},
        /* What is validated before each use is of no use without a validator. */
        {200, "Cache-Control: no-cache\r\n", NO_LIFETIME, HTTP_LIFETIME_UNSTATED, 0},
        {200, "Cache-Control: no-cache\r\n" TAG, OK, HTTP_LIFETIME_UNSTATED, 0},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.keeps_unstated = true;
    rules.heuristic_percent = 10;
    rules.heuristic_max_us = 86400 * S;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = evaluate("GET", "", rows[i].status, rows[i].lines, &rules);

        ck_assert_msg(storing.refusal == rows[i].refusal, "row %zu: %s", i,
                      http_reason_word(storing.refusal));
        ck_assert_msg(storing.lifetime == rows[i].lifetime, "row %zu", i);
        ck_assert_msg(storing.lifetime_us == rows[i].lifetime_us, "row %zu: %lld us", i,
                      (long long)storing.lifetime_us);
    }
    rules.redirect_max_us = 9 * S;
    ck_assert_int_eq(evaluate("GET", "", 301, "", &rules).lifetime_us, 9 * S);
    ck_assert_int_eq(evaluate("GET", "", 200, "", &rules).lifetime_us, HTTP_UNLIMITED);
}
END_TEST

/* RFC 9111 section 4.2.4, RFC 5861. */
START_TEST(use_after_the_lifetime)
{
    static const struct {
        const char *lines;
        bool always_validate, may_be_stale;
        int64_t while_revalidate_us, if_error_us;
    } rows[] = {
        {FRESH, false, true, 0, 0},
        {"Cache-Control: max-age=1, stale-while-revalidate=4, stale-if-error=60\r\n", false, true,
         4 * S, 60 * S},
        {"Cache-Control: max-age=1, stale-while-revalidate=99999999999\r\n", false, true,
         2147483648 * S, 0},
        {"Cache-Control: max-age=1, stale-if-error=x\r\n", false, true, 0, 0},
        {"Cache-Control: max-age=1, must-revalidate, stale-if-error=60\r\n", false, false, 0, 0},
        {"Cache-Control: max-age=1, proxy-revalidate, stale-if-error=60\r\n", false, false, 0, 0},
        {"Cache-Control: s-maxage=1, stale-while-revalidate=60\r\n", false, false, 0, 0},
        {"Cache-Control: no-cache, stale-while-revalidate=60\r\n" TAG, true, false, 0, 0},
        {"Cache-Control: no-cache=\"a b\", max-age=9\r\n" TAG, true, false, 0, 0},
        {"Cache-Control: no-cache=\"a\", max-age=9\r\n", true, false, 0, 0},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = get(200, rows[i].lines);

        ck_assert_msg(storing.refusal == OK, "%s", rows[i].lines);
        ck_assert_msg(storing.always_validate == rows[i].always_validate, "%s", rows[i].lines);
        ck_assert_msg(storing.may_be_stale == rows[i].may_be_stale, "%s", rows[i].lines);
        ck_assert_msg(storing.stale_while_revalidate_us == rows[i].while_revalidate_us, "%s",
                      rows[i].lines);
        ck_assert_msg(storing.stale_if_error_us == rows[i].if_error_us, "%s", rows[i].lines);
    }
}
END_TEST

/* RFC 9213 section 2.2. */
START_TEST(the_field_for_caches_of_the_origin)
{
    static const struct {
        const char *lines;
        enum http_reason with, without;
        int64_t lifetime_us;
    } rows[] = {
        {"CDN-Cache-Control: max-age=9\r\n" FRESH, OK, OK, 9 * S},
        {"CDN-Cache-Control: max-age=9\r\nExpires: 0\r\n", OK, HTTP_REASON_STALE, 9 * S},
        {"CDN-Cache-Control: max-age=9\r\nCache-Control: no-store\r\n", OK, HTTP_REASON_NO_STORE,
         9 * S},
        {"CDN-Cache-Control: no-store\r\n" FRESH, HTTP_REASON_NO_STORE, OK, 0},
        {"CDN-Cache-Control: private\r\n" FRESH, HTTP_REASON_PRIVATE, OK, 0},
        {"CDN-Cache-Control: foo\r\n" FRESH TAG, OK, OK, 0},
        {"CDN-Cache-Control: foo\r\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\r\n" TAG, OK, OK, 0},
        {"CDN-Cache-Control: max-age=9, &\r\n" FRESH, OK, OK, 60 * S},
        {"CDN-Cache-Control: max-age=0\r\nExpires: Sun, 06 Nov 1994 09:49:37 GMT\r\n",
         HTTP_REASON_STALE, OK, 0},
    };
    struct http_storing_rules with, without;

    http_storing_rules_init(&without);
    with = without;
    with.cdn_cache_control = true;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_storing storing = evaluate("GET", "", 200, rows[i].lines, &with);

        ck_assert_msg(storing.refusal == rows[i].with, "%s: %s", rows[i].lines,
                      http_reason_word(storing.refusal));
        ck_assert_msg(storing.lifetime_us == rows[i].lifetime_us, "%s", rows[i].lines);
        storing = evaluate("GET", "", 200, rows[i].lines, &without);
        ck_assert_msg(storing.refusal == rows[i].without, "%s: %s", rows[i].lines,
                      http_reason_word(storing.refusal));
    }
}
END_TEST

START_TEST(what_else_is_said)
{
    struct http_storing storing = get(200, "Vary: b, A\r\n" FRESH);

    ck_assert_int_eq(storing.vary, HTTP_VARY_FIELDS);
    ck_assert_uint_eq(storing.vary_names.count, 2);
    ck_assert(span_equal(storing.vary_names.names[0], span_str("A")));
    ck_assert(!storing.has_validator);
    storing = get(200, TAG);
    ck_assert_int_eq(storing.vary, HTTP_VARY_NONE);
    ck_assert(storing.has_validator);
    ck_assert(get(200, AN_HOUR_BEFORE).has_validator);
}
END_TEST

/* A stored response whose head a 304 has updated: the Age is that of the 304. */
START_TEST(after_a_validation)
{
    struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_str(""),
        .status = 200,
        .lines = span_str(DATE FRESH "Age: 50\r\n"),
        .validated_by = span_str("Age: 7\r\n"),
        .arrival = {.wall_s = NOW, .waited_us = 500000},
    };
    struct http_storing_rules rules;
    struct http_storing storing;

    http_storing_rules_init(&rules);
    http_evaluate_response(&received, &rules, &storing);
    ck_assert_int_eq(storing.age_us, 7 * S + 500000);
    received.validated_by = span_str("");
    http_evaluate_response(&received, &rules, &storing);
    ck_assert_int_eq(storing.age_us, 500000);
    received.validated_by = span_of(NULL, 0);
    http_evaluate_response(&received, &rules, &storing);
    ck_assert_int_eq(storing.age_us, 50 * S + 500000);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/storing");
    TCase *tests = tcase_create("storing");

    tcase_add_test(tests, statuses_and_methods);
    tcase_add_test(tests, responses_to_post);
    tcase_add_test(tests, directives);
    tcase_add_test(tests, named_fields_by_a_switch);
    tcase_add_test(tests, cookies_by_a_switch);
    tcase_add_test(tests, ages_and_lifetimes);
    tcase_add_test(tests, heuristic_lifetimes);
    tcase_add_test(tests, limits_of_redirects_and_errors);
    tcase_add_test(tests, what_states_no_lifetime_may_be_kept);
    tcase_add_test(tests, use_after_the_lifetime);
    tcase_add_test(tests, the_field_for_caches_of_the_origin);
    tcase_add_test(tests, what_else_is_said);
    tcase_add_test(tests, after_a_validation);
    suite_add_tcase(suite, tests);
    return suite;
}
