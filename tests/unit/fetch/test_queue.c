/* Turns and deadlines. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "fetch/timers.h"
#include "tests/unit/unit.h"

/* ---- by hand ------------------------------------------------------------------------- */

static struct queue *
create(unsigned opening, unsigned streaming, unsigned per_origin, unsigned per_client)
{
    const struct queue_limits limits = {.opening = opening,
                                        .streaming = streaming,
                                        .per_origin = per_origin,
                                        .client_opening = per_client,
                                        .client_streaming = per_client};
    struct queue *queue = queue_create(&limits, CLIENT_FETCHES);

    ck_assert_ptr_nonnull(queue);
    return queue;
}

static void
enter(struct queue *queue, struct queue_item *item, unsigned client, const char *origin)
{
    ck_assert(queue_add(queue, item, unit_client(client), origin));
}

/* Starts all that may; how many. */
static unsigned
start_all(struct queue *queue)
{
    unsigned started = 0;

    while (queue_next(queue))
        started++;
    return started;
}

static void
leave_all(struct queue *queue, struct queue_item *items, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        queue_remove(queue, &items[i]);
}

START_TEST(bounds_in_all_and_per_origin)
{
    struct queue *queue = create(3, 0, 2, 0);
    struct queue_item a[3] = {0}, b[2] = {0};

    for (unsigned i = 0; i < 3; i++)
        enter(queue, &a[i], 1, "http://a:80");
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[1]);
    ck_assert_ptr_null(queue_next(queue));
    ck_assert_int_eq(queue_find_wait(queue, &a[2]), QUEUE_ORIGIN);
    /* The origin at its bound does not hold up another. */
    enter(queue, &b[0], 1, "http://b:80");
    enter(queue, &b[1], 1, "http://b:80");
    ck_assert_ptr_eq(queue_next(queue), &b[0]);
    ck_assert_ptr_null(queue_next(queue));
    ck_assert_uint_eq(queue_active(queue), 3);
    ck_assert_uint_eq(queue_queued(queue), 2);
    /* Total bound: one is removed, one follows. */
    queue_remove(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &b[1]);
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &b[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[2]);
    queue_remove(queue, &a[1]);
    queue_remove(queue, &a[2]);
    queue_remove(queue, &b[1]);
    queue_remove(queue, &b[1]);
    ck_assert_uint_eq(queue_active(queue), 0);
    ck_assert_uint_eq(queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* One that streams makes a place at its origin, and takes it back only where there is one. */
START_TEST(streaming_ones_leave_their_origin)
{
    struct queue *queue = create(8, 8, 2, 0);
    struct queue_item e[6] = {0}, to = {0};

    queue_stream(queue, &e[0]);
    for (unsigned i = 0; i < 6; i++)
        enter(queue, &e[i], i % 2, "http://a:80");
    queue_stream(queue, &e[5]); /* queued: nothing changes */
    queue_reopen(queue, &e[5]);
    ck_assert_uint_eq(start_all(queue), 2);
    queue_stream(queue, &e[0]);
    queue_stream(queue, &e[0]);
    ck_assert_uint_eq(queue_opening(queue), 1);
    ck_assert_uint_eq(start_all(queue), 1);
    ck_assert_uint_eq(queue_active(queue), 3);
    queue_reopen(queue, &e[0]); /* there is no place: it stays as it is */
    ck_assert_uint_eq(queue_opening(queue), 2);
    queue_remove(queue, &e[1]);
    queue_reopen(queue, &e[0]);
    queue_reopen(queue, &e[0]);
    ck_assert_uint_eq(queue_opening(queue), 2);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_stream(queue, &e[0]);
    ck_assert_uint_eq(start_all(queue), 1);
    queue_hand_over(&e[0], &to);
    queue_remove(queue, &to);
    ck_assert_uint_eq(start_all(queue), 0);
    leave_all(queue, e, 6);
    ck_assert_uint_eq(queue_active(queue) + queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* A client has half of the places at an origin that the others leave. */
START_TEST(a_share_of_an_origin)
{
    enum { PLACES = 16, EACH = 20, CLIENTS = 5 };
    static const unsigned shares[CLIENTS] = {8, 4, 2, 1, 1};
    static struct queue_item items[CLIENTS][EACH];
    struct queue *queue = create(1000, 0, PLACES, 200);

    memset(items, 0, sizeof(items));
    for (unsigned c = 0; c < CLIENTS; c++) {
        for (unsigned i = 0; i < EACH; i++)
            enter(queue, &items[c][i], c, "a");
        ck_assert_uint_eq(start_all(queue), shares[c]);
    }
    /* What is given back goes to those with the fewest. */
    for (unsigned i = 0; i < 3; i++)
        queue_remove(queue, &items[0][i]);
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(items[3][1].state, ITEM_OPENING);
    ck_assert_int_eq(items[4][1].state, ITEM_OPENING);
    for (unsigned c = 0; c < CLIENTS; c++)
        leave_all(queue, items[c], EACH);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

START_TEST(what_a_queued_one_waits_for)
{
    struct queue *queue = create(8, 0, 4, 4);
    struct queue_item a[6] = {0}, b[4] = {0}, c[2] = {0};

    for (unsigned i = 0; i < 3; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_int_eq(queue_find_wait(queue, &a[0]), QUEUE_TURN);
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(queue_find_wait(queue, &a[2]), QUEUE_CLIENT_AT_ORIGIN);
    for (unsigned i = 3; i < 6; i++)
        enter(queue, &a[i], 1, "b");
    ck_assert_uint_eq(start_all(queue), 2);
    ck_assert_int_eq(queue_find_wait(queue, &a[5]), QUEUE_CLIENT_AT_ORIGIN);
    enter(queue, &b[0], 1, "c");
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &b[0]), QUEUE_CLIENT);
    for (unsigned i = 1; i < 4; i++)
        enter(queue, &b[i], 1 + i, i == 3 ? "c" : "d");
    enter(queue, &c[0], 5, "e");
    ck_assert_uint_eq(start_all(queue), 4);
    enter(queue, &c[1], 6, "f");
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &c[1]), QUEUE_SLOT);
    leave_all(queue, a, 6);
    leave_all(queue, b, 4);
    leave_all(queue, c, 2);
    queue_destroy(queue);
}
END_TEST

START_TEST(origins_take_turns)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a[4] = {0}, b = {0}, *next;

    for (unsigned i = 0; i < 4; i++)
        enter(queue, &a[i], 1, "a");
    enter(queue, &b, 1, "b");
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[0]);
    queue_remove(queue, next);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &b);
    queue_remove(queue, next);
    /* An item that has left is passed over. */
    queue_remove(queue, &a[1]);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[2]);
    queue_remove(queue, &a[3]);
    queue_remove(queue, next);
    ck_assert_ptr_null(queue_next(queue));
    queue_destroy(queue);
    queue_destroy(NULL);
}
END_TEST

