/* Names, with a getaddrinfo() that follows a script. */
#include "fetch/resolver.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

/*
 * "hang..." waits until the test lets it go on, "none" does not exist, "many" has more addresses
 * than are kept, "odd" has one of an unknown family; all others are 192.0.2.1.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released;
static unsigned hanging, calls, notified, freed;

#define CLIENT unit_client(0)

static struct addrinfo *
one_address(int family)
{
    struct addrinfo *info = calloc(1, sizeof(*info));
    struct sockaddr_in *in = calloc(1, sizeof(*in));

    in->sin_family = (sa_family_t)family;
    inet_pton(AF_INET, "192.0.2.1", &in->sin_addr);
    info->ai_family = family;
    info->ai_addr = (struct sockaddr *)in;
    info->ai_addrlen = sizeof(*in);
    return info;
}

static int
scripted(const char *host, const char *service, const struct addrinfo *hints,
         struct addrinfo **result)
{
    ck_assert_ptr_null(service);
    ck_assert_int_eq(hints->ai_socktype, SOCK_STREAM);
    pthread_mutex_lock(&lock);
    calls++;
    if (strncmp(host, "hang", 4) == 0) {
        hanging++;
        pthread_cond_broadcast(&changed);
        while (!released)
            pthread_cond_wait(&changed, &lock);
        hanging--;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    *result = NULL;
    if (strcmp(host, "none") == 0)
        return EAI_NONAME;
    *result = one_address(strcmp(host, "odd") == 0 ? AF_UNIX : AF_INET);
    if (strcmp(host, "many") == 0) {
        for (unsigned i = 0; i < 100; i++) {
            struct addrinfo *more = one_address(AF_INET);

            more->ai_next = *result;
            *result = more;
        }
    }
    return 0;
}

static void
scripted_free(struct addrinfo *info)
{
    while (info) {
        struct addrinfo *next = info->ai_next;

        free(info->ai_addr);
        free(info);
        info = next;
    }
    pthread_mutex_lock(&lock);
    freed++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
notify(void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    notified++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void
set_up(void)
{
    released = false;
    hanging = calls = notified = freed = 0;
}

static struct resolver *
start_shared(unsigned threads, unsigned per_client, size_t max_names, int64_t ttl_us)
{
    struct resolver_config config = {
        .threads = threads,
        .per_client = per_client,
        .max_names = max_names,
        .ttl_us = ttl_us,
        .getaddrinfo = scripted,
        .freeaddrinfo = scripted_free,
        .notify = notify,
    };
    struct resolver *resolver = resolver_create(&config);

    ck_assert_ptr_nonnull(resolver);
    return resolver;
}

static struct resolver *
start(unsigned threads, size_t max_names, int64_t ttl_us)
{
    return start_shared(threads, 0, max_names, ttl_us);
}

static struct resolver_query *
collect(struct resolver *resolver)
{
    struct resolver_query *query;

    while (!(query = resolver_collect(resolver)))
        usleep(1000);
    return query;
}

static void
wait_until_hanging(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (hanging != count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void
release(void)
{
    pthread_mutex_lock(&lock);
    released = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Asks and waits; the number of addresses, or getaddrinfo's error, negated if need be. */
static int
look_up(struct resolver *resolver, const char *host)
{
    struct resolver_query query = {0};
    int found;

    if (resolver_lookup(resolver, &query, CLIENT, host) == RESOLVER_PENDING)
        ck_assert_ptr_eq(collect(resolver), &query);
    if (query.error)
        return query.error;
    found = (int)query.resolved->count;
    resolved_release(&query.resolved);
    return found;
}

