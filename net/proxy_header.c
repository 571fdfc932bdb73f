#include "net/proxy_header.h"

#include <netinet/in.h>
#include <string.h>

enum {
    SIGNATURE = 12,
    FIXED = 16, /* signature, version and command, family and protocol, length */
    INET = 12,  /* two addresses and two ports */
    INET6 = 36,
    TLV = 3, /* type and length */
};

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";

_Static_assert(sizeof(signature) - 1 == SIGNATURE, "section 2.2");

static size_t
length_at(const char *at)
{
    return (size_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]);
}

/* Do the TLVs fill the bytes? */
static bool
are_tlvs(struct span bytes)
{
    while (bytes.len) {
        size_t len;

        if (bytes.len < TLV)
            return false;
        len = TLV + length_at(bytes.ptr + 1);
        if (len > bytes.len)
            return false;
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
    return true;
}

/* The source address, of TCP over IPv4 or IPv6. Returns the bytes of the block; 0: another kind. */
static size_t
read_address(unsigned char kind, const char *at, struct proxy_header *header)
{
    struct sockaddr_in *inet = (struct sockaddr_in *)&header->address;
    struct sockaddr_in6 *inet6 = (struct sockaddr_in6 *)&header->address;

    switch (kind) {
    case 0x11:
        inet->sin_family = AF_INET;
        memcpy(&inet->sin_addr, at, 4);
        memcpy(&inet->sin_port, at + 8, 2);
        header->address_len = sizeof(*inet);
        return INET;
    case 0x21:
        inet6->sin6_family = AF_INET6;
        memcpy(&inet6->sin6_addr, at, 16);
        memcpy(&inet6->sin6_port, at + 32, 2);
        header->address_len = sizeof(*inet6);
        return INET6;
    default:
        return 0;
    }
}

/* The address block of a connection for a client, and what follows it. */
static bool
read_block(unsigned char kind, struct span block, struct proxy_header *header)
{
    char address[INET6] = {0};
    size_t used;

    memcpy(address, block.ptr, block.len < INET6 ? block.len : INET6);
    used = read_address(kind, address, header);
    return used && used <= block.len && are_tlvs(span_of(block.ptr + used, block.len - used));
}

enum proxy_header_result
proxy_header_read(struct span bytes, struct proxy_header *header)
{
    size_t known = bytes.len < SIGNATURE ? bytes.len : SIGNATURE;
    unsigned char command, kind;
    struct span block;

    *header = (struct proxy_header){0};
    if (known && memcmp(bytes.ptr, signature, known) != 0)
        return PROXY_HEADER_BAD;
    command = bytes.len > 12 ? (unsigned char)bytes.ptr[12] : 0x20;
    if (command != 0x20 && command != 0x21)
        return PROXY_HEADER_BAD;
    if (bytes.len < FIXED)
        return PROXY_HEADER_PARTIAL;
    kind = (unsigned char)bytes.ptr[13];
    header->len = FIXED + length_at(bytes.ptr + 14);
    if (header->len > PROXY_HEADER_MAX)
        return PROXY_HEADER_BAD;
    if (bytes.len < header->len)
        return PROXY_HEADER_PARTIAL;
    block = span_of(bytes.ptr + FIXED, header->len - FIXED);
    header->local = command == 0x20;
    return header->local || read_block(kind, block, header) ? PROXY_HEADER_COMPLETE
                                                            : PROXY_HEADER_BAD;
}
