/* Every allocation of the fair queue failing in turn: an item less, and nothing lost. */
#include "base/fair_queue.h"

#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static void
walk_queue(void *context)
{
    static const struct queue_limits limits = {.opening = 3, .streaming = 1, .per_origin = 1};
    static const char *const origins[] = {"http://a.test:80", "http://a.test:80",
                                          "http://b.test:80", "http://a.test:80"};
    struct queue *queue = queue_create(&limits, CLIENT_FETCHES);
    struct queue_item entries[4] = {0};
    unsigned queued = 0, started = 0;

    (void)context;
    if (!queue) {
        ck_assert(torture_failed());
        return;
    }
    for (unsigned i = 0; i < 4; i++)
        queued += queue_add(queue, &entries[i], unit_client(i / 2), origins[i]);
    ck_assert_uint_eq(queued, torture_failed() ? 3 : 4);
    ck_assert_uint_eq(queue_queued(queue), queued);
    while (queue_next(queue))
        started++;
    ck_assert_uint_ge(started, 1);
    for (unsigned i = 0; i < 4; i++)
        queue_remove(queue, &entries[i]);
    ck_assert_uint_eq(queue_queued(queue) + queue_active(queue), 0);
    queue_destroy(queue);
    ck_assert(unit_clients_are_idle());
}

START_TEST(torture)
{
    ck_assert_uint_ge(torture_walk(walk_queue, NULL), 6);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/fair_queue without memory");
    TCase *tc = tcase_create("torture");

    tcase_add_test(tc, torture);
    suite_add_tcase(suite, tc);
    return suite;
}
