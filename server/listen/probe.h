/*
 * Could the daemon listen where its options say? Each address is bound for a moment, and not
 * listened on; of AF_UNIX sockets the folders are looked at.
 *
 * One thread.
 */
#ifndef SUNPROXY_SERVER_LISTEN_PROBE_H
#define SUNPROXY_SERVER_LISTEN_PROBE_H

#include <stdbool.h>

#include "base/buf.h"
#include "server/config/options.h"

/*
 * After listen_check(). False with a line in `why` for each place that cannot be had. An address
 * that is in use, as by a daemon that runs with these options, is a line in `warnings`.
 */
bool probe_addresses(const struct options *options, struct buf *why, struct buf *warnings);

#endif
