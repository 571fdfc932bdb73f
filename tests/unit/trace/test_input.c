/*
 * Where the bytes of a trace come from: compressed in four ways, in several members, cut short,
 * damaged; from standard input; lines of any length; files that change while they are read.
 */
#include "trace/input.h"

#include <bzlib.h>
#include <fcntl.h>
#include <lzma.h>
#include <pthread.h>
#include <sqlite3.h>
#include <time.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/trace/loading.h"
#include "trace/snapshot.h"

#define LINES 20000

/* A list of URLs of about a megabyte. */
static char *
make_list(size_t *len)
{
    char *text = malloc(LINES * 64);

    *len = 0;
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < LINES; i++)
        *len += (size_t)sprintf(text + *len, "http://host%d.test/some/longer/path/%d\t%d\n", i % 7,
                                i % 5000, i);
    return text;
}

static size_t
pack_gzip(const char *text, size_t len, char *out, size_t capacity)
{
    z_stream z = {0};

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text;
    z.avail_in = (unsigned)len;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)capacity;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return capacity - z.avail_out;
}

static size_t
pack_bzip2(const char *text, size_t len, char *out, size_t capacity)
{
    unsigned packed = (unsigned)capacity;

    ck_assert_int_eq(
        BZ2_bzBuffToBuffCompress(out, &packed, (char *)(uintptr_t)text, (unsigned)len, 1, 0, 0),
        BZ_OK);
    return packed;
}

static size_t
pack_xz(const char *text, size_t len, char *out, size_t capacity)
{
    size_t at = 0;

    ck_assert_int_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, len,
                                             (uint8_t *)out, &at, capacity),
                     LZMA_OK);
    return at;
}

static size_t
pack_zstd(const char *text, size_t len, char *out, size_t capacity)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t packed;

    /* With the checksum that the program zstd writes. */
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    packed = ZSTD_compress2(context, out, capacity, text, len);
    ck_assert(!ZSTD_isError(packed));
    ZSTD_freeCCtx(context);
    return packed;
}

static size_t (*const packers[])(const char *text, size_t len, char *out,
                                 size_t capacity) = {pack_gzip, pack_bzip2, pack_xz, pack_zstd};

#define PACKERS ((int)(sizeof(packers) / sizeof(packers[0])))

static void
check_list(const struct trace *t, size_t times)
{
    ck_assert_uint_eq(t->request_count, LINES * times);
    ck_assert_uint_eq(t->counts.skipped_bad, 0);
    for (uint32_t i = 0; i < t->request_count; i++)
        ck_assert_uint_eq(t->sizes[i], i % LINES);
}

