/* The binary formats: records that are read, cut, or read many at once. */
#include "tests/unit/trace/loading.h"

static const unsigned char oracle[] = {
    1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 5, 0, 0, 0, 3,   0,   0,   0,   0,   0,   0,   0,
    1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,    0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
    3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 5, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
};

/* The first, and the end of each id's requests written in the other way. */
static const unsigned char oracle_max[] = {
    1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 5, 0, 0, 0, 3,   0,   0,   0,   0,   0,   0,   0,
    1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,    0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 127,
    3, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0x80, 5, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 127,
};

static const unsigned char wc98[] = {
    0x35, 0x48, 0xed, 0x69, 0, 0, 0, 1, 0, 0, 0x0c, 0x88, 0,    0,    0,    9,    0, 0x42, 1, 0x60,
    0x35, 0x48, 0xed, 0x70, 0, 0, 0, 1, 0, 0, 0,    7,    0xff, 0xff, 0xff, 0xff, 1, 0x8d, 1, 0x60,
    0x35, 0x48, 0xed, 0x71, 0, 0, 0, 1, 0, 0, 0,    8,    0,    0,    0,    0,    8, 0x3f, 1, 0x60,
};

static const unsigned char ids[] = {0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1};

static const struct {
    const char *format;
    const void *bytes;
    size_t len;
    const char *requests;
} binaries[] = {
    {"oracle", oracle, sizeof(oracle), "9223372036854775817@1=5 2@1=256 9223372036854775817@3=5"},
    {"oracle", oracle_max, sizeof(oracle_max),
     "9223372036854775817@1=5 2@1=256 9223372036854775817@3=5"},
    {"wc98", wc98, sizeof(wc98), "3208@8.93972e+08=9/200 7@8.93972e+08/304 8@8.93972e+08=0/1"},
    {"cache2k", ids, sizeof(ids), "1 256 1"},
};

START_TEST(records)
{
    struct trace_options options = loading_all();
    struct trace *t = loading_bytes(binaries[_i].bytes, binaries[_i].len, options);

    ck_assert_str_eq(t->format, binaries[_i].format);
    ck_assert_str_eq(loading_picture(t), binaries[_i].requests);
    ck_assert_ptr_null(t->urls);
    trace_free(t);
    options.format = binaries[_i].format;
    scratch_write("cut", binaries[_i].bytes, binaries[_i].len - 1);
    ck_assert_int_eq(loading_refused(scratch_path("cut"), options), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(strstr(loading_why, "ends within a record"));
    options.limit = 1;
    t = loading_file(scratch_path("cut"), options);
    ck_assert_uint_eq(t->request_count, 1);
    trace_free(t);
}
END_TEST

/* Many at once or, as there is a limit, one by one: the same trace. */
START_TEST(many_records)
{
    enum { COUNT = 5000 };
    static unsigned char bytes[COUNT][24];
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *at_once, *singly, *without;

    for (unsigned i = 0; i < COUNT; i++) {
        unsigned id = i * i % 1237;

        bytes[i][0] = (unsigned char)(i / 20);
        bytes[i][4] = (unsigned char)id;
        bytes[i][11] = (unsigned char)(id >> 8);
        bytes[i][12] = (unsigned char)(i % 7);
        memset(&bytes[i][16], 0xff, 8);
    }
    memset(&bytes[COUNT / 2][12], 0xff, 4); /* more than can be kept */
    options.format = "oracle";
    at_once = loading_bytes(bytes, sizeof(bytes), options);
    options.limit = COUNT + 1;
    singly = loading_bytes(bytes, sizeof(bytes), options);
    options.limit = 0;
    options.without_times = true;
    options.without_sizes = true;
    without = loading_bytes(bytes, sizeof(bytes), options);

    ck_assert_uint_eq(at_once->request_count, COUNT);
    ck_assert_uint_eq(singly->request_count, COUNT);
    ck_assert_uint_eq(at_once->counts.requests, COUNT);
    ck_assert_uint_eq(at_once->url_count, singly->url_count);
    ck_assert_mem_eq(at_once->ids, singly->ids, COUNT * sizeof(*singly->ids));
    ck_assert_mem_eq(at_once->sizes, singly->sizes, COUNT * sizeof(*singly->sizes));
    ck_assert_mem_eq(at_once->times_us, singly->times_us, COUNT * sizeof(*singly->times_us));
    for (unsigned i = 0; i < COUNT; i++)
        ck_assert_uint_eq(at_once->numbers[at_once->ids[i]],
                          bytes[i][4] + ((uint64_t)bytes[i][11] << 56));
    ck_assert_ptr_null(without->times_us);
    ck_assert_ptr_null(without->sizes);
    ck_assert_mem_eq(without->ids, singly->ids, COUNT * sizeof(*singly->ids));
    ck_assert_str_eq(at_once->unit, "record");
    ck_assert_uint_eq(at_once->counts.large_sizes, 1);
    ck_assert_uint_eq(singly->counts.large_sizes, 1);
    ck_assert_uint_eq(without->counts.large_sizes, 0);
    trace_free(at_once);
    trace_free(singly);
    trace_free(without);
}
END_TEST

START_TEST(methods_of_the_world_cup)
{
    struct trace *t = loading_bytes(wc98, sizeof(wc98), TRACE_OPTIONS_DEFAULT);

    ck_assert_str_eq(loading_picture(t), "3208@8.93972e+08=9/200");
    ck_assert_uint_eq(t->counts.skipped_method, 2);
    trace_free(t);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("formats: binary");
    TCase *tcase = tcase_create("formats");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, records, 0, COUNT(binaries));
    tcase_add_test(tcase, many_records);
    tcase_add_test(tcase, methods_of_the_world_cup);
    suite_add_tcase(suite, tcase);
    return suite;
}
