/*
 * Traces that are compressed in four ways: in several members, cut short, damaged, or larger than
 * they may be.
 */
#include "tests/unit/trace/packing.h"
#include "trace/input.h"
#include "trace/formats/snapshot.h"

START_TEST(compressed)
{
    size_t len;
    char *text = packing_make_list(&len);
    size_t capacity = 2 * len + 4096;
    char *packed = malloc(capacity);
    size_t half = packers[_i](text, len, packed, capacity / 2);
    struct trace *t = loading_bytes(packed, half, TRACE_OPTIONS_DEFAULT);

    packing_check_list(t, 1);
    trace_free(t);
    /* Two of them on end are one. */
    memcpy(packed + half, packed, half);
    t = loading_bytes(packed, 2 * half, TRACE_OPTIONS_DEFAULT);
    packing_check_list(t, 2);
    trace_free(t);
    /* An end between them is an end; anywhere else it is not. */
    for (size_t cut = 8; cut < half; cut += half / 20 + 1) {
        scratch_write("cut", packed, half + cut);
        ck_assert_int_eq(loading_refused(scratch_path("cut"), TRACE_OPTIONS_DEFAULT),
                         TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(loading_why, "break off") != NULL, "%s", loading_why);
    }
    /* Damage is noticed: the middle is turned over. */
    for (size_t i = half / 2; i < half / 2 + 64; i++)
        packed[i] = (char)~packed[i];
    scratch_write("damaged", packed, half);
    ck_assert_int_eq(loading_refused(scratch_path("damaged"), TRACE_OPTIONS_DEFAULT),
                     TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "are damaged") != NULL, "%s", loading_why);
    free(packed);
    free(text);
}
END_TEST

START_TEST(nothing_compressed)
{
    char packed[256];
    size_t len = packers[_i]("", 0, packed, sizeof(packed));

    scratch_write("empty", packed, len);
    ck_assert_int_eq(loading_refused(scratch_path("empty"), TRACE_OPTIONS_DEFAULT), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(loading_why, "there is nothing in it"));
}
END_TEST

/* A few packed bytes of a history must not fill the disk. */
START_TEST(what_is_unpacked_has_a_ceiling)
{
    enum { LEN = 3 << 20 };
    static const struct {
        uint64_t most;
        enum trace_error error;
    } cases[] = {{LEN, TRACE_OK}, {LEN - 1, TRACE_NOT_A_TRACE}, {1 << 20, TRACE_NOT_A_TRACE}};
    char *zeros = calloc(1, LEN);
    static char packed[65536];
    size_t packed_len = pack_gzip(zeros, LEN, packed, sizeof(packed));

    free(zeros);
    scratch_write("History.gz", packed, packed_len);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct snapshot s;
        struct input *in;
        struct stat st;

        ck_assert_int_eq(
            input_open(scratch_path("History.gz"), 0, &in, loading_why, sizeof(loading_why)),
            TRACE_OK);
        ck_assert_int_eq(snapshot_save(&s, in, cases[i].most, loading_why, sizeof(loading_why)),
                         cases[i].error);
        if (cases[i].error == TRACE_OK) {
            ck_assert_int_eq(stat(s.path, &st), 0);
            ck_assert_int_eq(st.st_size, LEN);
            snapshot_remove(&s);
        } else {
            ck_assert_ptr_nonnull(
                strstr(loading_why, i == 1 ? "more than 2 MiB" : "more than 1 MiB"));
            ck_assert_int_eq(s.folder[0], '\0');
        }
        input_close(in);
    }
}
END_TEST

/* The first letters alone do not make a text a compressed one. */
START_TEST(a_text_like_bzip2)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    options.format = "ids";
    t = loading_text("BZhang\nBZh91\n", options);
    ck_assert_uint_eq(t->request_count, 2);
    trace_free(t);
}
END_TEST

START_TEST(padding_behind_gzip_is_ignored)
{
    static const char text[] = "http://a.test/\n";
    char packed[256] = "";
    size_t len = pack_gzip(text, sizeof(text) - 1, packed, 128);
    struct trace *t = loading_bytes(packed, len + 50, TRACE_OPTIONS_DEFAULT);

    ck_assert_uint_eq(t->request_count, 1);
    trace_free(t);
}
END_TEST

