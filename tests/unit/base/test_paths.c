#define UNIT_STARTS_NO_THREAD

#include "base/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static char folder[64], path[128], link_to[128], through[192];

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/socket", folder);
    snprintf(link_to, sizeof(link_to), "%s.link", folder);
    snprintf(through, sizeof(through), "%s/socket", link_to);
}

static void
teardown(void)
{
    unlink(link_to);
    rmdir(folder);
}

START_TEST(the_default_socket_goes_by_the_environment)
{
    char found[128];

    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
    ck_assert(paths_default_socket(found, sizeof(found)));
    ck_assert_str_eq(found, "/run/user/7/sunproxy.sock");
    ck_assert(!paths_default_socket(found, 10));
    setenv("XDG_RUNTIME_DIR", "relative", 1);
    ck_assert(paths_default_socket(found, sizeof(found)));
    ck_assert_int_eq(found[0], '/');
    unsetenv("XDG_RUNTIME_DIR");
}
END_TEST

START_TEST(a_folder_of_our_own_or_of_root_is_safe)
{
    ck_assert(paths_folder_is_safe(path));
    ck_assert(paths_folder_is_safe("/socket"));
    ck_assert(paths_folder_is_safe("/usr/socket"));
}
END_TEST

START_TEST(links_and_what_is_not_there_are_not)
{
    ck_assert_int_eq(symlink(folder, link_to), 0);
    ck_assert(!paths_folder_is_safe(through));
    ck_assert(!paths_folder_is_safe("/nonexistent/socket"));
    ck_assert(!paths_folder_is_safe("/dev/null/socket"));
    ck_assert(!paths_folder_is_safe("socket"));
}
END_TEST

START_TEST(another_users_folder_is_not)
{
    /* Only root can make one. */
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(folder, 65534, 65534), 0);
    ck_assert(!paths_folder_is_safe(path));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/paths");
    TCase *tc = tcase_create("paths");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_default_socket_goes_by_the_environment);
    tcase_add_test(tc, a_folder_of_our_own_or_of_root_is_safe);
    tcase_add_test(tc, links_and_what_is_not_there_are_not);
    tcase_add_test(tc, another_users_folder_is_not);
    suite_add_tcase(suite, tc);
    return suite;
}
