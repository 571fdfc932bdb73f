/* Which peers may administer the daemon. */
#define UNIT_STARTS_NO_THREAD

#include "server/service.h"

#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

START_TEST(administrators)
{
    uid_t named[] = {4000, 4001};
    struct config config = {.admins = named, .admin_count = 2};
    const struct service service = {.magic = SERVICE_MAGIC, .config = &config};
    const struct {
        struct net_peer peer;
        bool is_admin;
    } cases[] = {
        {{.has_uid = true, .uid = 0}, true},     {{.has_uid = true, .uid = geteuid()}, true},
        {{.has_uid = true, .uid = 4000}, true},  {{.has_uid = true, .uid = 4001}, true},
        {{.has_uid = true, .uid = 4002}, false}, {{.has_uid = false, .uid = 0}, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(service_is_admin(&service, &cases[i].peer) == cases[i].is_admin, "uid %u",
                      (unsigned)cases[i].peer.uid);
}
END_TEST

START_TEST(victims_are_shown_as_configured)
{
    struct options options = {0};
    struct config config = {.options = &options};
    struct service service = {.config = &config};
    const struct net_peer admin = {.has_uid = true, .uid = 0}, other = {.has_uid = false};

    options.show_victims = VICTIMS_NONE;
    ck_assert(!service_shows_victims(&service, &admin));
    options.show_victims = VICTIMS_ADMIN;
    ck_assert(service_shows_victims(&service, &admin));
    ck_assert(!service_shows_victims(&service, &other));
    options.show_victims = VICTIMS_ALL;
    ck_assert(service_shows_victims(&service, &other));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/service");
    TCase *tc = tcase_create("service");

    tcase_add_test(tc, administrators);
    tcase_add_test(tc, victims_are_shown_as_configured);
    suite_add_tcase(suite, tc);
    return suite;
}
