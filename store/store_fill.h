/*
 * Filling a version from a store (cache/fill.h), as proxy/origin_fill.h does from an origin. A
 * thread of the store reads the record and verifies its checksums before it publishes anything.
 *
 * The version that was found is given to the requests that wait, who have to see whether it is
 * fresh enough for them, and is put into the cache. If there is none after all, they look up again;
 * so they do for a URL that varies, after the names by which it does have been put into the cache.
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
