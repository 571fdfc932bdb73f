#include "base/client_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

_Static_assert(sizeof(struct client_key) == 20, "keys are compared as bytes");

/* Clears all bits of an address but the first `bits`. */
static void
keep_prefix(uint8_t *bytes, unsigned len, unsigned bits)
{
    for (unsigned i = 0; i < len; i++) {
        unsigned kept = bits > 8 * i ? bits - 8 * i : 0;

        if (kept < 8)
            bytes[i] = (uint8_t)(bytes[i] & (0xff00U >> kept));
    }
}

struct client_key
client_key_of_prefix(const struct sockaddr *address, unsigned inet_bits, unsigned inet6_bits)
{
    struct client_key key = {.kind = CLIENT_UNKNOWN};

    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *inet = (const void *)address;

        key.kind = CLIENT_INET;
        memcpy(key.bytes, &inet->sin_addr, 4);
        keep_prefix(key.bytes, 4, inet_bits);
    } else if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *inet6 = (const void *)address;

        if (IN6_IS_ADDR_V4MAPPED(&inet6->sin6_addr)) {
            key.kind = CLIENT_INET;
            memcpy(key.bytes, inet6->sin6_addr.s6_addr + 12, 4);
            keep_prefix(key.bytes, 4, inet_bits);
        } else {
            key.kind = CLIENT_INET6;
            memcpy(key.bytes, &inet6->sin6_addr, 16);
            keep_prefix(key.bytes, 16, inet6_bits);
        }
    }
    return key;
}

struct client_key
client_key_of_uid(uid_t uid)
{
    struct client_key key = {.kind = CLIENT_UID};
    uint32_t number = htonl((uint32_t)uid);

    memcpy(key.bytes, &number, sizeof(number));
    return key;
}

int
client_key_compare(const struct client_key *a, const struct client_key *b)
{
    return memcmp(a, b, sizeof(*a));
}
