/*
 * Where the bytes of a trace come from: files, standard input and FIFOs; lines of any length; files
 * that change while they are read.
 */
#include "trace/input.h"

#include <fcntl.h>
#include <pthread.h>
#include <time.h>

#include "tests/unit/trace/packing.h"

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
    char *text = packing_make_list(&len);
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
        packing_check_list(t, 1);
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
    char *text = packing_make_list(&len);
    struct late_feed late = {.path = scratch_path("fifo"), .bytes = text, .len = len};
    pthread_t thread;
    struct trace *t;

    ck_assert_int_eq(mkfifo(late.path, 0600), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, feed_late, &late), 0);
    t = loading_file(late.path, TRACE_OPTIONS_DEFAULT);
    pthread_join(thread, NULL);
    packing_check_list(t, 1);
    trace_free(t);
    free(text);
}
END_TEST

START_TEST(a_database_from_standard_input)
{
    size_t len;
    char *bytes = packing_make_database(&len);
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
    char *bytes = packing_make_database(&len), *list = packing_make_list(&list_len);
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
    char *text = packing_make_list(&len);
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

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("input");
    TCase *tcase = tcase_create("input");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, standard_input);
    tcase_add_test(tcase, a_fifo);
    tcase_add_test(tcase, a_database_from_standard_input);
    tcase_add_test(tcase, loading_that_is_stopped);
    tcase_add_test(tcase, lines_of_any_length);
    tcase_add_test(tcase, files_that_change);
    suite_add_tcase(suite, tcase);
    return suite;
}