START_TEST(a_compressed_database)
{
    size_t len;
    char *bytes = packing_make_database(&len);
    char *packed = malloc(2 * len + 4096);
    size_t packed_len = packers[_i](bytes, len, packed, 2 * len + 4096);
    struct trace *t = loading_bytes(packed, packed_len, TRACE_OPTIONS_DEFAULT);
    char *parent = getenv("TMPDIR");

    ck_assert_str_eq(t->format, "chrome");
    ck_assert_str_eq(loading_picture(t), "http://a.test/@1 http://a.test/@2");
    trace_free(t);
    /* What breaks off is reported as that; that no copy stays, scratch_remove() sees. */
    scratch_write("cut", packed, packed_len - 1);
    parent = parent ? strdup(parent) : NULL;
    ck_assert_int_eq(setenv("TMPDIR", scratch_path("."), 1), 0);
    ck_assert_int_eq(loading_refused(scratch_path("cut"), TRACE_OPTIONS_DEFAULT),
                     TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "break off") != NULL, "%s", loading_why);
    if (parent)
        setenv("TMPDIR", parent, 1);
    else
        unsetenv("TMPDIR");
    free(parent);
    free(packed);
    free(bytes);
}
END_TEST

/* Compressed ids of which a part of the last one is there: no format, because it is cut. */
START_TEST(what_breaks_off_within_a_record)
{
    enum { MOST = 200002 };
    static const size_t lengths[] = {10, MOST};
    unsigned char *ids = calloc(1, MOST);
    char *packed = malloc(MOST);

    for (uint32_t i = 0, x = 1; i + 4 < MOST; i += 4, x = x * 1103515245 + 12345)
        memcpy(ids + i, (unsigned char[]){0, (unsigned char)(x >> 16), (unsigned char)(x >> 24), 1},
               4);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        size_t len = packers[_i]((const char *)ids, lengths[i], packed, MOST);

        scratch_write("cut", packed, len - 1);
        ck_assert_int_eq(loading_refused(scratch_path("cut"), TRACE_OPTIONS_DEFAULT),
                         TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(loading_why, "break off") != NULL, "%s", loading_why);
    }
    free(packed);
    free(ids);
}
END_TEST

/* A frame of one raw block, whose header asks for a window of 1 << bits bytes. */
START_TEST(zstd_windows_up_to_128_mib)
{
    static const char text[] = "http://a.test/\n";
    unsigned char frame[64] = {0x28, 0xb5, 0x2f, 0xfd, 0};
    size_t len = 6;

    frame[len++] = (sizeof(text) - 1) << 3 | 1; /* the last block */
    len += 2;
    memcpy(frame + len, text, sizeof(text) - 1);
    len += sizeof(text) - 1;
    for (unsigned bits = 26; bits <= 31; bits++) {
        frame[5] = (unsigned char)((bits - 10) << 3);
        if (bits <= 27) {
            trace_free(loading_bytes(frame, len, loading_all()));
            continue;
        }
        ck_assert_int_eq(loading_refused(scratch_write("frame", frame, len), loading_all()),
                         TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(loading_why, "zstd data need more than 128 MiB of memory") != NULL,
                      "%s", loading_why);
    }
}
END_TEST

/*
 * Blocks that repeat a byte: 4 bytes for 128 KiB; and blocks as they are. The text is a long line
 * and a request.
 */
static const struct {
    int repeated, raw;
    bool refused;
} bombs[] = {
    {100, 0, false}, /* 13 MB of 400 bytes */
    {600, 0, true},  /* 79 MB of 2.4 KB */
    {600, 5, false}, /* 79 MB of 658 KB */
    {8200, 5, true},
};

