/*
 * The ports to which tunnels are made (--connect-port). Safe on any thread once it is made.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_PORTS_H
#define SUNPROXY_SERVER_HTTP_HTTP_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/config/options.h"

struct http_ports {
    uint8_t bits[65536 / 8];
};

/* Numbers above 0, or "any"; 443 if there are none. False with a sentence in `why`. */
bool http_ports_read(struct http_ports *ports, const struct option_list *list, struct buf *why);

static inline bool
http_ports_have(const struct http_ports *ports, uint16_t port)
{
    return ports->bits[port / 8] >> port % 8 & 1;
}

#endif
