/* The queue beside a naive model: what comes next, and whose queue is the longest. */
#define UNIT_STARTS_NO_THREAD

#include "base/fair_queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

enum { ENTRIES = 120, CLIENTS = 9, ORIGINS = 5, STEPS = 2500 };

enum state { OUT, QUEUED, OPENING, STREAMING, OVERFLOWING };

struct model_entry {
    struct queue_item item; /* the queue's */
    enum state state;
    unsigned client, origin;
    unsigned long arrival;
};

struct model {
    struct queue_limits limits;
    struct model_entry items[ENTRIES];
    unsigned long served[CLIENTS], arrived[CLIENTS];
    unsigned long clock;
};

static unsigned
count(const struct model *m, enum state state, unsigned client, unsigned origin)
{
    unsigned found = 0;

    for (unsigned i = 0; i < ENTRIES; i++)
        found += m->items[i].state == state &&
                 (client == CLIENTS || m->items[i].client == client) &&
                 (origin == ORIGINS || m->items[i].origin == origin);
    return found;
}

static unsigned
count_slots(const struct model *m, enum state kind, unsigned client)
{
    return count(m, kind, client, ORIGINS) +
           (kind == OPENING ? count(m, OVERFLOWING, client, ORIGINS) : 0);
}

static bool
has_shares(const struct model *m)
{
    return m->limits.client_opening && m->limits.client_opening < m->limits.opening;
}

/* The rule of the shares in whole numbers: own / (slots that others leave) < share / slots */
static bool
may_have_one_more(const struct model *m, enum state kind, unsigned client)
{
    unsigned slots = kind == OPENING ? m->limits.opening : m->limits.streaming;
    unsigned share = kind == OPENING ? m->limits.client_opening : m->limits.client_streaming;
    unsigned own = count_slots(m, kind, client);
    unsigned used = count_slots(m, kind, CLIENTS);

    if (used >= slots)
        return false;
    return !has_shares(m) || own * slots < share * (slots - used + own);
}

static bool
has_place(const struct model *m, const struct model_entry *e)
{
    unsigned own = count(m, OPENING, e->client, e->origin);
    unsigned used = count(m, OPENING, CLIENTS, e->origin);

    if (m->limits.per_origin == 0)
        return true;
    if (used >= m->limits.per_origin)
        return false;
    return !has_shares(m) || 2 * own < m->limits.per_origin - used + own;
}

static bool
may_start(const struct model *m, const struct model_entry *e)
{
    return e->state == QUEUED && has_place(m, e) && may_have_one_more(m, OPENING, e->client);
}

/* Compares what comes next with what the rules allow; true if something came. */
static bool
check_next(struct model *m, struct queue *queue)
{
    struct queue_item *next = queue_next(queue);
    struct model_entry *taken = (struct model_entry *)next;
    unsigned taken_opening = 0;

    if (next) {
        ck_assert(may_start(m, taken));
        taken_opening = count_slots(m, OPENING, taken->client);
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        const struct model_entry *e = &m->items[i];
        unsigned opening;

        if (!may_start(m, e))
            continue;
        ck_assert_ptr_nonnull(next);
        opening = count_slots(m, OPENING, e->client);
        ck_assert_uint_ge(opening, taken_opening);
        if (opening == taken_opening)
            ck_assert_uint_ge(m->served[e->client], m->served[taken->client]);
        if (e->client == taken->client && e->origin == taken->origin)
            ck_assert_uint_ge(e->arrival, taken->arrival);
    }
    if (!next)
        return false;
    taken->state = OPENING;
    m->served[taken->client] = ++m->clock;
    return true;
}

static void
check_longest(const struct model *m, const struct queue *queue)
{
    const struct model_entry *last = (struct model_entry *)queue_last_of_longest(queue);
    unsigned longest = 0;

    for (unsigned c = 0; c < CLIENTS; c++) {
        unsigned queued = count(m, QUEUED, c, ORIGINS);

        longest = queued > longest ? queued : longest;
    }
    ck_assert((last == NULL) == (longest == 0));
    if (!last)
        return;
    ck_assert_uint_eq(count(m, QUEUED, last->client, ORIGINS), longest);
    for (unsigned i = 0; i < ENTRIES; i++) {
        const struct model_entry *e = &m->items[i];

        if (e->state == QUEUED && e->client == last->client)
            ck_assert_uint_le(e->arrival, last->arrival);
    }
    for (unsigned c = 0; c < CLIENTS; c++)
        if (count(m, QUEUED, c, ORIGINS) == longest)
            ck_assert_uint_le(m->arrived[c], m->arrived[last->client]);
}