START_TEST(clients_take_turns)
{
    static const unsigned order[] = {1, 2, 3, 1, 2, 1, 1};
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item items[7] = {0}, *next;
    const unsigned clients[7] = {1, 1, 1, 1, 2, 2, 3};

    /* One origin for all: its bound changes nothing about the order. */
    for (unsigned i = 0; i < 7; i++)
        enter(queue, &items[i], clients[i], "a");
    for (unsigned i = 0; i < 7; i++) {
        next = queue_next(queue);
        ck_assert_ptr_nonnull(next);
        ck_assert_uint_eq(clients[next - items], order[i]);
        queue_remove(queue, next);
    }
    queue_destroy(queue);
}
END_TEST

/* A client that comes and goes does not starve one that stays. */
START_TEST(a_client_that_returns_waits_again)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item stays[2] = {0}, returns = {0};

    enter(queue, &stays[0], 1, "a");
    enter(queue, &stays[1], 1, "a");
    enter(queue, &returns, 2, "b");
    ck_assert_ptr_eq(queue_next(queue), &stays[0]);
    queue_remove(queue, &stays[0]);
    ck_assert_ptr_eq(queue_next(queue), &returns);
    queue_remove(queue, &returns);
    enter(queue, &returns, 2, "b");
    ck_assert_ptr_eq(queue_next(queue), &stays[1]);
    queue_remove(queue, &stays[1]);
    queue_remove(queue, &returns);
    queue_destroy(queue);
}
END_TEST

START_TEST(fewest_opening_first)
{
    struct queue *queue = create(4, 4, 4, 0);
    struct queue_item a[5] = {0}, b[2] = {0};

    for (unsigned i = 0; i < 5; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 4);
    enter(queue, &b[0], 2, "a");
    enter(queue, &b[1], 2, "a");
    queue_remove(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &b[0]);
    queue_remove(queue, &a[1]);
    ck_assert_ptr_eq(queue_next(queue), &b[1]);
    queue_remove(queue, &a[2]);
    ck_assert_ptr_eq(queue_next(queue), &a[4]);
    leave_all(queue, a, 5);
    leave_all(queue, b, 2);
    queue_destroy(queue);
}
END_TEST