START_TEST(a_bomb_is_refused)
{
    enum { BLOCK = 128 * 1024 };
    static const char plain[BLOCK];
    static const unsigned char raw[] = {(BLOCK << 3) & 0xff, BLOCK << 3 >> 8 & 0xff,
                                        BLOCK << 3 >> 16};
    static const unsigned char begin[] = {0x28, 0xb5, 0x2f, 0xfd, 0, (17 - 10) << 3};
    static const unsigned char repeat[] = {(BLOCK << 3 | 1 << 1) & 0xff, BLOCK << 3 >> 8 & 0xff,
                                           BLOCK << 3 >> 16, 'x'};
    static const char text[] = "\nhttp://a.test/\n";
    struct trace_options options = loading_all();
    struct buf frame;
    const char *path;

    options.format = "urls";
    buf_init(&frame, 1 << 20);
    buf_append(&frame, begin, sizeof(begin));
    for (int i = 0; i < bombs[_i].raw; i++) {
        buf_append(&frame, raw, sizeof(raw));
        buf_append(&frame, plain, sizeof(plain));
    }
    for (int i = 0; i < bombs[_i].repeated; i++)
        buf_append(&frame, repeat, sizeof(repeat));
    buf_append_char(&frame, (char)((sizeof(text) - 1) << 3 | 1));
    buf_append(&frame, "\0", 2);
    ck_assert(buf_append(&frame, text, sizeof(text) - 1));
    path = scratch_write("bomb", frame.data, frame.len);
    buf_free(&frame);
    if (bombs[_i].refused) {
        ck_assert_int_eq(loading_refused(path, options), TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(loading_why, "more than 200 times as large") != NULL, "%s",
                      loading_why);
    } else {
        trace_free(loading_file(path, options));
    }
}
END_TEST

/* The size of the dictionary is a byte of the block's header, which has a checksum. */
START_TEST(xz_dictionaries_up_to_64_mib)
{
    enum { HEADER = 12, MIB_64 = 28, MIB_128 = 30, GIB_1_5 = 37 };
    static const uint8_t sizes[] = {MIB_64, MIB_128, GIB_1_5};
    uint8_t packed[256];
    size_t len = 0;
    uint8_t *block = packed + HEADER, *filter;

    ck_assert_int_eq(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL,
                                             (const uint8_t *)"http://a.test/\n", 15, packed, &len,
                                             sizeof(packed)),
                     LZMA_OK);
    filter = memmem(block, 20, "\x21\x01", 2);
    ck_assert_ptr_nonnull(filter);
    for (size_t i = 0; i < sizeof(sizes); i++) {
        size_t size = (block[0] + 1u) * 4;
        uint32_t sum;

        filter[2] = sizes[i];
        sum = lzma_crc32(block, size - 4, 0);
        for (size_t k = 0; k < 4; k++)
            block[size - 4 + k] = (uint8_t)(sum >> (8 * k));
        if (sizes[i] == MIB_64) {
            trace_free(loading_bytes(packed, len, loading_all()));
            continue;
        }
        ck_assert_int_eq(loading_refused(scratch_write("packed", packed, len), loading_all()),
                         TRACE_NOT_A_TRACE);
        ck_assert_msg(strstr(loading_why, "xz data need more than 128 MiB of memory") != NULL, "%s",
                      loading_why);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("input: compressed");
    TCase *tcase = tcase_create("input");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, compressed, 0, PACKERS);
    tcase_add_loop_test(tcase, nothing_compressed, 0, PACKERS);
    tcase_add_test(tcase, what_is_unpacked_has_a_ceiling);
    tcase_add_test(tcase, a_text_like_bzip2);
    tcase_add_test(tcase, padding_behind_gzip_is_ignored);
    tcase_add_loop_test(tcase, a_compressed_database, 0, PACKERS);
    tcase_add_loop_test(tcase, what_breaks_off_within_a_record, 0, PACKERS);
    tcase_add_test(tcase, zstd_windows_up_to_128_mib);
    tcase_add_loop_test(tcase, a_bomb_is_refused, 0, (int)(sizeof(bombs) / sizeof(bombs[0])));
    tcase_add_test(tcase, xz_dictionaries_up_to_64_mib);
    suite_add_tcase(suite, tcase);
    return suite;
}
