#include "server/store/worker_rings.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "net/connection.h"
#include "net/server.h"
#include "server/logs/log.h"
#include "store/disk_ring.h"
#include "store/store_lane.h"

#define READS 256u /* of one worker at a time */

/* Of one worker, whose thread has it while it runs. */
struct worker_ring {
    struct net_worker *worker;
    struct store *store;
    unsigned number;
    struct event *ended; /* reads have */
    struct event *later; /* the next turn, while reads are under way */
    bool waits;          /* for that */
};

struct worker_rings {
    unsigned count;
    struct disk_ring **rings;
    struct worker_ring *of;
};

/* ---- turns ----------------------------------------------------------------------------------- */

/* What follows is done at the end of the turn. */
static void
on_end(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    (void)context;
}

static void
on_time(evutil_socket_t fd, short what, void *context)
{
    struct worker_ring *ring = context;

    (void)fd;
    (void)what;
    ring->waits = false;
}

static void
wait_for_turn(struct worker_ring *ring)
{
    static const struct timeval after = {.tv_usec = STORE_LANE_TURN_US};

    ring->waits = event_add(ring->later, &after) == 0;
}

/*
 * The requests that the turn of the lane has ended are answered within it, without a wake-up of this
 * thread; what these ask for is begun at once.
 */
static void
turn(void *context)
{
    struct worker_ring *ring = context;
    bool goes_on;

    net_worker_hold_wakes();
    goes_on = store_lane_turn(ring->store, ring->number);
    if (net_worker_run_held(ring->worker))
        goes_on = store_lane_turn(ring->store, ring->number);
    if (goes_on && !ring->waits)
        wait_for_turn(ring);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static bool
make_rings(struct worker_rings *rings)
{
    for (unsigned i = 0; i < rings->count; i++) {
        rings->rings[i] = disk_ring_make(READS);
        if (!rings->rings[i])
            return false;
    }
    return true;
}

bool
worker_rings_make(const struct options *options, unsigned workers, struct worker_rings **rings)
{
    struct worker_rings *made;
    const char *why;

    *rings = NULL;
    if (!options->store || options->store_reads == STORE_READS_THREADS)
        return true;
    made = calloc(1, sizeof(*made));
    if (made) {
        made->count = workers;
        made->rings = calloc(workers, sizeof(struct disk_ring *));
        made->of = calloc(workers, sizeof(*made->of));
    }
    if (made && made->rings && made->of && make_rings(made)) {
        *rings = made;
        return true;
    }
    why = strerror(errno);
    worker_rings_free(made);
    if (options->store_reads == STORE_READS_RING) {
        log_error("%sstore-reads: io_uring cannot be used: %s", options_place(options, "store-reads"),
                  why);
        return false;
    }
    log_info("the store is read by threads, since io_uring cannot be used: %s", why);
    return true;
}

struct disk_ring *const *
worker_rings_of(const struct worker_rings *rings)
{
    return rings ? rings->rings : NULL;
}

bool
worker_rings_begin(struct worker_rings *rings, struct store *store, struct net_server *server)
{
    for (unsigned i = 0; rings && i < rings->count; i++) {
        struct worker_ring *ring = &rings->of[i];
        struct net_worker *worker = net_server_connections(server, i)->worker;

        *ring = (struct worker_ring){.worker = worker, .store = store, .number = i};
        ring->ended =
            event_new(worker->base, store_lane_fd(store, i), EV_READ | EV_PERSIST, on_end, ring);
        ring->later = event_new(worker->base, -1, 0, on_time, ring);
        if (!ring->ended || !ring->later || event_add(ring->ended, NULL) != 0)
            return false;
        net_worker_set_turned(worker, turn, ring);
    }
    return true;
}

void
worker_rings_end(struct worker_rings *rings)
{
    for (unsigned i = 0; rings && i < rings->count; i++) {
        struct worker_ring *ring = &rings->of[i];

        if (ring->ended)
            event_free(ring->ended);
        if (ring->later)
            event_free(ring->later);
        ring->ended = ring->later = NULL;
    }
}

void
worker_rings_free(struct worker_rings *rings)
{
    if (!rings)
        return;
    for (unsigned i = 0; rings->rings && i < rings->count; i++)
        disk_ring_free(rings->rings[i]);
    free(rings->rings);
    free(rings->of);
    free(rings);
}
