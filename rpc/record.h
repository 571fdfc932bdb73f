/*
 * Record marking: where a record ends in a stream (RFC 5531, section 11).
 */
#ifndef SUNPROXY_RPC_RECORD_H
#define SUNPROXY_RPC_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory_account.h"
#include "base/span.h"
#include "rpc/limits.h"

/* A record that arrives in pieces. All zero is the empty state. */
struct rpc_record {
    char *data; /* what has come so far, without the fragment headers; NULL when nothing has */
    uint32_t len;
    uint32_t capacity;
    uint32_t remaining; /* bytes of the current fragment still to come */
    uint32_t empty_fragments;
    unsigned char header[4];
    unsigned char header_len;      /* bytes of a header that came in part */
    bool begun;                    /* a byte of this record has come */
    bool last;                     /* the current fragment is the record's last */
    struct memory_account *memory; /* charged for `capacity` bytes (MEMORY_RECORDS) */
};

enum rpc_record_status {
    RPC_RECORD_MORE,     /* all input is consumed, the record is not whole */
    RPC_RECORD_COMPLETE, /* *record is whole; input is what follows it */
    RPC_RECORD_BAD,      /* over a bound: the stream cannot be trusted any further */
    RPC_RECORD_NO_SPACE, /* the account is used up: as RPC_RECORD_MORE, but input is left */
    RPC_RECORD_NO_MEMORY
};

/*
 * Consumes bytes of the stream from *input until a record is whole. A record that stands in the
 * input in one piece is returned in place, otherwise it is collected; memory grows with the bytes
 * that have come, never with those announced. *record is valid as long as the input and until
 * rpc_record_reset(), which must be called before the next record is fed.
 */
enum rpc_record_status rpc_record_feed(struct rpc_record *r, const struct rpc_limits *limits,
                                       struct span *input, struct span *record);

/* Back to the empty state; frees. */
void rpc_record_reset(struct rpc_record *r);

#endif
