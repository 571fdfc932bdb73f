/*
 * XDR's words on the wire: four bytes, the most significant first (RFC 4506 section 4).
 */
#ifndef SUNPROXY_RPC_WORDS_H
#define SUNPROXY_RPC_WORDS_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t
rpc_load_u32(const void *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return ntohl(value);
}

static inline void
rpc_store_u32(void *to, uint32_t value)
{
    value = htonl(value);
    memcpy(to, &value, sizeof(value));
}

#endif
