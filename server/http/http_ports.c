#include "server/http/http_ports.h"

#include <string.h>

#include "base/units.h"

static void
add(struct http_ports *ports, unsigned port)
{
    ports->bits[port / 8] = (uint8_t)(ports->bits[port / 8] | 1u << port % 8);
}

bool
http_ports_read(struct http_ports *ports, const struct option_list *list, struct buf *why)
{
    bool ok = true;
    uint64_t port;

    memset(ports->bits, 0, sizeof(ports->bits));
    if (list->count == 0)
        add(ports, 443);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], "any") == 0) {
            memset(ports->bits, 0xff, sizeof(ports->bits));
        } else if (units_parse_uint(list->items[i], 1, 65535, &port)) {
            add(ports, (unsigned)port);
        } else {
            buf_end_line(why);
            buf_printf(why, "%sconnect-port: \"%s\" is not a port or \"any\"",
                       option_place(list, i), list->items[i]);
            ok = false;
        }
    }
    return ok;
}
