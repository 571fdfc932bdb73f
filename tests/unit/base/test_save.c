/*
 * Replacing files: all or nothing, through links, and never what is no file.
 */
#include "base/save.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/trace/scratch.h"

static void
expect_content(const char *name, const char *wanted)
{
    size_t len;
    char *text = scratch_read(scratch_path(name), &len);

    ck_assert_str_eq(text, wanted);
    free(text);
}

static void
write_text(const char *name, const char *text)
{
    struct save save;

    ck_assert_int_eq(save_open(&save, scratch_path(name), false), 0);
    fputs(text, save.file);
    ck_assert_int_eq(save_close(&save, true), 0);
}

/* How many names there are in the folder. */
static unsigned
count_names(void)
{
    DIR *dir = opendir(scratch_folder);
    unsigned names = 0;

    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        names += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return names;
}

static mode_t
type_and_mode(const char *name)
{
    struct stat there;

    ck_assert_int_eq(lstat(scratch_path(name), &there), 0);
    return there.st_mode;
}

START_TEST(a_file_appears_whole_or_not_at_all)
{
    struct save save;

    ck_assert_int_eq(save_open(&save, scratch_path("a"), false), 0);
    fputs("first", save.file);
    ck_assert_int_ne(access(scratch_path("a"), F_OK), 0);
    ck_assert_int_eq(save_close(&save, true), 0);
    expect_content("a", "first");

    ck_assert_int_eq(save_open(&save, scratch_path("a"), true), 0);
    ck_assert_ptr_nonnull(save.temporary);
    fputs("half", save.file);
    ck_assert_int_eq(save_close(&save, false), 0);
    expect_content("a", "first");
    write_text("a", "second");
    expect_content("a", "second");
    ck_assert_uint_eq(count_names(), 1);
}
END_TEST

START_TEST(modes_are_kept_and_new_ones_go_by_the_umask)
{
    mode_t mask = umask(027);

    write_text("a", "new");
    umask(mask);
    ck_assert_uint_eq(type_and_mode("a") & 0777, 0640);
    ck_assert_int_eq(chmod(scratch_path("a"), 0606), 0);
    write_text("a", "old");
    ck_assert_uint_eq(type_and_mode("a") & 0777, 0606);
}
END_TEST

/* Also for root, for which access(2) grants everything. */
START_TEST(a_file_that_grants_no_writing_is_not_replaced)
{
    struct save save;

    ck_assert_int_eq(save_check(scratch_path("a")), 0);
    write_text("a", "old");
    ck_assert_int_eq(save_check(scratch_path("a")), 0);
    ck_assert_int_eq(chmod(scratch_path("a"), 0444), 0);
    ck_assert_int_eq(symlink("a", scratch_path("link")), 0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(save_check(scratch_path(i / 2 ? "link" : "a")), EACCES);
        ck_assert_int_eq(save_open(&save, scratch_path(i / 2 ? "link" : "a"), i % 2), EACCES);
    }
    expect_content("a", "old");
    ck_assert_uint_eq(count_names(), 2);
    ck_assert_uint_eq(type_and_mode("a") & 0777, 0444);
    ck_assert_int_eq(chmod(scratch_path("a"), 0644), 0);
    write_text("link", "new");
    expect_content("a", "new");
    ck_assert_int_eq(save_check("/dev/null"), 0);
}
END_TEST

START_TEST(a_link_stays_a_link)
{
    struct save save;

    /* Two links, one of them relative, to what is not there yet. */
    ck_assert_int_eq(symlink("second", scratch_path("first")), 0);
    ck_assert_int_eq(symlink(scratch_path("file"), scratch_path("second")), 0);
    for (int round = 0; round < 2; round++) {
        write_text("first", round ? "again" : "through");
        expect_content("file", round ? "again" : "through");
        ck_assert(S_ISLNK(type_and_mode("first")));
        ck_assert(S_ISLNK(type_and_mode("second")));
        ck_assert(S_ISREG(type_and_mode("file")));
        ck_assert_uint_eq(count_names(), 3);
    }
    ck_assert_int_eq(symlink("loop", scratch_path("loop")), 0);
    ck_assert_int_eq(save_open(&save, scratch_path("loop"), false), ELOOP);
    ck_assert_int_eq(symlink("none/file", scratch_path("lost")), 0);
    ck_assert_int_eq(save_open(&save, scratch_path("lost"), false), ENOENT);
    ck_assert_uint_eq(count_names(), 5);
}
END_TEST

