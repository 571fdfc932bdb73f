/*
 * rpcgen's own dispatchers on our transport, called through rpcgen's own client stubs: neither
 * knows of the other's transport. Procedures of our own stand in for the proxy's.
 */
#include <rpc/rpc.h>
#include <rpc/clnt_soc.h>

#include "proxy.h"
#include "tests/unit/rpc/peer.h"

static struct tiny tiny;
static atomic_uint freed; /* results, by the dispatchers' freeresult */

/* Version 1: the URL, and then as many letters as its length squared. */
bool_t
proxy_fetch_1_svc(char **url, webpageResponse *response, struct svc_req *req)
{
    struct rpc_request *request = rpc_request_of(req->rq_xprt);
    size_t len = strlen(*url), size = len + len * len;
    char *page;

    response->webPageContents = NULL;
    if (len == 0) {
        rpc_request_error(request, RPC_ERROR_GARBAGE_ARGS);
        return FALSE;
    }
    page = malloc(size + 1);
    ck_assert_ptr_nonnull(page);
    memcpy(page, *url, len);
    memset(page + len, 'x', size - len);
    page[size] = '\0';
    rpc_request_hold(request, free, page);
    response->webPageContents = page;
    return TRUE;
}

/* Version 2: the URL and the headers come back, the body is the tiny program's. */
bool_t
proxy_get_2_svc(proxy_fetch_args *args, proxy_fetch_result *result, struct svc_req *req)
{
    proxy_page *page = &result->proxy_fetch_result_u.page;

    (void)req;
    memset(result, 0, sizeof(*result));
    if (args->url.proxy_url_len == 0) {
        result->status = PROXY_BAD_URL;
        result->proxy_fetch_result_u.sentence = "no URL";
        return TRUE;
    }
    result->status = PROXY_OK;
    page->http_status = 200;
    page->source = PROXY_COALESCED;
    page->total_us = 0x123456789abcu;
    page->final_url = args->url;
    page->headers = args->headers;
    page->body.body_val = tiny.body;
    page->body.body_len = args->flags;
    return TRUE;
}

bool_t
proxy_stat_2_svc(void *none, proxy_stats *stats, struct svc_req *req)
{
    static proxy_fact facts[] = {{"software", "test"}};
    static proxy_metric metrics[] = {
        {"a", PROXY_COUNTER, 3}, {"b{c=\"d\"}", 77, UINT64_MAX}, /* of a later version's kind */
    };

    (void)none;
    (void)req;
    stats->facts.facts_val = facts;
    stats->facts.facts_len = 1;
    stats->metrics.metrics_val = metrics;
    stats->metrics.metrics_len = 2;
    return TRUE;
}

/* Deferred, and answered before it returns. */
bool_t
proxy_purge_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *req)
{
    struct rpc_request *request = rpc_request_of(req->rq_xprt);
    proxy_purge_result answer = {.status = PROXY_OK};

    memset(result, 0, sizeof(*result));
    rpc_request_defer(request);
    answer.proxy_purge_result_u.purged = args->url.proxy_url_len;
    rpc_request_reply(request, (xdrproc_t)xdr_proxy_purge_result, &answer);
    return FALSE;
}

/* A result that cannot be encoded: a sentence over the bound. */
bool_t
proxy_set_2_svc(proxy_set_args *args, proxy_set_result *result, struct svc_req *req)
{
    static char sentence[PROXY_MAX_SENTENCE + 2];

    (void)args;
    (void)req;
    memset(sentence, 's', sizeof(sentence) - 1);
    result->status = PROXY_BAD_VALUE;
    result->proxy_set_result_u.sentence = sentence;
    return TRUE;
}

bool_t
proxy_purge_preview_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *req)
{
    return proxy_purge_2_svc(args, result, req);
}

bool_t
proxy_set_preview_2_svc(proxy_set_args *args, proxy_set_preview_result *result, struct svc_req *req)
{
    (void)args;
    (void)req;
    memset(result, 0, sizeof(*result));
    result->status = PROXY_DENIED;
    result->proxy_set_preview_result_u.sentence = (char *)(uintptr_t) "not here";
    return TRUE;
}

bool_t
proxy_read_2_svc(proxy_read_args *args, proxy_read_result *result, struct svc_req *req)
{
    (void)args;
    (void)req;
    memset(result, 0, sizeof(*result));
    result->status = PROXY_NO_OBJECT;
    result->proxy_read_result_u.sentence = (char *)(uintptr_t) "not here";
    return TRUE;
}

