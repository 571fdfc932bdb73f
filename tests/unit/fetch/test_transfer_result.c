/* Errors and sentences of transfers that libcurl has ended. */
#define UNIT_STARTS_NO_THREAD

#include <string.h>

#include "fetch/transfer.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct target target = {.host = "h.test"};

static const struct request plain;

static struct transfer
transfer_at(enum transfer_stage stage)
{
    return (struct transfer){.target = &target,
                             .request = &plain,
                             .stage = stage,
                             .answer = stage == TRANSFER_BODY ? ANSWER_BODY : ANSWER_AWAITED,
                             .status = {.status = stage == TRANSFER_BODY ? 200 : 0},
                             .head.content_length = -1};
}

static void
expect(struct transfer *t, CURLcode code, enum fetch_error error, const char *sentence)
{
    enum fetch_error found = transfer_evaluate(t, code);

    ck_assert_msg(found == error && strstr(t->sentence, sentence), "%s: %d, \"%s\"",
                  curl_easy_strerror(code), found, t->sentence);
}

START_TEST(of_each_stage)
{
    static const struct {
        enum transfer_stage stage;
        CURLcode code;
        enum fetch_error error;
        const char *sentence;
    } rows[] = {
        {TRANSFER_CONNECTING, CURLE_OPERATION_TIMEDOUT, FETCH_CONNECT_TIMED_OUT,
         "connecting to h.test"},
        {TRANSFER_CONNECTING, CURLE_PEER_FAILED_VERIFICATION, FETCH_TLS_FAILED,
         "TLS with h.test failed"},
        {TRANSFER_CONNECTING, CURLE_OUT_OF_MEMORY, FETCH_INTERNAL, "out of memory"},
        {TRANSFER_CONNECTING, CURLE_COULDNT_RESOLVE_HOST, FETCH_RESOLVE_FAILED,
         "h.test cannot be resolved"},
        {TRANSFER_CONNECTING, CURLE_COULDNT_RESOLVE_PROXY, FETCH_RESOLVE_FAILED,
         "h.test cannot be resolved"},
        {TRANSFER_CONNECTING, CURLE_COULDNT_CONNECT, FETCH_CONNECT_FAILED,
         "cannot connect to h.test"},
        {TRANSFER_ASKED, CURLE_SSL_CLIENTCERT, FETCH_TLS_FAILED, "TLS with h.test failed"},
        {TRANSFER_ASKED, CURLE_SSL_CONNECT_ERROR, FETCH_TLS_FAILED, "TLS with h.test failed"},
        {TRANSFER_ASKED, CURLE_OPERATION_TIMEDOUT, FETCH_TIMED_OUT, "h.test took too long"},
        {TRANSFER_ASKED, CURLE_OK, FETCH_ORIGIN_BROKE, "h.test ended without an answer"},
        {TRANSFER_ASKED, CURLE_RECV_ERROR, FETCH_ORIGIN_BROKE, "the answer of h.test is broken"},
        {TRANSFER_ANSWERING, CURLE_OUT_OF_MEMORY, FETCH_TOO_LARGE, "a header of h.test"},
        {TRANSFER_ANSWERING, CURLE_ABORTED_BY_CALLBACK, FETCH_INTERNAL, "fetching has failed"},
        {TRANSFER_BODY, CURLE_OUT_OF_MEMORY, FETCH_INTERNAL, "fetching has failed"},
        {TRANSFER_BODY, CURLE_OPERATION_TIMEDOUT, FETCH_TIMED_OUT, "h.test took too long"},
        {TRANSFER_BODY, CURLE_PARTIAL_FILE, FETCH_ORIGIN_BROKE, "the answer of h.test is broken"},
        {TRANSFER_BODY, CURLE_OK, FETCH_OK, ""},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct transfer t = transfer_at(rows[i].stage);

        expect(&t, rows[i].code, rows[i].error, rows[i].sentence);
    }
}
END_TEST

/* All that libcurl says of TLS is the origin's TLS, whenever it comes. */
START_TEST(of_tls)
{
    static const CURLcode codes[] = {
        CURLE_SSL_CONNECT_ERROR,
        CURLE_SSL_ENGINE_NOTFOUND,
        CURLE_SSL_ENGINE_SETFAILED,
        CURLE_SSL_CERTPROBLEM,
        CURLE_SSL_CIPHER,
        CURLE_PEER_FAILED_VERIFICATION,
        CURLE_USE_SSL_FAILED,
        CURLE_SSL_ENGINE_INITFAILED,
        CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CRL_BADFILE,
        CURLE_SSL_ISSUER_ERROR,
        CURLE_SSL_PINNEDPUBKEYNOTMATCH,
        CURLE_SSL_INVALIDCERTSTATUS,
    };

    for (size_t i = 0; i < LENGTH(codes); i++)
        for (enum transfer_stage stage = TRANSFER_CONNECTING; stage <= TRANSFER_BODY; stage++) {
            struct transfer t = transfer_at(stage);

            expect(&t, codes[i], FETCH_TLS_FAILED, curl_easy_strerror(codes[i]));
        }
}
END_TEST