/* With a share of an eighth, forty clients that take all they can leave a slot for another. */
START_TEST(a_share_of_what_others_do_not_use)
{
    enum { SLOTS = 1024, CLIENTS = 40, EACH = 200 };
    static struct queue_item items[CLIENTS][EACH];
    struct queue_item late = {0};
    struct queue *queue = create(SLOTS, 0, 0, SLOTS / 8);
    unsigned left = SLOTS;

    memset(items, 0, sizeof(items));
    for (unsigned c = 0; c < CLIENTS; c++) {
        unsigned started;

        for (unsigned i = 0; i < EACH; i++)
            enter(queue, &items[c][i], c, "a");
        started = start_all(queue);
        ck_assert_uint_eq(started, (left + 7) / 8);
        left -= started;
    }
    enter(queue, &late, CLIENTS, "a");
    ck_assert_ptr_eq(queue_next(queue), &late);
    /* Slots that are given back go to those with the fewest. */
    leave_all(queue, items[0], EACH);
    ck_assert_uint_gt(start_all(queue), 0);
    queue_remove(queue, &late);
    for (unsigned c = 1; c < CLIENTS; c++)
        leave_all(queue, items[c], EACH);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* Clients that have used up their shares wait for an origin in front of one that has not. */
START_TEST(an_origins_place_goes_to_a_flow_that_may_use_it)
{
    enum { GREEDY = 100 };
    static struct queue_item opening[GREEDY], parked[GREEDY];
    struct queue_item busy = {0}, modest = {0};
    struct queue *queue = create(1000, 0, 1, 1);
    char origin[16];

    memset(opening, 0, sizeof(opening));
    memset(parked, 0, sizeof(parked));
    enter(queue, &busy, GREEDY + 1, "contested");
    ck_assert_ptr_eq(queue_next(queue), &busy);
    for (unsigned c = 0; c < GREEDY; c++) {
        snprintf(origin, sizeof(origin), "of-%u", c);
        enter(queue, &opening[c], c, origin);
        ck_assert_ptr_eq(queue_next(queue), &opening[c]);
        enter(queue, &parked[c], c, "contested");
    }
    enter(queue, &modest, GREEDY, "contested");
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &busy);
    ck_assert_ptr_eq(queue_next(queue), &modest);
    ck_assert_ptr_null(queue_next(queue));
    /* Then it is the turn of any client that has a share again. */
    queue_remove(queue, &opening[GREEDY - 1]);
    queue_remove(queue, &modest);
    ck_assert_ptr_eq(queue_next(queue), &parked[GREEDY - 1]);
    leave_all(queue, opening, GREEDY);
    queue_remove(queue, &parked[GREEDY - 1]);
    for (unsigned c = 0; c < GREEDY - 1; c++) {
        struct queue_item *next = queue_next(queue);

        ck_assert_ptr_nonnull(next);
        ck_assert_ptr_null(queue_next(queue));
        queue_remove(queue, next);
    }
    ck_assert_uint_eq(queue_queued(queue), 0);
    queue_destroy(queue);
}
END_TEST

START_TEST(streaming_ones_free_their_slots)
{
    struct queue *queue = create(4, 4, 4, 0);
    struct queue_item a[10] = {0};

    for (unsigned i = 0; i < 10; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 4);
    queue_stream(queue, &a[0]);
    queue_stream(queue, &a[9]);
    ck_assert_uint_eq(queue_opening(queue), 3);
    ck_assert_uint_eq(start_all(queue), 1);
    for (unsigned i = 1; i < 4; i++)
        queue_stream(queue, &a[i]);
    ck_assert_uint_eq(start_all(queue), 3);
    ck_assert_uint_eq(queue_active(queue), 8);
    /* No slot is left: it keeps the one it has, but no place at its origin. */
    queue_stream(queue, &a[4]);
    ck_assert_int_eq(a[4].state, ITEM_OVERFLOWING);
    ck_assert_uint_eq(queue_opening(queue), 4);
    ck_assert_uint_eq(start_all(queue), 0);
    ck_assert_int_eq(queue_find_wait(queue, &a[8]), QUEUE_SLOT);
    queue_reopen(queue, &a[4]);
    ck_assert_int_eq(a[4].state, ITEM_OPENING);
    leave_all(queue, a, 10);
    ck_assert_uint_eq(queue_active(queue), 0);
    queue_destroy(queue);
}
END_TEST

/* A client's streams take slots of their own; beyond their share they take those of opening ones.
 */
