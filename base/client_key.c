#include "base/client_key.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

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
client_key_of_address(const struct sockaddr *address)
{
    return client_key_of_prefix(address, CLIENT_KEY_INET_BITS, CLIENT_KEY_INET6_BITS);
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

uint64_t
client_key_hash(const struct client_key *key)
{
    return hash64_bytes(span_of(key, sizeof(*key)));
}

const char *
client_key_format(const struct client_key *key, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";
    uint32_t uid;

    switch (key->kind) {
    case CLIENT_INET:
        inet_ntop(AF_INET, key->bytes, address, sizeof(address));
        snprintf(text, size, "%s", address);
        break;
    case CLIENT_INET6:
        inet_ntop(AF_INET6, key->bytes, address, sizeof(address));
        snprintf(text, size, "%s/%u", address, CLIENT_KEY_INET6_BITS);
        break;
    case CLIENT_UID:
        memcpy(&uid, key->bytes, sizeof(uid));
        snprintf(text, size, "uid %lu", (unsigned long)ntohl(uid));
        break;
    default:
        snprintf(text, size, "unknown");
        break;
    }
    return text;
}
