/*
 * What `sunproxy get` sends over HTTP and how it reads what a cache says: the target, the fields,
 * the body, Cache-Status, and addresses of servers.
 */
#define UNIT_STARTS_NO_THREAD

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/address.h"
#include "client/get/get_cache_status.h"
#include "client/get/get_request.h"
#include "tests/unit/unit.h"

/* ---- targets --------------------------------------------------------------------------------- */

START_TEST(targets_are_in_absolute_form)
{
    static const struct {
        const char *url, *target, *host, *credentials;
    } rows[] = {
        {"http://a.test/b?c#d", "http://a.test/b?c", "a.test", NULL},
        {"https://a.test:8443", "https://a.test:8443/", "a.test:8443", NULL},
        {"HTTP://A.test/%7e", "http://A.test/%7e", "A.test", NULL},
        {"http://[::1]:80/", "http://[::1]:80/", "[::1]:80", NULL},
        {"http://u%40x:p%3a@a.test/", "http://a.test/", "a.test", "u@x:p:"},
        {"http://u@a.test/", "http://a.test/", "a.test", "u:"},
        {"http://a.test/\xc3\xbc/%zz?x=\xc3\xbc+%20", "http://a.test/%c3%bc/%zz?x=%c3%bc+%20",
         "a.test", NULL},
        {"http://a.test/%C3?%C3", "http://a.test/%C3?%C3", "a.test", NULL},
        {"http://b\xc3\xbc"
         "cher.test:81/",
         "http://xn--bcher-kva.test:81/", "xn--bcher-kva.test:81", NULL},
    };

    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct get_target target;

        ck_assert_ptr_null(get_target_parse(&target, rows[i].url));
        ck_assert_str_eq(target.url, rows[i].target);
        ck_assert_str_eq(target.host, rows[i].host);
        if (rows[i].credentials)
            ck_assert_str_eq(target.credentials, rows[i].credentials);
        else
            ck_assert_ptr_null(target.credentials);
        get_target_free(&target);
    }
}
END_TEST

START_TEST(some_urls_have_no_target)
{
    static const char *const urls[] = {"ftp://a.test/",      "http://",
                                       "http://a b/",        "http://a.test:x/",
                                       "file:///etc/passwd", "http://a.test/\r\nX: y",
                                       "http://a.test/a b",  "http://\xff.test/"};
    struct get_target target;
    char *longest = malloc(PROXY_MAX_URL + 20);

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        ck_assert_msg(get_target_parse(&target, urls[i]) != NULL, "%s", urls[i]);
    ck_assert_ptr_nonnull(longest);
    memset(longest, 'x', PROXY_MAX_URL + 19);
    memcpy(longest, "http://a/", 9);
    longest[PROXY_MAX_URL + 1] = '\0';
    ck_assert_str_eq(get_target_parse(&target, longest), "the URL is too long");
    longest[PROXY_MAX_URL] = '\0';
    ck_assert_ptr_null(get_target_parse(&target, longest));
    get_target_free(&target);
    free(longest);
}
END_TEST

