/* The journal by itself: damage in its middle is never taken for its end. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/disk_journal.h"
#include "store/disk_marks.h"
#include "tests/unit/store/shelf.h"

#define SECTOR 512u
#define LONGEST 600u
#define MANY 40u

static struct disk_journal journal;
static struct disk_marks marks;

static struct disk_journal
journal_there(void)
{
    return (struct disk_journal){
        .folder = open(shelf.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .now = {.boot = 1, .monotonic_us = SHELF_SECOND, .wall_us = SHELF_SECOND},
        .slack = 1 << 20,
        .fd = -1,
    };
}

static void
set_up(void)
{
    struct disk_identity identity;
    enum journal_found found;

    shelf_begin();
    disk_marks_init(&marks);
    marks.most = 1000;
    marks.most_text = 1 << 20;
    journal = journal_there();
    ck_assert_int_ge(journal.folder, 0);
    ck_assert_int_eq(disk_journal_open(&journal, 0, &marks, &identity, &found), 0);
    ck_assert_int_eq(found, JOURNAL_NEW);
}

static void
tear_down(void)
{
    disk_journal_close(&journal);
    close(journal.folder);
    disk_marks_free(&marks);
    shelf_end();
}

/* Appended and synced; returns where it begins. */
static uint64_t
note(struct disk_mark mark)
{
    const uint64_t begin = journal.size;

    mark.position = begin;
    ck_assert_int_eq(disk_journal_append(&journal, &mark), 0);
    ck_assert_int_eq(disk_journal_sync(&journal), 0);
    return begin;
}

static uint64_t
note_tag(uint64_t hash)
{
    return note((struct disk_mark){.kind = MARK_TAG, .hash = hash});
}

/* As a start finds it; *count: its marks. */
static enum journal_found
read_again(size_t *count)
{
    struct disk_journal again = journal_there();
    struct disk_identity identity;
    enum journal_found found;

    disk_marks_clear(&marks);
    ck_assert_int_eq(disk_journal_read(&again, &marks, &identity, &found), 0);
    *count = marks.used;
    close(again.folder);
    return found;
}

/* The copies of a mark and of the next one may be of any lengths. */
START_TEST(no_copy_is_taken_for_one_of_another_mark)
{
    char text[LONGEST] = {0};
    uint64_t begin;
    size_t count;

    for (unsigned len = 0; len <= LONGEST; len += 4) {
        begin = note_tag(2 * len + 1);
        (void)note((struct disk_mark){.kind = MARK_PREFIX, .prefix = span_of(text, len)});
        (void)note_tag(2 * len + 2);
        ck_assert_int_eq(read_again(&count), JOURNAL_READ);
        shelf_clear(shelf_file("journal"), begin, JOURNAL_MARK_BYTES);
        ck_assert_int_eq(read_again(&count), JOURNAL_LOST);
        tear_down();
        set_up();
    }
}
END_TEST

/* Up to the sector of the last mark: that is told from one that was being written by none behind. */
START_TEST(a_damaged_sector_is_found_or_harms_no_mark)
{
    uint64_t last = 0, size;
    char path[200], *whole;
    size_t all, count;
    int fd;

    for (unsigned i = 0; i < MANY; i++)
        last = note_tag(i + 1);
    ck_assert_int_eq(read_again(&all), JOURNAL_READ);
    ck_assert_uint_eq(all, MANY);
    snprintf(path, sizeof(path), "%s", shelf_file("journal"));
    size = shelf_size(path);
    whole = malloc(size);
    fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, whole, size, 0), (ssize_t)size);
    for (uint64_t at = 0; at < size; at += SECTOR) {
        enum journal_found found;

        if (at < last + JOURNAL_MARK_BYTES && last < at + SECTOR)
            continue;
        shelf_clear(path, at, SECTOR);
        found = read_again(&count);
        ck_assert(found == JOURNAL_LOST || (found == JOURNAL_READ && count == all));
        ck_assert(found == JOURNAL_LOST || at > last);
        ck_assert_int_eq(pwrite(fd, whole, size, 0), (ssize_t)size);
    }
    ck_assert_int_eq(read_again(&count), JOURNAL_READ);
    close(fd);
    free(whole);
}
END_TEST

/* A copy in another place, as a text may have one. */
START_TEST(a_mark_that_is_copied_elsewhere_is_none)
{
    const uint64_t first = note_tag(1), second = note_tag(2);
    char bytes[JOURNAL_MARK_BYTES];
    size_t count;

    (void)note_tag(3);
    ck_assert_int_eq(pread(journal.fd, bytes, sizeof(bytes), (off_t)first), sizeof(bytes));
    ck_assert_int_eq(pwrite(journal.fd, bytes, sizeof(bytes), (off_t)second), sizeof(bytes));
    ck_assert_int_eq(read_again(&count), JOURNAL_LOST);
}
END_TEST

START_TEST(one_copy_is_enough)
{
    uint64_t begin[3];
    size_t count;

    for (unsigned i = 0; i < 3; i++)
        begin[i] = note_tag(i + 1);
    shelf_clear(shelf_file("journal"), begin[0], JOURNAL_MARK_BYTES / 2);
    shelf_clear(shelf_file("journal"), begin[1] + JOURNAL_MARK_BYTES / 2,
                JOURNAL_MARK_BYTES / 2);
    shelf_clear(shelf_file("journal"), begin[2], JOURNAL_MARK_BYTES / 2);
    ck_assert_int_eq(read_again(&count), JOURNAL_READ);
    ck_assert_uint_eq(count, 3);
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("disk_journal");
    TCase *tc = tcase_create("disk_journal");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, no_copy_is_taken_for_one_of_another_mark);
    tcase_add_test(tc, a_damaged_sector_is_found_or_harms_no_mark);
    tcase_add_test(tc, a_mark_that_is_copied_elsewhere_is_none);
    tcase_add_test(tc, one_copy_is_enough);
    suite_add_tcase(suite, tc);
    return suite;
}
