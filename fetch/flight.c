#include "fetch/flight.h"

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/djb.h"

struct flight {
    RB_ENTRY(flight) node;   /* in flights->tree, */
    LIST_ENTRY(flight) link; /* or in flights->alone */
    uint32_t hash;
    unsigned waiting;
    bool alone;
    bool called_off;             /* in neither any more */
    struct flight_waiter *first; /* the leader */
    struct flight_waiter *last;
    size_t url_len;
    char url[];
};

RB_HEAD(flight_tree, flight);
LIST_HEAD(flight_list, flight);

struct flights {
    pthread_mutex_t lock;
    unsigned max_waiters; /* constant */
    /* protected by lock */
    struct flight_tree tree;
    struct flight_list alone;
    size_t count;
};

static int
compare(uint32_t hash_a, struct span a, uint32_t hash_b, struct span b)
{
    if (hash_a != hash_b)
        return hash_a < hash_b ? -1 : 1;
    return span_compare(a, b);
}

static int
compare_flights(struct flight *a, struct flight *b)
{
    return compare(a->hash, span_of(a->url, a->url_len), b->hash, span_of(b->url, b->url_len));
}

/* RB_GENERATE_STATIC asks for a __unused that libbsd does not define on Linux. */
RB_GENERATE_INTERNAL(flight_tree, flight, node, compare_flights, __attribute__((unused)) static)

struct flights *
flights_create(unsigned max_waiters)
{
    struct flights *flights = calloc(1, sizeof(*flights));

    if (!flights)
        return NULL;
    if (pthread_mutex_init(&flights->lock, NULL) != 0) {
        free(flights);
        return NULL;
    }
    flights->max_waiters = max_waiters;
    RB_INIT(&flights->tree);
    LIST_INIT(&flights->alone);
    return flights;
}

void
flights_destroy(struct flights *flights)
{
    if (!flights)
        return;
    pthread_mutex_destroy(&flights->lock);
    free(flights);
}

static struct flight *
find(struct flights *flights, uint32_t hash, struct span url)
{
    struct flight *flight = RB_ROOT(&flights->tree);

    while (flight) {
        int order = compare(hash, url, flight->hash, span_of(flight->url, flight->url_len));

        if (order == 0)
            return flight;
        flight = order < 0 ? RB_LEFT(flight, node) : RB_RIGHT(flight, node);
    }
    return NULL;
}

static struct flight *
begin(struct flights *flights, uint32_t hash, struct span url, struct flight_waiter *waiter,
      bool alone)
{
    struct flight *flight = malloc(sizeof(*flight) + url.len);

    if (!flight)
        return NULL;
    flight->hash = hash;
    flight->waiting = 1;
    flight->alone = alone;
    flight->called_off = false;
    flight->first = waiter;
    flight->last = waiter;
    flight->url_len = url.len;
    if (url.len)
        memcpy(flight->url, url.ptr, url.len);
    if (alone)
        LIST_INSERT_HEAD(&flights->alone, flight, link);
    else
        RB_INSERT(flight_tree, &flights->tree, flight);
    flights->count++;
    return flight;
}

enum flight_role
flights_board(struct flights *flights, struct span url, struct flight_waiter *waiter,
              bool (*found)(void *context), void *context, struct flight **flight)
{
    uint32_t hash = djb_hash(url);
    enum flight_role role;
    struct flight *there;

    *flight = NULL;
    waiter->next = NULL;
    waiter->leader = false;
    pthread_mutex_lock(&flights->lock);
    there = find(flights, hash, url);
    if (there && there->waiting >= flights->max_waiters) {
        role = FLIGHT_FULL;
    } else if (there) {
        there->last->next = waiter;
        there->last = waiter;
        there->waiting++;
        role = FLIGHT_JOINED;
    } else if (found && found(context)) {
        role = FLIGHT_FOUND;
    } else {
        /* Marked before anyone else can see it. */
        waiter->leader = true;
        *flight = begin(flights, hash, url, waiter, false);
        role = *flight ? FLIGHT_LED : FLIGHT_NO_MEMORY;
        if (!*flight)
            waiter->leader = false;
    }
    pthread_mutex_unlock(&flights->lock);
    return role;
}

bool
flights_board_alone(struct flights *flights, struct span url, struct flight_waiter *waiter,
                    struct flight **flight)
{
    waiter->next = NULL;
    waiter->leader = true;
    pthread_mutex_lock(&flights->lock);
    *flight = begin(flights, djb_hash(url), url, waiter, true);
    pthread_mutex_unlock(&flights->lock);
    return *flight != NULL;
}

/* Takes a flight out of where requests and purges find it. */
static void
withdraw(struct flights *flights, struct flight *flight)
{
    if (flight->alone)
        LIST_REMOVE(flight, link);
    else
        RB_REMOVE(flight_tree, &flights->tree, flight);
}

struct flight_waiter *
flights_land(struct flights *flights, struct flight *flight, void (*keep)(void *context),
             void *context)
{
    struct flight_waiter *first;

    pthread_mutex_lock(&flights->lock);
    if (!flight->called_off) {
        if (keep)
            keep(context);
        withdraw(flights, flight);
    }
    flights->count--;
    pthread_mutex_unlock(&flights->lock);
    first = flight->first;
    free(flight);
    return first;
}

static void
call_off(struct flights *flights, struct flight *flight)
{
    withdraw(flights, flight);
    flight->called_off = true;
}

void
flights_call_off(struct flights *flights, struct span url)
{
    uint32_t hash = djb_hash(url);
    struct flight *flight, *next;

    pthread_mutex_lock(&flights->lock);
    flight = find(flights, hash, url);
    if (flight)
        call_off(flights, flight);
    LIST_FOREACH_SAFE(flight, &flights->alone, link, next)
    if (compare(hash, url, flight->hash, span_of(flight->url, flight->url_len)) == 0)
        call_off(flights, flight);
    pthread_mutex_unlock(&flights->lock);
}

void
flights_call_off_prefix(struct flights *flights, struct span prefix)
{
    struct flight *flight, *next;

    pthread_mutex_lock(&flights->lock);
    RB_FOREACH_SAFE(flight, flight_tree, &flights->tree, next)
    if (span_starts_with(span_of(flight->url, flight->url_len), prefix))
        call_off(flights, flight);
    LIST_FOREACH_SAFE(flight, &flights->alone, link, next)
    if (span_starts_with(span_of(flight->url, flight->url_len), prefix))
        call_off(flights, flight);
    pthread_mutex_unlock(&flights->lock);
}

size_t
flights_count(struct flights *flights)
{
    size_t count;

    pthread_mutex_lock(&flights->lock);
    count = flights->count;
    pthread_mutex_unlock(&flights->lock);
    return count;
}
