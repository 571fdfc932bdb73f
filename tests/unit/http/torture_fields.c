/* Field lines that are written while memory runs out: whole, or the buffer says that they are not.
 */
#include "http/conditional.h"
#include "http/response_read.h"
#include "http/update.h"
#include "http/variant.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#define BYTES 65536
#define NOW 784111777

static char long_value[4000];

/* A head whose lines need several allocations. */
static void
fill_head(struct buf *head)
{
    memset(long_value, 'v', sizeof(long_value) - 1);
    buf_init(head, BYTES);
    for (int i = 0; i < 3; i++)
        buf_printf(head, "X-%d: %s\r\n", i, long_value);
    buf_append_str(head, "ETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 07:49:37 GMT\r\n");
    ck_assert(!buf_failed(head));
}

static void
write_stored(void *context)
{
    struct buf *head = context, out;
    struct http_storing_rules rules;
    bool whole;

    http_storing_rules_init(&rules);
    buf_init(&out, BYTES);
    whole = http_stored_fields(buf_span(head), &rules, NOW, &out);
    ck_assert(whole == !torture_failed() && whole == !buf_failed(&out));
    buf_free(&out);
}

static void
write_update(void *context)
{
    struct buf *head = context, out;
    struct http_storing_rules rules;
    bool whole;

    http_storing_rules_init(&rules);
    buf_init(&out, BYTES);
    whole =
        http_update_fields(buf_span(head), span_str("X-1: a\r\nDate: b\r\n"), &rules, NOW, &out);
    ck_assert(whole == !torture_failed() && whole == !buf_failed(&out));
    buf_free(&out);
}

static void
write_key(void *context)
{
    struct buf *head = context, out;
    struct http_vary vary;
    bool whole;

    http_vary_parse(&vary, span_str("X-1, Accept-Language, ETag"));
    buf_init(&out, BYTES);
    whole = http_variant_key(&vary, buf_span(head), &out);
    ck_assert(whole == !torture_failed());
    buf_free(&out);
}

static void
write_conditions(void *context)
{
    struct buf *head = context, out;

    buf_init(&out, BYTES);
    ck_assert(http_write_validation(buf_span(head), NOW, &out));
    http_write_not_modified(buf_span(head), &out);
    ck_assert(buf_failed(&out) == torture_failed());
    buf_free(&out);
}

static void
read_response(void *context)
{
    struct span lines = span_str("Location: /x\r\nA: b\r\n folded\r\nContent-Length: 5\r\n");
    struct http_response_head head;
    const char *malformed;
    bool no_memory;

    (void)context;
    malformed = http_response_head_read(&head, &(struct http_status_line){.version = 11, .status = 200}, lines,
                                 &no_memory);
    ck_assert((malformed != NULL) == torture_failed());
    ck_assert(no_memory == torture_failed());
    http_response_head_free(&head);
}

START_TEST(without_memory)
{
    void (*const bodies[])(void *) = {write_stored, write_update, write_key, write_conditions};
    struct buf head;

    fill_head(&head);
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        ck_assert_uint_ge(torture_walk(bodies[i], &head), 1);
    buf_free(&head);
    ck_assert_uint_ge(torture_walk(read_response, NULL), 2);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http: fields without memory");
    TCase *tests = tcase_create("fields");

    tcase_add_test(tests, without_memory);
    suite_add_tcase(suite, tests);
    return suite;
}
