#include "client/address.h"

#include <stdint.h>
#include <string.h>

#include "base/units.h"

bool
server_address_parse(struct server_address *address, const char *text)
{
    const char *colon = strrchr(text, ':'), *end = colon;
    uint64_t port;
    size_t len;

    *address = (struct server_address){.path = NULL};
    if (strncmp(text, "unix:", 5) == 0) {
        address->path = text + 5;
        return text[5] != '\0';
    }
    if (colon && *text == '[' && colon > text && colon[-1] == ']') {
        text++;
        end--;
    }
    if (!colon || end <= text || (size_t)(end - text) >= sizeof(address->host) ||
        !units_parse_uint(colon + 1, 1, 65535, &port))
        return false;
    len = (size_t)(end - text);
    memcpy(address->host, text, len);
    address->host[len] = '\0';
    address->port = (unsigned)port;
    return true;
}