START_TEST(the_bound_of_a_client)
{
    struct queue *queue = queue_create(
        &(struct queue_limits){
            .opening = 8, .streaming = 8, .client_opening = 2, .client_streaming = 4},
        CLIENT_FETCHES);
    struct queue_item a[9] = {0};

    for (unsigned i = 0; i < 9; i++)
        enter(queue, &a[i], 1, "a");
    ck_assert_uint_eq(start_all(queue), 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(queue_find_wait(queue, &a[i + 2]), QUEUE_CLIENT);
        queue_stream(queue, &a[i]);
        ck_assert_uint_eq(start_all(queue), 1);
    }
    queue_stream(queue, &a[4]);
    ck_assert_uint_eq(start_all(queue), 0);
    /* A slot of its own does not come back while it streams. */
    queue_remove(queue, &a[0]);
    ck_assert_uint_eq(start_all(queue), 0);
    queue_stream(queue, &a[5]);
    ck_assert_uint_eq(start_all(queue), 1);
    leave_all(queue, a, 9);
    queue_destroy(queue);
}
END_TEST

START_TEST(the_longest_queue_gives_way)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a[3] = {0}, b[3] = {0};

    ck_assert_ptr_null(queue_last_of_longest(queue));
    enter(queue, &a[0], 1, "a");
    enter(queue, &a[1], 1, "b");
    enter(queue, &b[0], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &a[1]);
    /* Equally many: the client that came last. */
    enter(queue, &b[1], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[1]);
    enter(queue, &a[2], 1, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &a[2]);
    enter(queue, &b[2], 2, "a");
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[2]);
    queue_remove(queue, &b[2]);
    /* Active ones do not count. */
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    queue_remove(queue, &a[2]);
    ck_assert_ptr_eq(queue_last_of_longest(queue), &b[1]);
    leave_all(queue, a, 3);
    leave_all(queue, b, 3);
    ck_assert_ptr_null(queue_last_of_longest(queue));
    queue_destroy(queue);
}
END_TEST

START_TEST(a_turn_is_handed_over)
{
    struct queue *queue = create(1, 0, 1, 0);
    struct queue_item a = {0}, b = {0}, heir = {0};

    enter(queue, &a, 1, "a");
    enter(queue, &b, 1, "a");
    ck_assert_ptr_eq(queue_next(queue), &a);
    queue_hand_over(&a, &heir);
    queue_remove(queue, &a);
    ck_assert_ptr_null(queue_next(queue));
    queue_remove(queue, &heir);
    ck_assert_ptr_eq(queue_next(queue), &b);
    queue_remove(queue, &b);
    queue_destroy(queue);
}
END_TEST

/* ---- beside a naive model ------------------------------------------------------------ */

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
    enter(queue, &e->item, e->client, origin);
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

/* ---- deadlines ----------------------------------------------------------------------- */

START_TEST(deadlines_in_order)
{
    struct timers timers;
    struct timer a = {0}, b = {0}, c = {0};

    timers_init(&timers);
    ck_assert_ptr_null(timers_first(&timers));
    timers_arm(&timers, &a, 20);
    timers_arm(&timers, &b, 10);
    timers_arm(&timers, &c, 10);
    ck_assert_ptr_eq(timers_first(&timers), &b);
    timers_arm(&timers, &b, 30);
    ck_assert_ptr_eq(timers_first(&timers), &c);
    timers_disarm(&timers, &c);
    timers_disarm(&timers, &c);
    ck_assert_ptr_eq(timers_first(&timers), &a);
    timers_disarm(&timers, &a);
    ck_assert_ptr_eq(timers_first(&timers), &b);
    timers_disarm(&timers, &b);
    ck_assert_ptr_null(timers_first(&timers));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/queue");
    TCase *tc = tcase_create("queue");

    tcase_add_test(tc, bounds_in_all_and_per_origin);
    tcase_add_test(tc, streaming_ones_leave_their_origin);
    tcase_add_test(tc, a_share_of_an_origin);
    tcase_add_test(tc, what_a_queued_one_waits_for);
    tcase_add_test(tc, origins_take_turns);
    tcase_add_test(tc, clients_take_turns);
    tcase_add_test(tc, a_client_that_returns_waits_again);
    tcase_add_test(tc, fewest_opening_first);
    tcase_add_test(tc, a_share_of_what_others_do_not_use);
    tcase_add_test(tc, an_origins_place_goes_to_a_flow_that_may_use_it);
    tcase_add_test(tc, streaming_ones_free_their_slots);
    tcase_add_test(tc, the_bound_of_a_client);
    tcase_add_test(tc, the_longest_queue_gives_way);
    tcase_add_test(tc, a_turn_is_handed_over);
    tcase_add_loop_test(tc, random_sequences, 0, 7);
    tcase_add_test(tc, deadlines_in_order);
    tcase_set_timeout(tc, 120);
    suite_add_tcase(suite, tc);
    return suite;
}