bool_t
proxy_reload_2_svc(void *nothing, proxy_reload_result *result, struct svc_req *req)
{
    (void)nothing;
    (void)req;
    result->status = PROXY_DENIED;
    result->text = (char *)(uintptr_t) "not here";
    return TRUE;
}

bool_t
proxy_origin_2_svc(proxy_origin_args *args, proxy_origin_result *result, struct svc_req *req)
{
    (void)args;
    (void)req;
    memset(result, 0, sizeof(*result));
    result->status = PROXY_DENIED;
    result->proxy_origin_result_u.sentence = (char *)(uintptr_t) "not here";
    return TRUE;
}

bool_t
proxy_explain_2_svc(proxy_explain_args *args, proxy_explain_result *result, struct svc_req *req)
{
    (void)args;
    (void)req;
    memset(result, 0, sizeof(*result));
    result->status = PROXY_DENIED;
    result->text = (char *)(uintptr_t) "not here";
    return TRUE;
}

bool_t
proxy_release_2_svc(char *object, proxy_status *result, struct svc_req *req)
{
    (void)object;
    (void)req;
    *result = PROXY_NO_OBJECT;
    return TRUE;
}

int
proxy_fetchprog_1_freeresult(SVCXPRT *transport, xdrproc_t proc, caddr_t result)
{
    (void)transport;
    (void)proc;
    (void)result;
    atomic_fetch_add(&freed, 1);
    return TRUE;
}

int
proxy_fetchprog_2_freeresult(SVCXPRT *transport, xdrproc_t proc, caddr_t result)
{
    return proxy_fetchprog_1_freeresult(transport, proc, result);
}

void proxy_fetchprog_1(struct svc_req *req, SVCXPRT *transport);
void proxy_fetchprog_2(struct svc_req *req, SVCXPRT *transport);

static void
start(void)
{
    static const struct rpc_program programs[] = {
        {PROXY_FETCHPROG, PROXY_FETCHVERS, proxy_fetchprog_1},
        {PROXY_FETCHPROG, PROXY_VERS2, proxy_fetchprog_2},
    };

    memset(&tiny, 0, sizeof(tiny));
    tiny_fill(&tiny);
    atomic_store(&freed, 0);
    tiny.server = rpc_server_create(&RPC_LIMITS_DEFAULT, 2, programs, 2, NULL);
    ck_assert_ptr_nonnull(tiny.server);
    ck_assert_int_eq(rpc_server_listen(tiny.server, listen_tcp(&tiny.port)), 0);
    ck_assert_int_eq(rpc_server_start(tiny.server), 0);
}

static void
stop(void)
{
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}

static CLIENT *
connect_stub(rpcvers_t version)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tiny.port)};
    int fd = RPC_ANYSOCK;
    CLIENT *client;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client = clnttcp_create(&address, PROXY_FETCHPROG, version, &fd, 0, 0);
    ck_assert_msg(client != NULL, "%s", clnt_spcreateerror("clnttcp_create"));
    return client;
}

START_TEST(version_1_by_its_stub)
{
    CLIENT *client = connect_stub(PROXY_FETCHVERS);
    static const size_t lengths[] = {1, 2, 22, 23, 100, 1000};
    char url[1001], *at = url;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        webpageResponse response = {NULL};
        size_t len = lengths[i];

        memset(url, 'u', len);
        url[len] = '\0';
        ck_assert_int_eq(proxy_fetch_1(&at, &response, client), RPC_SUCCESS);
        ck_assert_uint_eq(strlen(response.webPageContents), len + len * len);
        ck_assert(strncmp(response.webPageContents, url, len) == 0);
        xdr_free((xdrproc_t)xdr_webpageResponse, (char *)&response);
    }
    AWAIT(atomic_load(&freed) == 6);
    clnt_destroy(client);
}
END_TEST

START_TEST(version_1_has_errors_of_rpc_alone)
{
    CLIENT *client = connect_stub(PROXY_FETCHVERS);
    webpageResponse response = {NULL};
    char *url = "";

    ck_assert_int_eq(proxy_fetch_1(&url, &response, client), RPC_CANTDECODEARGS);
    ck_assert_ptr_null(response.webPageContents);
    clnt_destroy(client);
}
END_TEST

/* xdr_wrapstring itself would ask for 4 GiB. */
START_TEST(a_url_that_announces_gibibytes)
{
    int fd = peer_connect(&tiny);
    static const uint32_t lengths[] = {0xffffffffu, 0xfffffffeu, 0x80000000u, 9};

    for (uint32_t i = 0; i < 4; i++) {
        struct buf b;

        buf_init(&b, 1024);
        put_call_to(&b, i, PROXY_FETCHPROG, PROXY_FETCHVERS, PROXY_FETCH);
        put_word(&b, lengths[i]);
        ck_assert(buf_append_str(&b, "http:///"));
        ck_assert(peer_send(fd, &b));
        EXPECT_ACCEPTED(fd, i, GARBAGE_ARGS);
    }
    close(fd);
}
END_TEST

