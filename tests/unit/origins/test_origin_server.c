/* The servers of members, and sets of them. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_server.h"

#include <stdio.h>

#include "tests/unit/unit.h"

static const struct origin_probes none, probes = {.path = {.ptr = "/h", .len = 2},
                                                  .interval_us = 5000000,
                                                  .fall = 3,
                                                  .rise = 2};

static struct origin_server *
add(struct origin_servers *servers, const char *authority, const struct origin_probes *how)
{
    struct origin_server *server = origin_servers_add(servers, span_str(authority), how);

    ck_assert_ptr_nonnull(server);
    return server;
}

START_TEST(one_for_each_authority_and_way_to_probe)
{
    struct origin_servers servers = {.size = 0};
    struct origin_server *first = add(&servers, "http://a.test", &none);
    struct origin_probes other = probes;

    ck_assert_ptr_eq(add(&servers, "http://a.test", &none), first);
    ck_assert_ptr_ne(add(&servers, "https://a.test", &none), first);
    ck_assert_ptr_ne(add(&servers, "http://a.test:81", &none), first);
    first = add(&servers, "http://a.test", &probes);
    ck_assert_ptr_eq(add(&servers, "http://a.test", &other), first);
    other.rise++;
    ck_assert_ptr_ne(add(&servers, "http://a.test", &other), first);
    ck_assert_uint_eq(servers.count, 5);
    ck_assert(span_equal(first->authority, span_str("http://a.test")));
    origin_servers_free(&servers);
}
END_TEST

START_TEST(many)
{
    struct origin_servers servers = {.size = 0};
    struct origin_server *list[1000];
    char text[32];

    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "http://h%u.test", i);
        list[i] = add(&servers, text, &none);
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "http://h%u.test", i);
        ck_assert_ptr_eq(add(&servers, text, &none), list[i]);
        ck_assert_ptr_eq(origin_servers_find(&servers, list[i]), list[i]);
    }
    ck_assert_uint_eq(servers.count, 1000);
    origin_servers_free(&servers);
}
END_TEST

START_TEST(the_state_is_inherited)
{
    struct origin_servers from = {.size = 0}, to = {.size = 0}, empty = {.size = 0};
    struct origin_server *before = add(&from, "http://a.test", &none), *other, *held, *now;

    atomic_store(&before->left_until_us, 7);
    atomic_store(&before->limit, 9);
    origin_server_enter(before);
    (void)add(&from, "http://gone.test", &none);
    atomic_store(&add(&from, "http://b.test", &none)->drained, true);
    now = add(&to, "http://a.test", &none);
    ck_assert_ptr_eq(origin_servers_find(&from, now), before);
    ck_assert_ptr_null(origin_servers_find(&empty, now));
    atomic_store(&now->limit, 5);
    other = add(&to, "http://b.test", &probes);
    (void)add(&to, "http://new.test", &none);
    origin_servers_inherit(&to, &from);
    held = origin_server_retain(before);
    origin_servers_free(&from);
    ck_assert_ptr_eq(origin_servers_find(&to, held), held);
    ck_assert_int_eq(atomic_load(&held->left_until_us), 7);
    ck_assert_uint_eq(atomic_load(&held->limit), 5);
    ck_assert_uint_eq(atomic_load(&held->in_flight), 1);
    ck_assert(atomic_load(&other->drained)); /* that it is probed in another way changes nothing */
    origin_servers_inherit(&to, &empty);
    ck_assert_uint_eq(to.count, 3);
    origin_servers_free(&to);
    /* A tunnel may outlast all configurations. */
    origin_server_exit(held);
    origin_server_release(&held);
    ck_assert_ptr_null(held);
    origin_server_release(&held);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origins/origin_server");
    TCase *tests = tcase_create("servers");

    tcase_add_test(tests, one_for_each_authority_and_way_to_probe);
    tcase_add_test(tests, many);
    tcase_add_test(tests, the_state_is_inherited);
    suite_add_tcase(suite, tests);
    return suite;
}
