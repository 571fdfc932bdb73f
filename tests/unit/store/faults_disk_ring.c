/* A ring of reads of which each call fails in turn. */
#include "store/disk_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

static int file;

/* One that is refused is not there; a read that is not begun is begun later. */
static void
make_and_read(void *unused)
{
    struct disk_ring *ring = disk_ring_make(4);
    char bytes[4] = "";
    void *context;
    ssize_t n = 0;
    int error;

    (void)unused;
    if (!ring) {
        ck_assert_ptr_nonnull(faults_failed());
        ck_assert_int_eq(errno, EPERM);
        return;
    }
    ck_assert(disk_ring_read(ring, file, bytes, 4, 0, bytes));
    error = disk_ring_begin(ring);
    ck_assert(!error || (error == EPERM && faults_failed()));
    ck_assert_int_eq(disk_ring_begin(ring), 0);
    while (!disk_ring_take(ring, &context, &n)) {
        error = disk_ring_wait(ring);
        ck_assert(!error || (error == EPERM && faults_failed()));
    }
    ck_assert_int_eq(n, 4);
    disk_ring_free(ring);
}

START_TEST(each_call_fails_once)
{
    char path[] = "/tmp/ring-XXXXXX";

    file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    unlink(path);
    ck_assert_int_eq(pwrite(file, "0123", 4, 0), 4);
    ck_assert_uint_ge(faults_walk(make_and_read, NULL, EPERM), 4);
    close(file);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("faults of rings");
    struct disk_ring *ring = disk_ring_make(4);
    TCase *tc = tcase_create("faults");

    if (!ring)
        unit_skip("the kernel has no io_uring, or refuses it");
    disk_ring_free(ring);
    tcase_add_test(tc, each_call_fails_once);
    suite_add_tcase(suite, tc);
    return suite;
}
