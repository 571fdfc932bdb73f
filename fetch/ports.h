/*
 * Ports that are for other protocols: a request sent there may be a command to whatever listens, so
 * browsers refuse them (the Fetch standard, section "port blocking").
 */
#ifndef SUNPROXY_FETCH_PORTS_H
#define SUNPROXY_FETCH_PORTS_H

#include <stdbool.h>
#include <stdint.h>

/* Is it one of the standard's bad ports? */
bool port_is_blocked(uint16_t port);

#endif
