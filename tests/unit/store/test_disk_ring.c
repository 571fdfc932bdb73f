/* A ring of reads: what it reads, what it refuses, and reads that do not end. */
#include "store/disk_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct disk_ring *ring;
static int file;

static void
set_up(void)
{
    char path[] = "/tmp/ring-XXXXXX";

    ring = disk_ring_make(4);
    ck_assert_ptr_nonnull(ring);
    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    unlink(path);
    ck_assert_int_eq(write(file, "0123456789", 10), 10);
}

static void
tear_down(void)
{
    disk_ring_free(ring);
    close(file);
}

/* Waits for one, and expects this result. */
static void
expect(void *context, ssize_t result)
{
    void *ended;
    ssize_t n;

    ck_assert_int_eq(disk_ring_begin(ring), 0);
    ck_assert_int_eq(disk_ring_wait(ring), 0);
    ck_assert(disk_ring_take(ring, &ended, &n));
    ck_assert_ptr_eq(ended, context);
    ck_assert_int_eq(n, result);
}

START_TEST(bytes_are_read_at_their_offset)
{
    char bytes[10] = "";

    ck_assert(disk_ring_read(ring, file, bytes, 4, 3, bytes));
    ck_assert_uint_eq(disk_ring_under_way(ring), 1);
    expect(bytes, 4);
    ck_assert_int_eq(memcmp(bytes, "3456", 4), 0);
    ck_assert_uint_eq(disk_ring_under_way(ring), 0);
    /* At the end of the file there are fewer, and behind it none. */
    ck_assert(disk_ring_read(ring, file, bytes, 10, 8, bytes));
    expect(bytes, 2);
    ck_assert_int_eq(memcmp(bytes, "89", 2), 0);
    ck_assert(disk_ring_read(ring, file, bytes, 10, 20, NULL));
    expect(NULL, 0);
    ck_assert(disk_ring_read(ring, -1, bytes, 10, 0, bytes));
    expect(bytes, -EBADF);
}
END_TEST

START_TEST(many_reads_use_the_places_again)
{
    char bytes[4] = "";
    unsigned ended = 0;
    void *context;
    ssize_t n;

    for (unsigned round = 0; round < 25; round++) {
        for (size_t i = 0; i < 4; i++)
            ck_assert(disk_ring_read(ring, file, &bytes[i], 1, i, &bytes[i]));
        ck_assert(!disk_ring_read(ring, file, bytes, 1, 0, bytes));
        ck_assert_int_eq(disk_ring_begin(ring), 0);
        for (unsigned i = 0; i < 4; i++) {
            while (!disk_ring_take(ring, &context, &n))
                ck_assert_int_eq(disk_ring_wait(ring), 0);
            ck_assert_int_eq(n, 1);
            ck_assert_int_eq(*(char *)context, '0' + ((char *)context - bytes));
            ended++;
        }
        ck_assert(!disk_ring_take(ring, &context, &n));
    }
    ck_assert_uint_eq(ended, 100);
}
END_TEST

START_TEST(a_read_that_hangs_delays_no_other)
{
    struct pollfd ready = {.fd = disk_ring_fd(ring), .events = POLLIN};
    char slow[4] = "", fast[4] = "";
    void *context;
    ssize_t n;
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert(disk_ring_read(ring, ends[0], slow, 4, 0, slow));
    ck_assert_int_eq(disk_ring_begin(ring), 0);
    ck_assert(!disk_ring_take(ring, &context, &n));
    ck_assert_int_eq(poll(&ready, 1, 0), 0);
    ck_assert(disk_ring_read(ring, file, fast, 4, 0, fast));
    expect(fast, 4);
    ck_assert_uint_eq(disk_ring_under_way(ring), 1);
    ck_assert_int_eq(write(ends[1], "late", 4), 4);
    ck_assert_int_eq(poll(&ready, 1, -1), 1);
    expect(slow, 4);
    ck_assert_int_eq(memcmp(slow, "late", 4), 0);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* The place of the next operation, as anyone who can write to the memory of the process has it. */
static struct io_uring_sqe *
map_places(void)
{
    void *memory = mmap(NULL, 4 * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED,
                        disk_ring_fd(ring), (off_t)IORING_OFF_SQES);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    return memory;
}

START_TEST(it_does_nothing_but_read)
{
    static const uint8_t others[] = {IORING_OP_OPENAT, IORING_OP_WRITE,  IORING_OP_FSYNC,
                                     IORING_OP_SOCKET, IORING_OP_UNLINKAT, IORING_OP_READV,
                                     IORING_OP_NOP,    IORING_OP_FILES_UPDATE};
    struct io_uring_sqe *places = map_places();
    char bytes[10] = "";
    unsigned at = 0;

    for (size_t i = 0; i < sizeof(others); i++) {
        ck_assert(disk_ring_read(ring, AT_FDCWD, "/etc/passwd", 0, 0, bytes));
        places[at++ % 4].opcode = others[i];
        expect(bytes, -EACCES);
    }
    /* Nor with flags, such as those that link operations or mean a registered file. */
    for (unsigned bit = 0; bit < 8; bit++) {
        ck_assert(disk_ring_read(ring, file, bytes, 4, 0, bytes));
        places[at++ % 4].flags = (uint8_t)(1u << bit);
        ck_assert_int_eq(disk_ring_begin(ring), 0);
        expect(bytes, 1u << bit > IOSQE_CQE_SKIP_SUCCESS ? -EINVAL : -EACCES);
    }
    ck_assert_str_eq(bytes, "");
    munmap(places, 4 * sizeof(*places));
}
END_TEST

START_TEST(nothing_can_be_registered)
{
    for (unsigned what = 0; what < 24; what++) {
        int fd = file;

        ck_assert_int_lt(syscall(SYS_io_uring_register, disk_ring_fd(ring), what, &fd, 1), 0);
    }
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rings of reads");
    TCase *tc = tcase_create("rings");

    ring = disk_ring_make(4);
    if (!ring)
        unit_skip("the kernel has no io_uring, or refuses it");
    disk_ring_free(ring);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, bytes_are_read_at_their_offset);
    tcase_add_test(tc, many_reads_use_the_places_again);
    tcase_add_test(tc, a_read_that_hangs_delays_no_other);
    tcase_add_test(tc, it_does_nothing_but_read);
    tcase_add_test(tc, nothing_can_be_registered);
    suite_add_tcase(suite, tc);
    return suite;
}
