/*
 * Bodies with a content coding that decode to more than max_body: of any length where the consumer
 * bounds them (REQUEST_STREAMS), unless a few bytes become very many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/buf.h"

#include "tests/unit/fetch/fixture.h"

#define DECODED 3000000u
#define BOUND 1000000u
#define ANY REQUEST_STREAMS

static char *plain; /* DECODED bytes */
static char coded[DECODED];

/* Each byte the same, or words that repeat less. */
static void
make_plain(bool same)
{
    for (unsigned i = 0; i < DECODED; i++)
        plain[i] = same ? 'a' : (char)('a' + i / 7 * (i / 7) % 13);
}

static size_t
code_gzip(void)
{
    z_stream zlib = {.next_in = (Bytef *)plain, .avail_in = DECODED, .next_out = (Bytef *)coded};

    ck_assert_int_eq(deflateInit2(&zlib, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    zlib.avail_out = sizeof(coded);
    ck_assert_int_eq(deflate(&zlib, Z_FINISH), Z_STREAM_END);
    deflateEnd(&zlib);
    return zlib.total_out;
}

static size_t
code_zstd(void)
{
    size_t len = ZSTD_compress(coded, sizeof(coded), plain, DECODED, 3);

    ck_assert(!ZSTD_isError(len));
    return len;
}

static const struct row {
    const char *coding;
    bool same;
    unsigned flags;
    bool fits;
} rows[] = {
    {"gzip", true, ANY, true},  {"gzip", false, ANY, true},
    {"zstd", false, ANY, true}, {"zstd", true, ANY, false}, /* more than 10,000 for each */
    {"gzip", true, 0, false},   {"gzip", false, 0, false},
};

START_TEST(bodies_over_the_bound)
{
    const struct row *row = &rows[_i];
    struct line script[2] = {{.path = "/"}, {.path = NULL}};
    struct request request = {.client = OUTCOME_CLIENT, .flags = row->flags};
    struct origin *origin;
    struct fetcher *fetcher;
    struct outcome o;
    struct buf answer;
    char url[64];
    size_t len;

    plain = malloc(DECODED);
    make_plain(row->same);
    len = strcmp(row->coding, "gzip") == 0 ? code_gzip() : code_zstd();
    buf_init(&answer, 2 * DECODED);
    buf_printf(&answer, "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %zu\r\n\r\n",
               row->coding, len);
    buf_append(&answer, coded, len);
    ck_assert(!buf_failed(&answer));
    script[0].bytes = answer.data;
    script[0].len = answer.len;
    origin = origin_start(script);
    config.max_body = BOUND;
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", origin->port);
    request.url = span_str(url);
    outcome_init(&o);
    ck_assert(submit_request(fetcher, &request, &outcome_sink, &o, NULL));
    outcome_wait(&o);
    ck_assert_msg(o.error == (row->fits ? FETCH_OK : FETCH_TOO_LARGE), "%d %s", o.error,
                  o.sentence);
    if (row->fits) {
        ck_assert_uint_eq(o.body_len, DECODED);
        ck_assert_mem_eq(o.body, plain, DECODED);
    } else {
        ck_assert_uint_le(o.body_len, BOUND);
        ck_assert_ptr_nonnull(strstr(o.sentence, "decoded to more than"));
    }
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
    buf_free(&answer);
    free(plain);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/coded", &tc);

    tcase_add_loop_test(tc, bodies_over_the_bound, 0, (int)(sizeof(rows) / sizeof(rows[0])));
    return suite;
}
