#define UNIT_STARTS_NO_THREAD

#include "server/confine/privileges.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct service_user user;
static struct buf why;

static void
setup(void)
{
    buf_init(&why, 1024);
}

static void
teardown(void)
{
    privileges_free_user(&user);
    buf_free(&why);
}

static bool
is_in_group(gid_t gid)
{
    for (int i = 0; i < user.group_count; i++)
        if (user.groups[i] == gid)
            return true;
    return false;
}

START_TEST(a_user_by_name_has_its_own_groups)
{
    const struct passwd *daemon = getpwnam("daemon");
    gid_t gid;

    ck_assert_ptr_nonnull(daemon);
    gid = daemon->pw_gid;
    ck_assert_msg(privileges_find_user("daemon", &user, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(user.uid, daemon->pw_uid);
    ck_assert_uint_eq(user.gid, gid);
    ck_assert(is_in_group(gid));
    ck_assert(!is_in_group(0));
}
END_TEST

START_TEST(a_group_replaces_the_users_own)
{
    const struct group *nogroup = getgrnam("nogroup");

    ck_assert_ptr_nonnull(nogroup);
    ck_assert_msg(privileges_find_user("daemon:nogroup", &user, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(user.gid, nogroup->gr_gid);
    ck_assert(is_in_group(user.gid));
    ck_assert(!is_in_group(0));
}
END_TEST

START_TEST(numbers_need_no_entry)
{
    ck_assert_msg(privileges_find_user("54321:54322", &user, &why), "%s", buf_str(&why));
    ck_assert_uint_eq(user.uid, 54321);
    ck_assert_uint_eq(user.gid, 54322);
    ck_assert_int_eq(user.group_count, 0);
}
END_TEST

static const struct {
    const char *text, *sentence;
} wrong[] = {
    {"", "\"\" is not NAME or NAME:GROUP"},
    {":daemon", "\":daemon\" is not NAME or NAME:GROUP"},
    {"no-such-user", "\"no-such-user\" is not a user of this machine"},
    {"54321", "\"54321\" is not a user of this machine"},
    {"daemon:no-such-group", "\"no-such-group\" is not a group of this machine"},
    {"daemon:", "\"\" is not a group of this machine"},
    {"root", "root cannot be the user to change to"},
    {"0:54322", "root cannot be the user to change to"},
    {"4294967295:1", "\"4294967295\" is not a user of this machine"},
    {"-1:1", "\"-1\" is not a user of this machine"},
};

START_TEST(users_that_cannot_be)
{
    ck_assert(!privileges_find_user(wrong[_i].text, &user, &why));
    ck_assert_str_eq(buf_str(&why), wrong[_i].sentence);
    ck_assert_ptr_null(user.groups);
}
END_TEST

START_TEST(the_same_user_needs_no_change)
{
    struct service_user self = {.uid = geteuid(), .gid = getegid()};

    ck_assert(privileges_become(&self, &why));
    ck_assert_uint_eq(why.len, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/privileges");
    TCase *tc = tcase_create("privileges");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_user_by_name_has_its_own_groups);
    tcase_add_test(tc, a_group_replaces_the_users_own);
    tcase_add_test(tc, numbers_need_no_entry);
    tcase_add_loop_test(tc, users_that_cannot_be, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
    tcase_add_test(tc, the_same_user_needs_no_change);
    suite_add_tcase(suite, tc);
    return suite;
}
