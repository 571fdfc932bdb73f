/* Rings that the kernel refuses: the store is read by threads, unless rings are asked for. */
#include "server/store/worker_rings.h"

#include <errno.h>

#include "store/disk_ring.h"
#include "tests/unit/faults.h"
#include "tests/unit/unit.h"

static struct worker_rings *rings;

static bool
make(uint64_t reads, unsigned fails_at)
{
    char folder[] = "/nowhere";
    struct options options = {.store = folder, .store_reads = reads};
    bool made;

    faults_fail_at(fails_at, EPERM);
    made = worker_rings_make(&options, 2, &rings);
    faults_fail_at(0, 0);
    return made;
}

START_TEST(refused)
{
    /* Each of the calls for either worker's. */
    for (unsigned n = 1; n <= 6; n++) {
        ck_assert(make(STORE_READS_AUTO, n));
        ck_assert_ptr_null(rings);
        ck_assert_ptr_null(worker_rings_of(rings));
        ck_assert(!make(STORE_READS_RING, n));
        ck_assert_ptr_null(rings);
    }
}
END_TEST

START_TEST(not_wanted)
{
    struct options options = {.store = NULL, .store_reads = STORE_READS_RING};

    ck_assert(worker_rings_make(&options, 2, &rings));
    ck_assert_ptr_null(rings);
    ck_assert(make(STORE_READS_THREADS, 1));
    ck_assert_ptr_null(rings);
    worker_rings_end(rings);
    worker_rings_free(rings);
}
END_TEST

START_TEST(made)
{
    ck_assert(make(STORE_READS_RING, 0));
    ck_assert_ptr_nonnull(rings);
    ck_assert_ptr_nonnull(worker_rings_of(rings)[1]);
    worker_rings_end(rings);
    worker_rings_free(rings);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rings of workers");
    struct disk_ring *ring = disk_ring_make(4);
    TCase *tc = tcase_create("rings");

    if (!ring)
        unit_skip("the kernel has no io_uring, or refuses it");
    disk_ring_free(ring);
    tcase_add_test(tc, refused);
    tcase_add_test(tc, not_wanted);
    tcase_add_test(tc, made);
    suite_add_tcase(suite, tc);
    return suite;
}
