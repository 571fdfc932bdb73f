/*
 * Writing, making up and looking at traces with each allocation failing in turn.
 */
#include <errno.h>

#include "tests/unit/torture.h"
#include "tests/unit/trace/loading.h"
#include "trace/facts.h"
#include "trace/generate.h"
#include "trace/write/write.h"

static char why[512];
static struct trace *subject;
static bool done;

static void
write_all(void *context)
{
    static const struct trace_write_options plain;
    const struct trace_writer *writer = context;
    bool good = trace_write(subject, writer, &plain, scratch_path("out"), why, sizeof(why));

    /* stdio may do without a buffer of ours; what is reported must be true. */
    if (!good)
        ck_assert_msg(torture_failed() && strstr(why, "memory") != NULL, "%s", why);
    done = good;
}

static void
make(void *context)
{
    struct generate_options options = ((const struct generate_workload *)context)->defaults;
    struct trace *t;
    uint8_t *writes;
    enum trace_error error;

    options.requests = 600;
    options.urls = 500;
    error = generate_trace(context, &options, &t, &writes, why, sizeof(why));
    if (torture_failed()) {
        ck_assert_msg(error == TRACE_NO_MEMORY, "%d: %s", (int)error, why);
        ck_assert_ptr_null(t);
        ck_assert_ptr_null(writes);
    }
    done = error == TRACE_OK;
    free(writes);
    trace_free(t);
}

static void
look(void *context)
{
    struct trace_facts facts;
    enum trace_error error = trace_facts_make(subject, 2, &facts);

    (void)context;
    if (error != TRACE_OK)
        ck_assert(error == TRACE_NO_MEMORY && torture_failed());
    done = error == TRACE_OK;
    trace_facts_free(&facts);
}

START_TEST(writing)
{
    subject = loading_text("time,url,size\n1,http://a.test/,1\n2,http://b.test/,2\n",
                           TRACE_OPTIONS_DEFAULT);
    done = false;
    torture_walk(write_all, (void *)(uintptr_t)trace_writers[_i]);
    ck_assert(done);
    trace_free(subject);
}
END_TEST

START_TEST(making)
{
    done = false;
    ck_assert_uint_ge(torture_walk(make, (void *)(uintptr_t)&generate_workloads[_i]), 5);
    ck_assert(done);
}
END_TEST

START_TEST(looking)
{
    subject = loading_text("time,url,size\n1,http://a.test/,1\n2,http://b.test/,2\n",
                           TRACE_OPTIONS_DEFAULT);
    done = false;
    ck_assert_uint_ge(torture_walk(look, NULL), 4);
    ck_assert(done);
    trace_free(subject);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("torture_write");
    TCase *tcase = tcase_create("torture");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, writing, 0, 4);
    tcase_add_loop_test(tcase, making, 0, 8);
    tcase_add_test(tcase, looking);
    suite_add_tcase(suite, tcase);
    return suite;
}