/* libcurl's own words come before those of its code, made harmless for a terminal. */
START_TEST(in_libcurls_words)
{
    struct transfer t = transfer_at(TRANSFER_BODY);

    strcpy(t.error_text, "a\033[31mword\177");
    expect(&t, CURLE_RECV_ERROR, FETCH_ORIGIN_BROKE, "broken: a?[31mword?");
}
END_TEST

/* What the transfer has been ended for stands, whatever libcurl makes of it. */
START_TEST(the_first_reason_stands)
{
    struct transfer t = transfer_at(TRANSFER_BODY);

    transfer_fail(&t, FETCH_TOO_LARGE, "the first of %d", 2);
    transfer_fail(&t, FETCH_INTERNAL, "the second");
    expect(&t, CURLE_WRITE_ERROR, FETCH_TOO_LARGE, "the first of 2");
    t = transfer_at(TRANSFER_CONNECTING);
    t.no_socket = FETCH_OVERLOADED;
    strcpy(t.sentence, "no descriptor");
    expect(&t, CURLE_COULDNT_CONNECT, FETCH_OVERLOADED, "no descriptor");
}
END_TEST

/* A body that the end of the connection ends is complete where TLS has ended: RFC 9112 section 8.
 */
START_TEST(of_bodies_without_a_length_over_tls)
{
    static struct target over_tls = {.host = "h.test", .https = true};
    static const char sentence[] = "h.test closed the connection without ending TLS";
    static char close_notify[] = {1, 0}, internal_error[] = {2, 80}, inner_type[] = {0};
    struct transfer t = transfer_at(TRANSFER_BODY);

    if (strncmp(curl_version_info(CURLVERSION_NOW)->ssl_version, "OpenSSL/", 8) != 0)
        unit_skip("libcurl uses another library for TLS");
    t.target = &over_tls;
    t.status.version = 11;
    (void)transfer_on_debug(NULL, CURLINFO_SSL_DATA_IN, internal_error, 2, &t);
    (void)transfer_on_debug(NULL, CURLINFO_SSL_DATA_IN, inner_type, 1, &t);
    (void)transfer_on_debug(NULL, CURLINFO_SSL_DATA_OUT, close_notify, 2, &t);
    /* That of another connection, which libcurl has closed before. */
    t.answer = ANSWER_AWAITED;
    (void)transfer_on_debug(NULL, CURLINFO_SSL_DATA_IN, close_notify, 2, &t);
    t.answer = ANSWER_BODY;
    expect(&t, CURLE_OK, FETCH_ORIGIN_BROKE, sentence);
    t.error = FETCH_OK;
    (void)transfer_on_debug(NULL, CURLINFO_SSL_DATA_IN, close_notify, 2, &t);
    expect(&t, CURLE_OK, FETCH_OK, "");
    /* Others show their end themselves. */
    t.tls_ended = false;
    t.status.version = 20;
    expect(&t, CURLE_OK, FETCH_OK, "");
    t.status.version = 11;
    t.answer = ANSWER_NO_BODY;
    expect(&t, CURLE_OK, FETCH_OK, "");
    t.answer = ANSWER_BODY;
    t.head.content_length = 0;
    expect(&t, CURLE_OK, FETCH_OK, "");
}
END_TEST

/* A body that ends before its own framing does, although libcurl is content. */
START_TEST(of_a_body_that_goes_on)
{
    struct transfer t = transfer_at(TRANSFER_BODY);

    body_init(&t.body, true, 100, 10);
    expect(&t, CURLE_OK, FETCH_ORIGIN_BROKE, "the answer of h.test is broken");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/verdict");
    TCase *tcase = tcase_create("verdict");

    tcase_add_test(tcase, of_each_stage);
    tcase_add_test(tcase, of_tls);
    tcase_add_test(tcase, in_libcurls_words);
    tcase_add_test(tcase, the_first_reason_stands);
    tcase_add_test(tcase, of_bodies_without_a_length_over_tls);
    tcase_add_test(tcase, of_a_body_that_goes_on);
    suite_add_tcase(suite, tcase);
    return suite;
}