START_TEST(redirects_may_be_relative_and_may_lead_elsewhere)
{
    static const struct {
        const char *from, *location, *url, *credentials;
        bool elsewhere;
    } rows[] = {
        {"http://u:p@a.test/b/c", "d", "http://a.test/b/d", "u:p", false},
        {"http://u:p@a.test/b", "http://a.test:80/e", "http://a.test:80/e", "u:p", false},
        {"http://u:p@a.test/b", "//c.test/", "http://c.test/", NULL, true},
        {"http://u:p@a.test/b", "https://a.test/", "https://a.test/", NULL, true},
        {"http://a.test/b", "http://a.test:81/", "http://a.test:81/", NULL, true},
        {"http://a.test/b", "/with space", "http://a.test/with%20space", NULL, false},
        {"http://a.test/b", "//x:y@c.test/#f", "http://c.test/", "x:y", true},
        {"http://a.test/b", "?\xc3\xbc", "http://a.test/b?%c3%bc", NULL, false},
    };
    struct get_target target;
    bool elsewhere;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ck_assert_ptr_null(get_target_parse(&target, rows[i].from));
        ck_assert_ptr_null(get_target_follow(&target, span_str(rows[i].location), &elsewhere));
        ck_assert_str_eq(target.url, rows[i].url);
        ck_assert_msg(elsewhere == rows[i].elsewhere, "%s", rows[i].location);
        ck_assert_str_eq(target.credentials ? target.credentials : "none",
                         rows[i].credentials ? rows[i].credentials : "none");
        get_target_free(&target);
    }
    ck_assert_ptr_null(get_target_parse(&target, "http://a.test/"));
    ck_assert_str_eq(get_target_follow(&target, span_str("ftp://a.test/"), &elsewhere),
                     "only http and https URLs can be fetched");
    ck_assert_ptr_null(target.url);
}
END_TEST

/* ---- fields ---------------------------------------------------------------------------------- */

static char user_agent[] = "User-Agent: sunproxy/" SUNPROXY_VERSION "\n";

static struct get_options options;
static struct buf lines;

static void
set_up(void)
{
    options = (struct get_options){.http = "h:1"};
    buf_init(&options.headers, PROXY_MAX_HEADERS);
    buf_init(&lines, 100000);
}

static void
tear_down(void)
{
    buf_free(&options.headers);
    buf_free(&lines);
    get_data_free(&options.data);
}

/* The fields of a request for http://u:p@a.test/. */
static const char *
fields_with(bool has_body, int64_t length, bool elsewhere)
{
    struct get_target target;
    struct get_fields fields = {
        .target = &target, .has_body = has_body, .length = length, .elsewhere = elsewhere};

    struct curl_slist *list;

    ck_assert_ptr_null(get_target_parse(&target, "http://u:p@a.test/"));
    buf_reset(&lines);
    list = get_request_lines(&options, &fields);
    ck_assert_ptr_nonnull(list);
    for (const struct curl_slist *line = list; line; line = line->next)
        buf_printf(&lines, "%s\n", line->data);
    curl_slist_free_all(list);
    get_target_free(&target);
    return buf_str(&lines);
}

START_TEST(fields_follow_the_options)
{
    char wanted[512];

    snprintf(wanted, sizeof(wanted), "Host: a.test\n%sAccept: */*\nAuthorization: Basic dTpw\n",
             user_agent);
    ck_assert_str_eq(fields_with(false, 0, false), wanted);
    options.range = "0-4";
    options.max_age = "5";
    options.only_if_cached = true;
    snprintf(wanted, sizeof(wanted),
             "Host: a.test\n%sAccept: */*\nAuthorization: Basic dTpw\nRange: bytes=0-4\n"
             "Cache-Control: max-age=5, only-if-cached\n",
             user_agent);
    ck_assert_str_eq(fields_with(false, 0, false), wanted);
    options.max_age = NULL;
    options.only_if_cached = false;
    options.no_cache = options.no_store = true;
    ck_assert_ptr_nonnull(
        strstr(fields_with(false, 0, false), "\nCache-Control: no-cache, no-store\n"));
    options.no_cache = false;
    ck_assert_ptr_nonnull(strstr(fields_with(false, 0, false), "\nCache-Control: no-store\n"));
}
END_TEST

