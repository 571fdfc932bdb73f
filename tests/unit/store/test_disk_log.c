/* The segments of a log: who closes them. */
#include <fcntl.h>
#include <unistd.h>

#include "store/disk_log.h"
#include "tests/unit/store/shelf.h"

static struct disk_log disk;
static int folder;

static void
set_up(void)
{
    static const struct disk_identity identity = {.id = {1, 2}};

    shelf_begin();
    folder = open(shelf.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(folder, 0);
    ck_assert(disk_log_init(&disk, folder, &identity, STORE_LEAST));
    ck_assert_int_eq(disk_log_begin(&disk, 1), 0);
    ck_assert_int_eq(disk_log_begin(&disk, 2), 0);
}

static void
tear_down(void)
{
    disk_log_free(&disk);
    close(folder);
    shelf_end();
}

static bool
is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

START_TEST(the_last_release_of_a_removed_segment_does_not_close_it)
{
    struct disk_segment *first = TAILQ_FIRST(&disk.segments);
    struct disk_segment *held = disk_log_hold(&disk, first->id);
    const int fd = first->fd;

    ck_assert_ptr_eq(held, first);
    ck_assert(!disk_log_has_unclosed(&disk));
    disk_log_remove(&disk, first);
    ck_assert(disk_log_has_unclosed(&disk));
    disk_log_close_released(&disk);
    ck_assert(is_open(fd));
    disk_segment_release(held);
    ck_assert(is_open(fd));
    ck_assert(disk_log_has_unclosed(&disk));
    disk_log_close_released(&disk);
    ck_assert(!is_open(fd));
    ck_assert(!disk_log_has_unclosed(&disk));
}
END_TEST

START_TEST(one_that_is_not_held_is_closed_when_it_is_removed)
{
    struct disk_segment *first = TAILQ_FIRST(&disk.segments);
    const int fd = first->fd;

    disk_log_remove(&disk, first);
    ck_assert(!is_open(fd));
    ck_assert(!disk_log_has_unclosed(&disk));
}
END_TEST

START_TEST(the_end_of_the_log_closes_what_was_released)
{
    struct disk_segment *first = TAILQ_FIRST(&disk.segments);
    struct disk_segment *held = disk_log_hold(&disk, first->id);
    const int fd = first->fd;

    disk_log_remove(&disk, first);
    disk_segment_release(held);
    disk_log_free(&disk);
    ck_assert(!is_open(fd));
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("disk_log");
    TCase *tc = tcase_create("disk_log");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_last_release_of_a_removed_segment_does_not_close_it);
    tcase_add_test(tc, one_that_is_not_held_is_closed_when_it_is_removed);
    tcase_add_test(tc, the_end_of_the_log_closes_what_was_released);
    suite_add_tcase(suite, tc);
    return suite;
}