START_TEST(a_hanging_name_stalls_no_other)
{
    struct resolver *resolver = start(2, 8, 1000000);
    struct resolver_query stuck = {0};

    ck_assert_int_eq(resolver_lookup(resolver, &stuck, CLIENT, "hang"), RESOLVER_PENDING);
    wait_until_hanging(1);
    ck_assert_int_eq(look_up(resolver, "a"), 1);
    ck_assert_int_eq(look_up(resolver, "b"), 1);
    release();
    ck_assert_ptr_eq(collect(resolver), &stuck);
    ck_assert_uint_eq(stuck.resolved->count, 1);
    resolved_release(&stuck.resolved);
    resolver_destroy(resolver);
    ck_assert_uint_eq(freed, 3);
}
END_TEST

/* Names that hang take up the share of their client, also after they were given up. */
START_TEST(a_clients_names_do_not_use_the_threads_of_others)
{
    struct client *other = unit_client(1);
    struct resolver *resolver = start_shared(4, 2, 8, 0);
    struct resolver_query stuck[6] = {0}, query = {0};
    char host[16];

    for (unsigned i = 0; i < 6; i++) {
        snprintf(host, sizeof(host), "hang-%u", i);
        ck_assert_int_eq(resolver_lookup(resolver, &stuck[i], CLIENT, host), RESOLVER_PENDING);
    }
    wait_until_hanging(2);
    resolver_cancel(resolver, &stuck[0]);
    resolver_cancel(resolver, &stuck[1]);
    ck_assert_int_eq(resolver_lookup(resolver, &query, other, "a"), RESOLVER_PENDING);
    ck_assert_ptr_eq(collect(resolver), &query);
    resolved_release(&query.resolved);
    ck_assert_uint_eq(hanging, 2);
    /* A name that waits for another client's turn is looked up in the first one. */
    ck_assert_int_eq(resolver_lookup(resolver, &query, other, "hang-5"), RESOLVER_PENDING);
    wait_until_hanging(3);
    ck_assert_uint_eq(calls, 4);
    release();
    for (unsigned i = 0; i < 5; i++)
        resolved_release(&collect(resolver)->resolved);
    ck_assert_ptr_null(resolver_collect(resolver));
    ck_assert_uint_eq(calls, 7);
    resolver_destroy(resolver);
}
END_TEST

START_TEST(one_look_up_for_all_queries)
{
    struct resolver *resolver = start(4, 8, 1000000);
    struct resolver_query queries[10] = {0};

    for (unsigned i = 0; i < 10; i++)
        ck_assert_int_eq(resolver_lookup(resolver, &queries[i], CLIENT, "hang"), RESOLVER_PENDING);
    wait_until_hanging(1);
    release();
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_ptr_eq(collect(resolver), &queries[i]);
        ck_assert_int_eq(queries[i].error, 0);
        resolved_release(&queries[i].resolved);
    }
    ck_assert_uint_eq(calls, 1);
    resolver_destroy(resolver);
}
END_TEST

START_TEST(names_are_remembered_for_a_while)
{
    struct resolver *resolver = start(1, 2, 3600 * (int64_t)1000000);

    ck_assert_int_eq(look_up(resolver, "a"), 1);
    ck_assert_int_eq(look_up(resolver, "a"), 1);
    ck_assert_uint_eq(calls, 1);
    /* The oldest gives way. */
    look_up(resolver, "b");
    look_up(resolver, "c");
    ck_assert_uint_eq(calls, 3);
    look_up(resolver, "c");
    ck_assert_uint_eq(calls, 3);
    look_up(resolver, "a");
    ck_assert_uint_eq(calls, 4);
    resolver_destroy(resolver);
    resolver = start(1, 8, 1);
    look_up(resolver, "a");
    usleep(1000);
    look_up(resolver, "a");
    ck_assert_uint_eq(calls, 6);
    resolver_destroy(resolver);
    resolver = start(1, 8, 0);
    look_up(resolver, "a");
    look_up(resolver, "a");
    ck_assert_uint_eq(calls, 8);
    resolver_destroy(resolver);
}
END_TEST