START_TEST(a_body_has_a_type_and_a_large_one_is_announced)
{
    static const char type[] = "\nContent-Type: application/x-www-form-urlencoded\n";

    ck_assert_ptr_nonnull(strstr(fields_with(true, 10, false), type));
    ck_assert_ptr_nonnull(strstr(buf_str(&lines), "\nExpect:\n")); /* libcurl's is not sent */
    fields_with(true, 2 << 20, false);
    ck_assert_ptr_null(strstr(buf_str(&lines), "Expect"));
    fields_with(true, -1, false);
    ck_assert_ptr_null(strstr(buf_str(&lines), "Expect"));
    buf_append_str(&options.headers, "content-type: a/b\r\nExpect: 100-continue\r\n");
    fields_with(true, 10, false);
    ck_assert_ptr_null(strstr(buf_str(&lines), "Content-Type"));
    ck_assert_ptr_nonnull(strstr(buf_str(&lines), "content-type: a/b\nExpect: 100-continue\n"));
    ck_assert_ptr_null(strstr(buf_str(&lines), "Expect:\n"));
}
END_TEST

START_TEST(given_headers_replace_others_and_secrets_stay)
{
    char wanted[512];

    buf_append_str(&options.headers, "host: other\r\nAccept:\r\nX-Empty;\r\nCookie: c\r\n"
                                     "AUTHORIZATION: mine\r\nrange: bytes=1-2\r\n");
    options.range = "0-4";
    snprintf(wanted, sizeof(wanted),
             "%shost: other\nAccept:\nX-Empty;\nCookie: c\nAUTHORIZATION: mine\n"
             "range: bytes=1-2\n",
             user_agent);
    ck_assert_str_eq(fields_with(false, 0, false), wanted);
    snprintf(wanted, sizeof(wanted), "Host: a.test\n%sAccept:\nX-Empty;\nrange: bytes=1-2\n",
             user_agent);
    ck_assert_str_eq(fields_with(false, 0, true), wanted);
}
END_TEST

START_TEST(the_method_follows_the_options)
{
    ck_assert_str_eq(get_request_method(&options), "GET");
    options.head = true;
    ck_assert_str_eq(get_request_method(&options), "HEAD");
    options.head = false;
    ck_assert(get_data_add(&options.data, GET_DATA_RAW, "x"));
    ck_assert_str_eq(get_request_method(&options), "POST");
    options.method = "PUT";
    ck_assert_str_eq(get_request_method(&options), "PUT");
}
END_TEST

/* ---- data ------------------------------------------------------------------------------------ */

static char path[64];