/* What was decoded before the failure must be freed: the leak checker sees it. */
START_TEST(arguments_that_decode_in_part)
{
    int fd = peer_connect(&tiny);

    for (uint32_t i = 0; i < 1000; i++) {
        struct buf b;

        buf_init(&b, 1024);
        put_call_to(&b, i, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET);
        put_word(&b, 8);
        ck_assert(buf_append_str(&b, "http:///"));
        put_word(&b, 9);
        ck_assert(buf_append_str(&b, "X: y"));
        ck_assert(peer_send(fd, &b));
        EXPECT_ACCEPTED(fd, i, GARBAGE_ARGS);
    }
    close(fd);
}
END_TEST

START_TEST(version_2_by_its_stubs)
{
    CLIENT *client = connect_stub(PROXY_VERS2);
    char url[] = "http://localhost/\0behind";
    proxy_fetch_args args = {.url = {sizeof(url) - 1, url}, .flags = 100000};
    proxy_fetch_result result;
    proxy_page *page = &result.proxy_fetch_result_u.page;
    proxy_stats stats;
    proxy_purge_args purge = {.kind = PROXY_PURGE_PREFIX, .url = {17, url}};
    proxy_purge_result purged;
    proxy_set_args set = {.policy = ""};
    proxy_set_result kept;

    memset(&result, 0, sizeof(result));
    ck_assert_int_eq(proxy_get_2(&args, &result, client), RPC_SUCCESS);
    ck_assert_int_eq(result.status, PROXY_OK);
    ck_assert_uint_eq(page->total_us, 0x123456789abcu);
    ck_assert_uint_eq(page->final_url.proxy_url_len, sizeof(url) - 1);
    ck_assert(memcmp(page->final_url.proxy_url_val, url, sizeof(url) - 1) == 0);
    ck_assert_uint_eq(page->body.body_len, 100000);
    ck_assert(memcmp(page->body.body_val, tiny.body, 100000) == 0);
    xdr_free((xdrproc_t)xdr_proxy_fetch_result, (char *)&result);
    args.url.proxy_url_len = 0;
    memset(&result, 0, sizeof(result));
    ck_assert_int_eq(proxy_get_2(&args, &result, client), RPC_SUCCESS);
    ck_assert_int_eq(result.status, PROXY_BAD_URL);
    ck_assert_str_eq(result.proxy_fetch_result_u.sentence, "no URL");
    xdr_free((xdrproc_t)xdr_proxy_fetch_result, (char *)&result);
    memset(&stats, 0, sizeof(stats));
    ck_assert_int_eq(proxy_stat_2(NULL, &stats, client), RPC_SUCCESS);
    ck_assert_uint_eq(stats.facts.facts_len, 1);
    ck_assert_str_eq(stats.facts.facts_val[0].name, "software");
    ck_assert_str_eq(stats.facts.facts_val[0].text, "test");
    ck_assert_uint_eq(stats.metrics.metrics_len, 2);
    ck_assert_uint_eq(stats.metrics.metrics_val[0].value, 3);
    ck_assert_str_eq(stats.metrics.metrics_val[1].name, "b{c=\"d\"}");
    ck_assert_uint_eq(stats.metrics.metrics_val[1].kind, 77);
    ck_assert_uint_eq(stats.metrics.metrics_val[1].value, UINT64_MAX);
    xdr_free((xdrproc_t)xdr_proxy_stats, (char *)&stats);
    memset(&purged, 0, sizeof(purged));
    ck_assert_int_eq(proxy_purge_2(&purge, &purged, client), RPC_SUCCESS);
    ck_assert_uint_eq(purged.proxy_purge_result_u.purged, 17);
    memset(&kept, 0, sizeof(kept));
    ck_assert_int_eq(proxy_set_2(&set, &kept, client), RPC_SYSTEMERROR);
    AWAIT(atomic_load(&freed) == 5);
    clnt_destroy(client);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc rpcgen");
    TCase *tcase = tcase_create("stubs");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, version_1_by_its_stub);
    tcase_add_test(tcase, version_1_has_errors_of_rpc_alone);
    tcase_add_test(tcase, a_url_that_announces_gibibytes);
    tcase_add_test(tcase, arguments_that_decode_in_part);
    tcase_add_test(tcase, version_2_by_its_stubs);
    suite_add_tcase(suite, tcase);
    return suite;
}