START_TEST(compressed)
{
    size_t len;
    char *text = make_list(&len);
    size_t capacity = 2 * len + 4096;
    char *packed = malloc(capacity);
    size_t half = packers[_i](text, len, packed, capacity / 2);
    struct trace *t = loading_bytes(packed, half, TRACE_OPTIONS_DEFAULT);

    check_list(t, 1);
    trace_free(t);
    /* Two of them on end are one. */
    memcpy(packed + half, packed, half);
    t = loading_bytes(packed, 2 * half, TRACE_OPTIONS_DEFAULT);
    check_list(t, 2);
    trace_free(t);
    /* An end between them is an end; anywhere else it is not. */
    for (size_t cut = 8; cut < half; cut += half / 50 + 1) {
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

/* Standard input from a file, with the old one put back. */
static int
redirect(const char *path)
{
    int saved = dup(STDIN_FILENO);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_ge(dup2(fd, STDIN_FILENO), 0);
    close(fd);
    return saved;
}

static void
restore(int saved)
{
    if (saved >= 0) {
        dup2(saved, STDIN_FILENO);
        close(saved);
    } else {
        close(STDIN_FILENO);
    }
}

struct feed {
    int fd;
    const char *bytes;
    size_t len;
};

/* In small pieces, as a slow program writes them. */
static void *
feed(void *argument)
{
    struct feed *f = argument;

    for (size_t at = 0; at < f->len;) {
        size_t piece = f->len - at < 1009 ? f->len - at : 1009;
        ssize_t n = write(f->fd, f->bytes + at, piece);

        if (n <= 0)
            break;
        at += (size_t)n;
    }
    close(f->fd);
    return NULL;
}

struct late_feed {
    const char *path;
    const char *bytes;
    size_t len;
};

/* Opens a FIFO for writing when it has a reader, and a moment later. */
static void *
feed_late(void *argument)
{
    struct late_feed *late = argument;
    struct feed f = {.bytes = late->bytes, .len = late->len};
    struct timespec moment = {.tv_nsec = 50 * 1000 * 1000};

    nanosleep(&moment, NULL);
    f.fd = open(late->path, O_WRONLY | O_CLOEXEC);
    return f.fd < 0 ? NULL : feed(&f);
}

START_TEST(standard_input)
{
    size_t len;
    char *text = make_list(&len);
    char *packed = malloc(len);
    size_t packed_len = pack_zstd(text, len, packed, len);
    int saved = dup(STDIN_FILENO);
    struct trace *t;

    for (int round = 0; round < 2; round++) {
        struct feed f = {.bytes = round ? packed : text, .len = round ? packed_len : len};
        pthread_t thread;
        int ends[2];

        ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
        ck_assert_int_ge(dup2(ends[0], STDIN_FILENO), 0);
        close(ends[0]);
        /* Whoever made the pipe may have made it non-blocking. */
        if (round)
            ck_assert_int_eq(fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK), 0);
        f.fd = ends[1];
        ck_assert_int_eq(pthread_create(&thread, NULL, feed, &f), 0);
        t = loading_file("-", TRACE_OPTIONS_DEFAULT);
        pthread_join(thread, NULL);
        check_list(t, 1);
        trace_free(t);
    }
    restore(saved);
    free(packed);
    free(text);
}
END_TEST

/* A FIFO that is opened before its writer comes, as a shell's <(...) may be. */
START_TEST(a_fifo)
{
    size_t len;
    char *text = make_list(&len);
    struct late_feed late = {.path = scratch_path("fifo"), .bytes = text, .len = len};
    pthread_t thread;
    struct trace *t;

    ck_assert_int_eq(mkfifo(late.path, 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed_late, &late), 0);
    t = loading_file(late.path, TRACE_OPTIONS_DEFAULT);
    pthread_join(thread, NULL);
    check_list(t, 1);
    trace_free(t);
    free(text);
}
END_TEST

/* A database of some pages, as bytes. */
static char *
make_database(size_t *len)
{
    sqlite3 *db;
    char path[256];
    char *bytes;

    snprintf(path, sizeof(path), "%s", scratch_path("db"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
                                  "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER,"
                                  " visit_time INTEGER, transition INTEGER);"
                                  "INSERT INTO urls VALUES(1,'http://a.test/');"
                                  "INSERT INTO visits VALUES(1,1,11644473601000000,0),"
                                  "(2,1,11644473602000000,0);",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    bytes = scratch_read(path, len);
    unlink(path);
    return bytes;
}

START_TEST(a_compressed_database)
{
    size_t len;
    char *bytes = make_database(&len);
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

START_TEST(a_database_from_standard_input)
{
    size_t len;
    char *bytes = make_database(&len);
    int saved = redirect(scratch_write("db", bytes, len));
    struct trace *t = loading_file("-", TRACE_OPTIONS_DEFAULT);

    restore(saved);
    ck_assert_str_eq(loading_picture(t), "http://a.test/@1 http://a.test/@2");
    trace_free(t);
    free(bytes);
}
END_TEST

/* What stop_fd says is heard in every form that a trace comes in, and no sentence is made of it. */
START_TEST(loading_that_is_stopped)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    size_t len, list_len;
    char *bytes = make_database(&len), *list = make_list(&list_len);
    char *packed = malloc(list_len);
    int stop[2];

    ck_assert_ptr_nonnull(packed);
    ck_assert_int_eq(pipe2(stop, O_CLOEXEC), 0);
    ck_assert_int_eq(write(stop[1], "", 1), 1);
    options.stop_fd = stop[0];
    for (int form = 0; form < 4; form++) {
        const char *path =
            form == 0 ? scratch_write("stopped", list, list_len)
            : form == 1
                ? scratch_write("stopped", packed, pack_zstd(list, list_len, packed, list_len))
            : form == 2 ? scratch_write("stopped", bytes, len)
                        : scratch_write("stopped", packed, pack_zstd(bytes, len, packed, list_len));

        ck_assert_int_eq(loading_refused(path, options), TRACE_STOPPED);
    }
    close(stop[0]);
    close(stop[1]);
    free(packed);
    free(list);
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

START_TEST(lines_of_any_length)
{
    /* Around the sizes of the buffer, whole and in front of more. */
    static const size_t lengths[] = {1, 262142, 262143, 262144, 262145, 524288, 1000000, 1000001};
    size_t capacity = 4U << 20U;
    char *text = malloc(capacity);
    struct input *in;
    struct span line;
    bool too_long;
    size_t len = 0;
    size_t count = sizeof(lengths) / sizeof(lengths[0]);

    for (size_t i = 0; i < count; i++) {
        memset(text + len, 'a' + (int)i, lengths[i]);
        len += lengths[i];
        memcpy(text + len, i % 2 ? "\r\n" : "\n\n", 2);
        len += 2;
    }
    len -= 2; /* the last line has no end */
    ck_assert_int_eq(input_open(scratch_write("lines", text, len), 0, &in, loading_why, 100),
                     TRACE_OK);
    for (size_t i = 0; i < count; i++) {
        ck_assert(input_line(in, 1000000, &line, &too_long));
        ck_assert_int_eq(too_long, lengths[i] > 1000000);
        if (!too_long)
            ck_assert_uint_eq(line.len, lengths[i]);
        ck_assert_int_eq(line.ptr[0], 'a' + (int)i);
        ck_assert_int_eq(line.ptr[line.len - 1], 'a' + (int)i);
        if (i % 2 == 0) {
            ck_assert(input_line(in, 1000000, &line, &too_long));
            ck_assert_uint_eq(line.len, 0);
        }
    }
    ck_assert(!input_line(in, 1000000, &line, &too_long));
    ck_assert_int_eq(input_finish(in, true, loading_why, 100), TRACE_OK);
    input_close(in);
    free(text);
}
END_TEST

/* Reads a line, lets another process change the file, and reads the rest. */
static enum trace_error
read_changed(off_t new_len)
{
    size_t len;
    char *text = make_list(&len);
    struct input *in;
    struct span line;
    bool too_long;
    enum trace_error error;

    ck_assert_int_eq(input_open(scratch_write("list", text, len), 0, &in, loading_why, 512),
                     TRACE_OK);
    ck_assert(input_line(in, 1000, &line, &too_long));
    ck_assert_int_eq(truncate(scratch_path("list"), (off_t)len + new_len), 0);
    while (input_line(in, 1000000, &line, &too_long))
        continue;
    error = input_finish(in, true, loading_why, sizeof(loading_why));
    input_close(in);
    free(text);
    return error;
}

START_TEST(files_that_change)
{
    ck_assert_int_eq(read_changed(-300000), TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(loading_why, "changed while it was read"));
    ck_assert_int_eq(read_changed(10), TRACE_CANNOT_OPEN);
    ck_assert_int_eq(read_changed(0), TRACE_OK);
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
    Suite *suite = suite_create("input");
    TCase *tcase = tcase_create("input");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, compressed, 0, PACKERS);
    tcase_add_loop_test(tcase, nothing_compressed, 0, PACKERS);
    tcase_add_test(tcase, what_is_unpacked_has_a_ceiling);
    tcase_add_test(tcase, a_text_like_bzip2);
    tcase_add_test(tcase, padding_behind_gzip_is_ignored);
    tcase_add_test(tcase, standard_input);
    tcase_add_test(tcase, a_fifo);
    tcase_add_loop_test(tcase, a_compressed_database, 0, PACKERS);
    tcase_add_test(tcase, a_database_from_standard_input);
    tcase_add_test(tcase, loading_that_is_stopped);
    tcase_add_loop_test(tcase, what_breaks_off_within_a_record, 0, PACKERS);
    tcase_add_test(tcase, lines_of_any_length);
    tcase_add_test(tcase, files_that_change);
    tcase_add_test(tcase, zstd_windows_up_to_128_mib);
    tcase_add_loop_test(tcase, a_bomb_is_refused, 0, (int)(sizeof(bombs) / sizeof(bombs[0])));
    tcase_add_test(tcase, xz_dictionaries_up_to_64_mib);
    suite_add_tcase(suite, tcase);
    return suite;
}