static void
enter_model(struct model *m, struct queue *queue, struct model_entry *e)
{
    char origin[16];

    /* Client 0 has half of all, client 1 stays with one origin. */
    e->client = rand() % 2 ? 0 : (unsigned)rand() % CLIENTS;
    e->origin = e->client == 1 ? 0 : (unsigned)rand() % ORIGINS;
    if (count(m, QUEUED, e->client, ORIGINS) + count_slots(m, OPENING, e->client) +
            count_slots(m, STREAMING, e->client) ==
        0)
        m->served[e->client] = ++m->clock;
    e->arrival = m->arrived[e->client] = ++m->clock;
    e->state = QUEUED;
    snprintf(origin, sizeof(origin), "origin-%u", e->origin);
    ck_assert(queue_add(queue, &e->item, unit_client(e->client), origin));
}

static void
stream(struct model *m, struct queue *queue, struct model_entry *e)
{
    bool moves = may_have_one_more(m, STREAMING, e->client);

    queue_stream(queue, &e->item);
    e->state = moves ? STREAMING : OVERFLOWING;
}

static void
reopen(struct model *m, struct queue *queue, struct model_entry *e)
{
    bool may =
        has_place(m, e) && (e->state == OVERFLOWING || may_have_one_more(m, OPENING, e->client));

    queue_reopen(queue, &e->item);
    e->state = may ? OPENING : e->state;
}

static void
step(struct model *m, struct queue *queue)
{
    struct model_entry *e = &m->items[rand() % ENTRIES];

    if (e->state == OUT) {
        enter_model(m, queue, e);
    } else if (e->state == OPENING && rand() % 2) {
        stream(m, queue, e);
    } else if (e->state > OPENING && rand() % 4 == 0) {
        reopen(m, queue, e);
    } else if (e->state != QUEUED || rand() % 8 == 0) {
        queue_remove(queue, &e->item);
        e->state = OUT;
    }
    while (rand() % 4 && check_next(m, queue))
        continue;
    check_longest(m, queue);
    ck_assert_uint_eq(queue_queued(queue), count(m, QUEUED, CLIENTS, ORIGINS));
    ck_assert_uint_eq(queue_opening(queue), count_slots(m, OPENING, CLIENTS));
    ck_assert_uint_eq(queue_active(queue),
                      count_slots(m, OPENING, CLIENTS) + count_slots(m, STREAMING, CLIENTS));
}

START_TEST(random_sequences)
{
    static const struct queue_limits limits[] = {
        {.opening = 12,
         .streaming = 4,
         .per_origin = 4,
         .client_opening = 4,
         .client_streaming = 2},
        {.opening = 30,
         .streaming = 10,
         .per_origin = 40,
         .client_opening = 5,
         .client_streaming = 5},
        {.opening = 40, .per_origin = 3},
        {.opening = 1, .streaming = 6, .per_origin = 1, .client_opening = 7},
        {.opening = 20,
         .streaming = 10,
         .per_origin = 8,
         .client_opening = 19,
         .client_streaming = 10},
        {.opening = 1, .per_origin = 1, .client_opening = 1},
        {.opening = 16, .streaming = 3, .client_opening = 3, .client_streaming = 1},
    };
    static struct model m;
    struct queue *queue = queue_create(&limits[_i], CLIENT_FETCHES);

    memset(&m, 0, sizeof(m));
    m.limits = limits[_i];
    srand((unsigned)_i + 1);
    for (unsigned i = 0; i < STEPS; i++)
        step(&m, queue);
    /* Nothing starves: with all active ones gone again and again, all get their turn. */
    while (queue_queued(queue)) {
        unsigned started = 0;

        while (check_next(&m, queue))
            started++;
        for (unsigned i = 0; i < ENTRIES; i++) {
            if (m.items[i].state < OPENING)
                continue;
            queue_remove(queue, &m.items[i].item);
            m.items[i].state = OUT;
            started++;
        }
        ck_assert_uint_gt(started, 0);
    }
    for (unsigned i = 0; i < ENTRIES; i++)
        queue_remove(queue, &m.items[i].item);
    queue_destroy(queue);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/fair_queue: model");
    TCase *tc = tcase_create("model");

    tcase_add_loop_test(tc, random_sequences, 0, 7);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    return suite;
}
