/*
 * The window of a body that will not be stored (fill.h, struct cache_window): which segments are
 * kept, which readers lag, and when the fetch pauses. Private. The caller has the lock of the
 * fill's shard.
 */
#ifndef SUNPROXY_CACHE_WINDOW_H
#define SUNPROXY_CACHE_WINDOW_H

#include "cache/fill.h"
#include "cache/shard.h"

/*
 * Of a windowed fill, after its readers or its body have changed: readers that lag get FAILED, and
 * a pause begins (only if the body has grown) or ends. Removes segments that no reader needs.
 */
void window_move(struct shard *shard, struct cache_fill *fill, bool has_grown);

#endif
