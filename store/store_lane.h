/*
 * The lanes of a store: each is for one thread that fills from it, a worker. What the kernel has in
 * memory is read on that thread at once, and what it has not by a ring of the lane's own
 * (disk_ring.h), if it has one. The thread polls the ring beside its other descriptors.
 *
 * Every function is for the thread of the lane, until that has ended.
 */
#ifndef SUNPROXY_STORE_STORE_LANE_H
#define SUNPROXY_STORE_STORE_LANE_H

#include "store/store.h"

/* store_lane_turn() is called this often while reads are under way. */
#define STORE_LANE_TURN_US ((int64_t)5000)

/* To be polled for reading; -1: the lane has no ring, and needs no turns. */
int store_lane_fd(const struct store *store, unsigned lane);

/*
 * Begins the reads that were asked for, ends those that are done, and gives up those that take too
 * long. To be called after each turn of the loop, when the descriptor can be read, and as often as
 * STORE_LANE_TURN_US says. True while reads are under way.
 */
bool store_lane_turn(struct store *store, unsigned lane);

#endif
