/* The last word on an address: judged again on the socket, just before it is connected to. */
#include <stdio.h>

#include "fetch/transfer.h"

#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

static bool
take_head(void *context, const struct fetch_head *head)
{
    *(unsigned *)context = head->status;
    return true;
}

static bool
take_body(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return true;
}

static void
pass_stage(void *context, enum transfer_stage stage)
{
    (void)context;
    (void)stage;
}

/* One hop to a name that stands for `address`, whatever the policy thought of it earlier. */
static enum fetch_error
transfer_to(const char *address, uint16_t port, const struct address_policy *addresses,
            bool by_operator, const char *connect_host)
{
    static _Atomic uint64_t received;
    unsigned status = 0;
    struct transfer_owner owner = {&status, take_head, take_body, pass_stage, &received};
    struct transfer transfer = {0};
    struct route route = {.host = connect_host, .port = port, .by_operator = by_operator};
    struct resolved *resolved = resolved_create(1);
    CURLM *multi = curl_multi_init();
    CURLMsg *message = NULL;
    struct settings settings;
    struct fetch_config config;
    struct target target;
    enum fetch_error error;
    char why[256], url[64];
    int running, left;

    fetch_config_default(&config);
    config.addresses = addresses;
    ck_assert(settings_init(&settings, &config, why, sizeof(why)));
    snprintf(url, sizeof(url), "http://pinned.test:%u/", port);
    ck_assert_int_eq(target_parse(&target, span_str(url), why, sizeof(why)), FETCH_OK);
    ck_assert(address_parse(address, port, &resolved->list[0]));
    ck_assert(transfer_start(&transfer, multi, &settings, &target, &route, resolved, span_str(""),
                             true, span_str(url), &owner));
    do {
        curl_multi_perform(multi, &running);
        message = curl_multi_info_read(multi, &left);
        if (!message)
            curl_multi_poll(multi, NULL, 0, 1000, NULL);
    } while (!message);
    error = transfer_judge(&transfer, message->data.result);
    if (error)
        ck_assert_str_ne(transfer.sentence, "");
    else
        ck_assert_uint_eq(status, 200);
    transfer_clear(&transfer, multi);
    transfer_clear(&transfer, multi);
    curl_multi_cleanup(multi);
    target_free(&target);
    settings_free(&settings);
    resolved_release(&resolved);
    return error;
}

START_TEST(the_socket_address_is_judged)
{
    static const struct line script[] = {
        {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {.path = NULL},
    };
    struct origin *origin = origin_start(script);
    struct address_policy *closed = address_policy_create();
    struct address_policy *open = address_policy_create();
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, open, false, "pinned.test"), FETCH_OK);
    ck_assert_uint_eq(origin->connections, 1);
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, closed, false, "pinned.test"),
                     FETCH_DENIED);
    ck_assert_int_eq(transfer_to("::ffff:127.0.0.1", origin->port, closed, false, "pinned.test"),
                     FETCH_DENIED);
    ck_assert_uint_eq(origin->connections, 1);
    /* By the operator's word it may. */
    ck_assert_int_eq(transfer_to("127.0.0.1", origin->port, closed, true, "pinned.test"), FETCH_OK);
    address_policy_destroy(open);
    address_policy_destroy(closed);
    origin_stop(origin);
}
END_TEST

/* A name that is not pinned is never resolved by libcurl itself, where it would stall others. */
START_TEST(libcurl_resolves_nothing)
{
    struct address_policy *open = address_policy_create();
    char why[128];

    ck_assert(address_policy_allow(open, "127.0.0.0/8", why, sizeof(why)));
    ck_assert_int_eq(transfer_to("127.0.0.1", 1, open, false, "another.test"),
                     FETCH_RESOLVE_FAILED);
    address_policy_destroy(open);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/transfer");
    TCase *tc = tcase_create("transfer");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, the_socket_address_is_judged);
    tcase_add_test(tc, libcurl_resolves_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
