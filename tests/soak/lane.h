/*
 * Lanes: threads that each send requests of the mix over a connection of their own, some at a time,
 * and check every answer.
 */
#ifndef SUNPROXY_TESTS_SOAK_LANE_H
#define SUNPROXY_TESTS_SOAK_LANE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/soak/mix.h"

#define LANE_MOST_ROWS 128u
#define LANE_DEPTH 16u /* requests under way on a lane */
#define LANE_MOST_FAILURES 10u

/* Where the daemon listens. */
struct lane_address {
    struct sockaddr_storage address;
    socklen_t len;
    bool admin; /* AF_UNIX, as an administrator */
};

/* Shared by all lanes. */
struct lane_work {
    struct lane_address tcp, local;
    int64_t timeout_us; /* of a call */
    uint64_t seed;
    uint32_t capacity_urls; /* what the capacities that the mix sets are drawn around */
    bool rare;              /* the phase asks the rare rows alone, in turn */

    _Atomic uint64_t next;  /* number of the next request, */
    _Atomic uint64_t until; /* of the first of the next phase */
    _Atomic bool stop;
    _Atomic uint64_t asked[LANE_MOST_ROWS]; /* by row, answered as expected */
    _Atomic uint64_t hits, stored, evicted; /* what the answers of the phase said of the cache */

    pthread_mutex_t lock; /* protects the output of failures */
    unsigned failures;
};

/*
 * Runs `count` lanes, every other one over TCP, until the phase has no request left, every answer
 * has come and every connection is closed. The first request of each row comes first in the run.
 * False if threads cannot be made.
 */
bool lane_run_all(struct lane_work *work, unsigned count);

/* Prints an answer that was not expected, with its URL; the run is stopped after some of them. */
void lane_fail(struct lane_work *work, const struct mix_ask *ask, const char *what);

#endif