static void
write_file(const char *bytes, size_t len)
{
    FILE *file;

    if (!*path) {
        strcpy(path, "@/tmp/test-data-XXXXXX");
        close(mkstemp(path + 1));
    }
    file = fopen(path + 1, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

/* Reads all in pieces of `size` bytes; the length. */
static size_t
read_all(struct get_data_reader *reader, char *text, size_t room, size_t size)
{
    size_t len = 0, piece;

    while (len + size <= room && (piece = get_data_read(reader, text + len, size)) != 0)
        len += piece;
    return len;
}

START_TEST(data_are_joined)
{
    static const char wanted[] = "a=1&abc&a\r\nb\0c&@x&";
    char text[256];

    write_file("a\r\nb\0c", 6);
    ck_assert(get_data_add(&options.data, GET_DATA_FORM, "a=1"));
    ck_assert(get_data_add(&options.data, GET_DATA_FORM, path));
    ck_assert(get_data_add(&options.data, GET_DATA_BINARY, path));
    ck_assert(get_data_add(&options.data, GET_DATA_RAW, "@x"));
    ck_assert(get_data_add(&options.data, GET_DATA_FORM, ""));
    ck_assert_int_eq(get_data_length(&options.data), -1); /* the files were not looked at */
    ck_assert_int_eq(get_data_prepare(&options.data), EX_OK);
    ck_assert_int_eq(get_data_length(&options.data), sizeof(wanted) - 1);
    for (size_t size = 1; size < 30; size++) {
        struct get_data_reader reader = {.data = &options.data};

        for (int round = 0; round < 2; round++) {
            ck_assert_uint_eq(read_all(&reader, text, sizeof(text), size), sizeof(wanted) - 1);
            ck_assert_mem_eq(text, wanted, sizeof(wanted) - 1);
            ck_assert(!reader.failed);
            ck_assert(get_data_rewind(&reader));
        }
        get_data_close(&reader);
    }
    unlink(path + 1);
    *path = '\0';
}
END_TEST

START_TEST(a_file_that_changes_is_noticed)
{
    for (int longer = 0; longer < 2; longer++) {
        struct get_data data = {.parts = NULL};
        struct get_data_reader reader = {.data = &data};
        char text[64];

        write_file("12345", 5);
        ck_assert(get_data_add(&data, GET_DATA_BINARY, path));
        ck_assert_int_eq(get_data_prepare(&data), EX_OK);
        write_file("1234567", longer ? 7 : 3);
        read_all(&reader, text, sizeof(text), 8);
        ck_assert(reader.failed);
        get_data_close(&reader);
        get_data_free(&data);
    }
    unlink(path + 1);
    *path = '\0';
}
END_TEST

START_TEST(standard_input_is_read_once)
{
    struct get_data_reader reader = {.data = &options.data};
    int pipes[2], before = dup(STDIN_FILENO);
    char text[16];

    ck_assert_int_eq(pipe(pipes), 0);
    ck_assert_int_eq(write(pipes[1], "x\ny", 3), 3);
    close(pipes[1]);
    dup2(pipes[0], STDIN_FILENO);
    close(pipes[0]);
    ck_assert(get_data_add(&options.data, GET_DATA_FORM, "@-"));
    ck_assert(options.data.uses_stdin);
    ck_assert_int_eq(get_data_prepare(&options.data), EX_OK);
    ck_assert_int_eq(get_data_length(&options.data), -1);
    ck_assert(get_data_rewind(&reader)); /* nothing was read yet */
    ck_assert_uint_eq(read_all(&reader, text, sizeof(text), 4), 2);
    ck_assert_mem_eq(text, "xy", 2);
    ck_assert(!get_data_rewind(&reader));
    get_data_close(&reader);
    dup2(before, STDIN_FILENO);
    close(before);
}
END_TEST

/* ---- Cache-Status ---------------------------------------------------------------------------- */

START_TEST(cache_status_names_the_source)
{
    static const struct {
        const char *fields;
        int source;
        bool stored;
        unsigned age;
        const char *text;
    } rows[] = {
        {"", GET_SOURCE_UNKNOWN, false, 0, ""},
        {"Cache-Status: c; hit; ttl=5\r\nAge: 7\r\n", PROXY_HIT, false, 7, "c; hit; ttl=5"},
        {"Cache-Status: c; hit; ttl=-5\r\n", PROXY_STALE, false, 0, "c; hit; ttl=-5"},
        {"Cache-Status: c;hit=?1\r\n", PROXY_HIT, false, 0, "c;hit=?1"},
        {"Cache-Status: c;hit=?0;fwd=miss\r\n", PROXY_MISS, false, 0, "c;hit=?0;fwd=miss"},
        {"cache-status: c; fwd=uri-miss; stored\r\n", PROXY_MISS, true, 0,
         "c; fwd=uri-miss; stored"},
        {"Cache-Status: c; fwd=vary-miss; collapsed\r\n", PROXY_COALESCED, false, 0,
         "c; fwd=vary-miss; collapsed"},
        {"Cache-Status: c; fwd=stale; fwd-status=304\r\n", PROXY_REVALIDATED, false, 0,
         "c; fwd=stale; fwd-status=304"},
        {"Cache-Status: c; fwd=stale; fwd-status=503; ttl=-9\r\n", PROXY_STALE, false, 0,
         "c; fwd=stale; fwd-status=503; ttl=-9"},
        {"Cache-Status: c; fwd=stale\r\n", PROXY_MISS, false, 0, "c; fwd=stale"},
        {"Cache-Status: c; fwd=request; fwd-status=200\r\n", PROXY_MISS, false, 0,
         "c; fwd=request; fwd-status=200"},
        {"Cache-Status: c; fwd=method\r\n", PROXY_BYPASS, false, 0, "c; fwd=method"},
        {"Cache-Status: c; fwd=bypass\r\n", PROXY_BYPASS, false, 0, "c; fwd=bypass"},
        {"Cache-Status: c; fwd=partial\r\n", PROXY_BYPASS, false, 0, "c; fwd=partial"},
        /* The cache that is nearest to the client stands last, also on a line of its own. */
        {"Cache-Status: far; hit, near; fwd=miss\r\n", PROXY_MISS, false, 0, "near; fwd=miss"},
        {"Cache-Status: far; fwd=miss\r\nX: y\r\nCache-Status: near; hit\r\n", PROXY_HIT, false, 0,
         "near; hit"},
        /* A string may have what separates. */
        {"Cache-Status: \"a; hit, b\"; fwd=miss; detail=\"x; hit\\\"; stored\"\r\n", PROXY_MISS,
         false, 0, "\"a; hit, b\"; fwd=miss; detail=\"x; hit\\\"; stored\""},
        {"Cache-Status: c\r\nAge: x\r\n", GET_SOURCE_UNKNOWN, false, 0, "c"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct get_answer answer;

        get_answer_init(&answer, "http://a.test/", 1);
        buf_printf(&answer.page.head, "HTTP/1.1 200 OK\r\n%s", rows[i].fields);
        answer.page.status = 200;
        get_read_cache_status(&answer.page);
        ck_assert_msg(answer.page.source == rows[i].source, "%s: %d", rows[i].fields,
                      answer.page.source);
        ck_assert_msg(answer.page.stored == rows[i].stored, "%s", rows[i].fields);
        ck_assert_uint_eq(answer.page.age, rows[i].age);
        ck_assert_str_eq(buf_str(&answer.page.cache_status), rows[i].text);
        get_answer_free(&answer);
    }
}
END_TEST

/* ---- addresses ------------------------------------------------------------------------------- */

START_TEST(addresses_of_servers)
{
    static const char *const wrong[] = {"",      "host", "host:", "host:0",  "host:65536",
                                        "unix:", ":80",  "[]:80", "host:8x", "[::1]80"};
    struct server_address address;
    char longest[300];

    ck_assert(server_address_parse(&address, "localhost:3128"));
    ck_assert_ptr_null(address.path);
    ck_assert_str_eq(address.host, "localhost");
    ck_assert_uint_eq(address.port, 3128);
    ck_assert(server_address_parse(&address, "[::1]:1"));
    ck_assert_str_eq(address.host, "::1");
    ck_assert(server_address_parse(&address, "unix:/a:b"));
    ck_assert_str_eq(address.path, "/a:b");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_msg(!server_address_parse(&address, wrong[i]), "%s", wrong[i]);
    memset(longest, 'h', sizeof(longest));
    strcpy(longest + 256, ":80");
    ck_assert(!server_address_parse(&address, longest));
    strcpy(longest + 255, ":80");
    ck_assert(server_address_parse(&address, longest));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("requests of get");
    TCase *tcase = tcase_create("requests of get");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, targets_are_in_absolute_form);
    tcase_add_test(tcase, some_urls_have_no_target);
    tcase_add_test(tcase, redirects_may_be_relative_and_may_lead_elsewhere);
    tcase_add_test(tcase, fields_follow_the_options);
    tcase_add_test(tcase, a_body_has_a_type_and_a_large_one_is_announced);
    tcase_add_test(tcase, given_headers_replace_others_and_secrets_stay);
    tcase_add_test(tcase, the_method_follows_the_options);
    tcase_add_test(tcase, data_are_joined);
    tcase_add_test(tcase, a_file_that_changes_is_noticed);
    tcase_add_test(tcase, standard_input_is_read_once);
    tcase_add_test(tcase, cache_status_names_the_source);
    tcase_add_test(tcase, addresses_of_servers);
    suite_add_tcase(suite, tcase);
    return suite;
}