START_TEST(failures_are_reported_and_forgotten)
{
    struct resolver *resolver = start(1, 8, 3600 * (int64_t)1000000);

    ck_assert_int_eq(look_up(resolver, "none"), EAI_NONAME);
    ck_assert_int_eq(look_up(resolver, "none"), EAI_NONAME);
    ck_assert_uint_eq(calls, 2);
    ck_assert_int_eq(look_up(resolver, "odd"), EAI_NONAME);
    ck_assert_int_eq(look_up(resolver, "many"), (int)RESOLVED_MAX);
    resolver_destroy(resolver);
    ck_assert_uint_eq(freed, 2);
}
END_TEST

START_TEST(a_cancelled_query_is_not_answered)
{
    struct resolver *resolver = start(1, 8, 0);
    struct resolver_query stuck = {0}, queued = {0}, other = {0};

    resolver_lookup(resolver, &stuck, CLIENT, "hang");
    wait_until_hanging(1);
    /* Queued behind it, and taken back before a thread began. */
    resolver_lookup(resolver, &queued, CLIENT, "never");
    resolver_cancel(resolver, &queued);
    resolver_cancel(resolver, &queued);
    ck_assert(!queued.pending);
    resolver_cancel(resolver, &stuck);
    resolver_lookup(resolver, &other, CLIENT, "other");
    release();
    ck_assert_ptr_eq(collect(resolver), &other);
    resolved_release(&other.resolved);
    ck_assert_uint_eq(calls, 2);
    /* Answered, but not collected. */
    notified = 0;
    resolver_lookup(resolver, &other, CLIENT, "other");
    pthread_mutex_lock(&lock);
    while (notified == 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    resolver_cancel(resolver, &other);
    ck_assert_ptr_null(resolver_collect(resolver));
    resolver_destroy(resolver);
}
END_TEST

START_TEST(a_stuck_thread_is_given_up)
{
    struct resolver *resolver = start(3, 8, 1000000);
    struct resolver_query a = {0}, b = {0};

    resolver_lookup(resolver, &a, CLIENT, "hang-a");
    resolver_lookup(resolver, &b, CLIENT, "hang-b");
    wait_until_hanging(2);
    look_up(resolver, "free");
    resolver_cancel(resolver, &a);
    resolver_cancel(resolver, &b);
    resolver_destroy(resolver);
    ck_assert_uint_eq(freed, 1);
    /* Its memory is still there when it comes back. */
    release();
    pthread_mutex_lock(&lock);
    while (freed != 3)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    resolver_destroy(NULL);
}
END_TEST

/* Askers, threads and cancellations in every order. */
START_TEST(a_lot_of_names)
{
    struct resolver *resolver = start(4, 16, 100);
    struct resolver_query queries[200] = {0};
    unsigned pending = 0;

    for (unsigned i = 0; i < 200; i++) {
        char host[16];

        snprintf(host, sizeof(host), "h%u", i % 37);
        if (resolver_lookup(resolver, &queries[i], CLIENT, host) == RESOLVER_ANSWERED)
            resolved_release(&queries[i].resolved);
        else
            pending++;
        if (i % 3 == 0 && queries[i / 2].pending) {
            resolver_cancel(resolver, &queries[i / 2]);
            pending--;
        }
    }
    while (pending--)
        resolved_release(&collect(resolver)->resolved);
    ck_assert_ptr_null(resolver_collect(resolver));
    resolver_destroy(resolver);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/resolver");
    TCase *tc = tcase_create("resolver");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_hanging_name_stalls_no_other);
    tcase_add_test(tc, a_clients_names_do_not_use_the_threads_of_others);
    tcase_add_test(tc, one_look_up_for_all_queries);
    tcase_add_test(tc, names_are_remembered_for_a_while);
    tcase_add_test(tc, failures_are_reported_and_forgotten);
    tcase_add_test(tc, a_cancelled_query_is_not_answered);
    tcase_add_test(tc, a_stuck_thread_is_given_up);
    tcase_add_test(tc, a_lot_of_names);
    suite_add_tcase(suite, tc);
    return suite;
}
