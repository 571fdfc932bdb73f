#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/units.h"

enum {
    SIGNATURE = 12,
    FIXED = 16, /* signature, version and command, family and protocol, length */
    INET = 12,  /* two addresses and two ports */
    INET6 = 36,
    TLV = 3, /* type and length */

    TLV_SSL = 0x20,     /* PP2_TYPE_SSL, section 2.2.6 */
    TLV_SSL_FIXED = 5,  /* flags and the result of the verification, before TLVs of its own */
    TLV_SSL_CLIENT = 1, /* PP2_CLIENT_SSL, the first of these flags */

    LINE = 107, /* the longest of version 1, with CR LF */
};

static const char line_start[] = "PROXY ";

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";

_Static_assert(sizeof(signature) - 1 == SIGNATURE, "section 2.2");

static size_t
length_at(const char *at)
{
    return (size_t)((unsigned char)at[0] << 8 | (unsigned char)at[1]);
}

/* Takes a TLV off the front. False if there is none that is whole. */
static bool
take_tlv(struct span *bytes, unsigned char *type, struct span *value)
{
    size_t len;

    if (bytes->len < TLV)
        return false;
    *type = (unsigned char)bytes->ptr[0];
    len = length_at(bytes->ptr + 1);
    if (len > bytes->len - TLV)
        return false;
    *value = span_of(bytes->ptr + TLV, len);
    *bytes = span_of(bytes->ptr + TLV + len, bytes->len - TLV - len);
    return true;
}

/* Do TLVs fill the bytes? */
static bool
are_tlvs(struct span bytes)
{
    unsigned char type;
    struct span value;

    while (bytes.len)
        if (!take_tlv(&bytes, &type, &value))
            return false;
    return true;
}

/* False if no TLVs fill the bytes, or the one on TLS is malformed. */
static bool
read_tlvs(struct span bytes, struct proxy_header *header)
{
    unsigned char type;
    struct span value;

    while (bytes.len) {
        if (!take_tlv(&bytes, &type, &value))
            return false;
        if (type != TLV_SSL)
            continue;
        if (value.len < TLV_SSL_FIXED ||
            !are_tlvs(span_of(value.ptr + TLV_SSL_FIXED, value.len - TLV_SSL_FIXED)))
            return false;
        header->tls = ((unsigned char)value.ptr[0] & TLV_SSL_CLIENT) != 0;
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
    return used && used <= block.len &&
           read_tlvs(span_of(block.ptr + used, block.len - used), header);
}

/* ---- version 1 ------------------------------------------------------------------------------- */

/* Takes a word off the front, and the one space behind it, if there is more. */
static bool
take_word(struct span *line, char *word, size_t size)
{
    const char *space = line->len ? memchr(line->ptr, ' ', line->len) : NULL;
    size_t len = space ? (size_t)(space - line->ptr) : line->len;

    if (len == 0 || len >= size || span_has_zero(span_of(line->ptr, len)))
        return false;
    memcpy(word, line->ptr, len);
    word[len] = '\0';
    *line = span_of(line->ptr + len + (space != NULL), line->len - len - (space != NULL));
    /* A space at the end is in front of nothing. */
    return !space || line->len;
}

static bool
take_address(struct span *line, int family, void *address)
{
    char word[INET6_ADDRSTRLEN];

    return take_word(line, word, sizeof(word)) && inet_pton(family, word, address) == 1;
}

static bool
take_port(struct span *line, in_port_t *port)
{
    char word[sizeof("65535")];
    uint64_t number;

    if (!take_word(line, word, sizeof(word)) || (word[0] == '0' && word[1]) ||
        !units_parse_uint(word, 0, UINT16_MAX, &number))
        return false;
    *port = htons((uint16_t)number);
    return true;
}

/* "TCP4" or "TCP6", two addresses and two ports; or "UNKNOWN", behind which anything may stand. */
static bool
read_line(struct span line, struct proxy_header *header)
{
    struct sockaddr_in *inet = (struct sockaddr_in *)&header->address;
    struct sockaddr_in6 *inet6 = (struct sockaddr_in6 *)&header->address;
    unsigned char destination[sizeof(struct in6_addr)];
    in_port_t port;
    char word[sizeof("UNKNOWN")];
    size_t kind = line.len < 7 ? line.len : 7;

    if (kind == 7 && memcmp(line.ptr, "UNKNOWN", 7) == 0) {
        header->local = true;
        return line.len == 7 || line.ptr[7] == ' ';
    }
    if (!take_word(&line, word, sizeof(word)))
        return false;
    if (strcmp(word, "TCP4") == 0) {
        inet->sin_family = AF_INET;
        header->address_len = sizeof(*inet);
        return take_address(&line, AF_INET, &inet->sin_addr) &&
               take_address(&line, AF_INET, destination) && take_port(&line, &inet->sin_port) &&
               take_port(&line, &port) && line.len == 0;
    }
    inet6->sin6_family = AF_INET6;
    header->address_len = sizeof(*inet6);
    return strcmp(word, "TCP6") == 0 && take_address(&line, AF_INET6, &inet6->sin6_addr) &&
           take_address(&line, AF_INET6, destination) && take_port(&line, &inet6->sin6_port) &&
           take_port(&line, &port) && line.len == 0;
}

/* The bytes begin as a line of version 1 does. */
static enum proxy_header_result
read_version_1(struct span bytes, struct proxy_header *header)
{
    const size_t start = sizeof(line_start) - 1;
    size_t len = bytes.len < LINE ? bytes.len : LINE;
    const char *end = memchr(bytes.ptr, '\n', len);

    if (!end)
        return len < LINE ? PROXY_HEADER_PARTIAL : PROXY_HEADER_BAD;
    header->len = (size_t)(end - bytes.ptr) + 1;
    if (header->len < start + 2 || end[-1] != '\r' ||
        !read_line(span_of(bytes.ptr + start, header->len - start - 2), header))
        return PROXY_HEADER_BAD;
    return PROXY_HEADER_COMPLETE;
}

/* ---- both ------------------------------------------------------------------------------------ */

enum proxy_header_result
proxy_header_read(struct span bytes, struct proxy_header *header)
{
    const size_t start = sizeof(line_start) - 1;
    size_t known = bytes.len < SIGNATURE ? bytes.len : SIGNATURE;
    unsigned char command, kind;
    struct span block;

    *header = (struct proxy_header){0};
    if (known && memcmp(bytes.ptr, line_start, known < start ? known : start) == 0)
        return read_version_1(bytes, header);
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
