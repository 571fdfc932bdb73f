#include "base/networks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
networks_free(struct networks *networks)
{
    free(networks->items);
    *networks = (struct networks){0};
}

bool
networks_same_prefix(const unsigned char *a, const unsigned char *b, unsigned prefix)
{
    unsigned whole = prefix / 8;
    unsigned rest = prefix % 8;

    if (memcmp(a, b, whole) != 0)
        return false;
    return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Is every bit past the prefix zero? */
static bool
is_start(const struct network *network, unsigned bits)
{
    for (unsigned bit = network->prefix; bit < bits; bit++)
        if (network->bytes[bit / 8] & (0x80u >> bit % 8))
            return false;
    return true;
}

static bool
parse_address(const char *text, size_t len, struct network *network)
{
    char address[INET6_ADDRSTRLEN];

    if (len >= sizeof(address))
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    network->family = strchr(address, ':') ? AF_INET6 : AF_INET;
    return inet_pton(network->family, address, network->bytes) == 1;
}

/* The prefix behind a slash. */
static bool
parse_prefix(const char *digits, unsigned bits, unsigned *prefix)
{
    size_t len = strspn(digits, "0123456789");

    if (len == 0 || len > 3 || digits[len] != '\0')
        return false;
    *prefix = (unsigned)strtoul(digits, NULL, 10);
    return *prefix <= bits;
}

static bool
append(struct networks *networks, const struct network *network)
{
    if (networks->count == networks->capacity) {
        size_t capacity = networks->capacity ? networks->capacity * 2 : 8;
        struct network *grown = realloc(networks->items, capacity * sizeof(*grown));

        if (!grown)
            return false;
        networks->items = grown;
        networks->capacity = capacity;
    }
    networks->items[networks->count++] = *network;
    return true;
}

bool
networks_add(struct networks *networks, const char *cidr, char *why, size_t why_size)
{
    const char *slash = strchr(cidr, '/');
    struct network network = {0};
    unsigned bits;

    if (!parse_address(cidr, slash ? (size_t)(slash - cidr) : strlen(cidr), &network))
        goto no_network;
    bits = network.family == AF_INET ? 32 : 128;
    network.prefix = bits;
    if (slash && !parse_prefix(slash + 1, bits, &network.prefix))
        goto no_network;
    if (!is_start(&network, bits)) {
        snprintf(why, why_size, "\"%.64s\" has bits set past its prefix of %u", cidr,
                 network.prefix);
        return false;
    }
    if (append(networks, &network))
        return true;
    snprintf(why, why_size, "no memory for another network");
    return false;

no_network:
    snprintf(why, why_size, "\"%.64s\" is no network such as 192.168.0.0/16 or fd00::/8", cidr);
    return false;
}

bool
networks_have(const struct networks *networks, int family, const unsigned char *bytes)
{
    for (size_t i = 0; i < networks->count; i++) {
        const struct network *network = &networks->items[i];

        if (network->family == family &&
            networks_same_prefix(bytes, network->bytes, network->prefix))
            return true;
    }
    return false;
}

bool
networks_have_address(const struct networks *networks, const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;

        memcpy(&in, address, sizeof(in));
        return networks_have(networks, AF_INET, (const unsigned char *)&in.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;

        memcpy(&in6, address, sizeof(in6));
        if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr))
            return networks_have(networks, AF_INET, &in6.sin6_addr.s6_addr[12]);
        return networks_have(networks, AF_INET6, in6.sin6_addr.s6_addr);
    }
    return false;
}
