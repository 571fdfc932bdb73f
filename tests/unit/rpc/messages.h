/*
 * RPC messages as a peer writes and reads them by hand (RFC 5531), over a socket of
 * tests/unit/net/stream.h.
 */
#ifndef SUNPROXY_TESTS_UNIT_RPC_MESSAGES_H
#define SUNPROXY_TESTS_UNIT_RPC_MESSAGES_H

#include <rpc/rpc.h>

#include "base/buf.h"
#include "tests/unit/net/stream.h"

static inline void
put_word(struct buf *b, uint32_t value)
{
    value = htonl(value);
    ck_assert(buf_append(b, &value, sizeof(value)));
}

/* A call message with AUTH_NONE, without a record mark; arguments are to be appended. */
static inline void
put_call_to(struct buf *b, uint32_t xid, uint32_t program, uint32_t version, uint32_t procedure)
{
    const uint32_t words[] = {xid, CALL, 2, program, version, procedure, 0, 0, 0, 0};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        put_word(b, words[i]);
}

/* Sends it as a record of one fragment, and empties it. */
static inline bool
peer_send(int fd, struct buf *message)
{
    struct buf record;
    bool sent;

    buf_init(&record, 1u << 30);
    put_word(&record, 0x80000000u | (uint32_t)message->len);
    ck_assert(buf_append(&record, message->data, message->len));
    sent = peer_write(fd, record.data, record.len);
    buf_free(&record);
    buf_free(message);
    return sent;
}

/* Reads a record, which must be one fragment; false when there is none. To be freed by buf_free().
 */
static inline bool
peer_receive(int fd, struct buf *record)
{
    uint32_t mark;

    buf_init(record, 1u << 30);
    if (!peer_read(fd, &mark, sizeof(mark)))
        return false;
    mark = ntohl(mark);
    ck_assert_uint_ne(mark & 0x80000000u, 0);
    mark &= 0x7fffffffu;
    record->data = malloc(mark + 1);
    ck_assert_ptr_nonnull(record->data);
    record->capacity = mark + 1;
    record->len = mark;
    record->data[mark] = 0;
    return peer_read(fd, record->data, mark);
}

static inline uint32_t
get_word(const struct buf *b, size_t index)
{
    uint32_t value;

    REQUIRE(b->len >= (index + 1) * sizeof(value));
    memcpy(&value, b->data + index * sizeof(value), sizeof(value));
    return ntohl(value);
}

/* Drops the first `len` bytes. */
static inline void
drop_front(struct buf *b, size_t len)
{
    REQUIRE(b->len >= len);
    memmove(b->data, b->data + len, b->len - len);
    b->len -= len;
}

#endif
