/*
 * A reload: the configuration is read again (config/opener.h) and takes effect as a whole, or not
 * at all. Connections, requests in flight and the cache stay. A request keeps the configuration
 * with which it began.
 *
 * The pages of a row of --origin whose members are all others than before are removed: they are
 * another origin's. So are those that a new or a removed row concerns.
 */
#ifndef SUNPROXY_SERVER_RELOAD_H
#define SUNPROXY_SERVER_RELOAD_H

#include "server/components.h"
#include "server/config/opener.h"

/*
 * Between the start of the workers and their end, on the thread of both. True: `answer` names what
 * was changed, in a sentence. False: nothing has changed, and `answer` has a line for each reason.
 */
bool reload(struct components *parts, struct buf *answer);

#endif
