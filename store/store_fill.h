/*
 * Filling a version from a store (cache/fill.h), as proxy/origin_fill.h does from an origin. A
 * thread of the store reads the record and verifies its checksums before it publishes anything.
 *
 * Requests that wait get the version that was found, which is put into the cache, too. Each of them
 * checks whether the version is fresh enough. If there is none, the requests look up again. They do
 * so as well for a URL that varies, after the names of its Vary have been put into the cache.
 */
#ifndef SUNPROXY_STORE_STORE_FILL_H
#define SUNPROXY_STORE_STORE_FILL_H

#include "cache/fill.h"
#include "store/store.h"

struct request;

/* cache_request.fill_size for fills that store_fill_start() is to get, at least. */
size_t store_fill_size(void);

/*
 * Fills the version. What the kernel has in memory is read at once, on the caller's thread, without
 * waiting. Otherwise the lane's ring (store_lane.h) or a thread of the store reads. [the thread of
 * request->lane]
 */
enum source_filling store_fill_start(struct store *store, struct cache_fill *fill,
                                     const struct source_request *request);

#endif