START_TEST(what_is_no_file_is_never_replaced)
{
    struct save save;
    char text[16] = "";
    int reader;

    ck_assert_int_eq(mkfifo(scratch_path("fifo"), 0600), 0);
    ck_assert_int_eq(symlink("fifo", scratch_path("link")), 0);
    reader = open(scratch_path("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    write_text("fifo", "one");
    write_text("link", "two");
    ck_assert_int_eq(read(reader, text, sizeof(text)), 6);
    ck_assert_str_eq(text, "onetwo");
    ck_assert_int_eq(save_open(&save, scratch_path("fifo"), true), SAVE_NO_FILE);
    ck_assert_int_eq(save_open(&save, scratch_path("link"), true), SAVE_NO_FILE);
    ck_assert_int_eq(save_open(&save, scratch_folder, true), SAVE_NO_FILE);
    ck_assert_int_eq(save_open(&save, scratch_folder, false), EISDIR);
    ck_assert(S_ISFIFO(type_and_mode("fifo")));
    ck_assert(S_ISLNK(type_and_mode("link")));
    ck_assert_uint_eq(count_names(), 2);
    close(reader);
}
END_TEST

START_TEST(a_link_to_what_has_no_name_is_written_in_place)
{
    struct save save;
    char link[64], text[8] = "";
    int fd = open(scratch_path("gone"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(unlink(scratch_path("gone")), 0);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ck_assert_int_eq(save_open(&save, link, true), SAVE_NO_FILE);
    ck_assert_int_eq(save_open(&save, link, false), 0);
    fputs("here", save.file);
    ck_assert_int_eq(save_close(&save, true), 0);
    ck_assert_int_eq(pread(fd, text, sizeof(text) - 1, 0), 4);
    ck_assert_str_eq(text, "here");
    ck_assert_uint_eq(count_names(), 0);
    close(fd);
}
END_TEST

START_TEST(failures_are_reported_and_write_nothing)
{
    struct rlimit before, none;
    struct save save;
    int error;

    ck_assert_int_eq(save_open(&save, "/nonexistent/file", false), ENOENT);
    write_text("a", "kept");
    ck_assert_int_eq(save_open(&save, scratch_path("a"), false), 0);
    fputs("lost", save.file);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    error = save_close(&save, true);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(error, EFBIG);
    expect_content("a", "kept");
    ck_assert_uint_eq(count_names(), 1);
}
END_TEST

/* A child that is hit by a signal while it writes; the status it ended with. */
static int
end_while_writing(int number, bool ignored)
{
    pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        struct save save;

        signal(number, ignored ? SIG_IGN : SIG_DFL);
        if (save_open(&save, scratch_path("a"), false) != 0)
            _exit(2);
        fputs("new", save.file);
        fflush(save.file);
        raise(number);
        _exit(save_close(&save, true) != 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(a_signal_removes_the_temporary_file)
{
    void (*before)(int) = signal(SIGINT, SIG_DFL);
    int status;

    write_text("a", "old");
    ck_assert(signal(SIGINT, before) == SIG_DFL); /* as it was when the file was opened */
    status = end_while_writing(SIGINT, false);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    status = end_while_writing(SIGTERM, false);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    expect_content("a", "old");
    ck_assert_uint_eq(count_names(), 1);
    /* As under nohup: a process that ignores the signal goes on writing. */
    ck_assert_int_eq(end_while_writing(SIGHUP, true), 0);
    expect_content("a", "new");
    ck_assert_uint_eq(count_names(), 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/save");
    TCase *tc = tcase_create("save");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, a_file_appears_whole_or_not_at_all);
    tcase_add_test(tc, modes_are_kept_and_new_ones_go_by_the_umask);
    tcase_add_test(tc, a_file_that_grants_no_writing_is_not_replaced);
    tcase_add_test(tc, a_link_stays_a_link);
    tcase_add_test(tc, what_is_no_file_is_never_replaced);
    tcase_add_test(tc, a_link_to_what_has_no_name_is_written_in_place);
    tcase_add_test(tc, failures_are_reported_and_write_nothing);
    tcase_add_test(tc, a_signal_removes_the_temporary_file);
    suite_add_tcase(suite, tc);
    return suite;
}
