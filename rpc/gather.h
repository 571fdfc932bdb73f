/*
 * Replies, encoded into pieces: an XDR stream of our own, since libtirpc's know one buffer only.
 * Small pieces are copied into the reply's buffer (and into chunks when that is full), long byte
 * runs are taken by reference: -7 % CPU per hit of 1 KiB with four calls outstanding on each of 32
 * connections.
 */
#ifndef SUNPROXY_RPC_GATHER_H
#define SUNPROXY_RPC_GATHER_H

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/memory_account.h"
#include "net/output.h"

enum {
    RPC_BY_REFERENCE = 512,  /* a byte run this long is sent from where it stands */
    RPC_REPLY_BUFFER = 1024, /* bytes of a reply that cost no allocation */
    RPC_REPLY_PIECES = 6     /* likewise, pieces */
};

struct rpc_chunk;

/* An encoded reply, record mark included. */
struct rpc_reply {
    struct net_output output; /* its pieces are inline_pieces, or allocated; its release is not set
                                 here */
    unsigned capacity;        /* pieces that the array can hold */
    size_t charged;           /* for pieces and chunks that were allocated (MEMORY_REPLIES) */
    struct memory_account *memory; /* to this account; or NULL */
    struct rpc_chunk *chunks;
    struct iovec inline_pieces[RPC_REPLY_PIECES];
    char buffer[RPC_REPLY_BUFFER] __attribute__((aligned(8)));
};

/* An XDR stream that encodes into a reply. */
struct rpc_gather {
    XDR xdr; /* first, so that the stream's operations find the rest */
    struct rpc_reply *reply;
    char *segment; /* where the open piece begins; it ends at the stream's position */
    size_t closed; /* bytes of the pieces before it */
    bool by_reference;
};

/* Empty; `memory` may be NULL. */
void rpc_reply_init(struct rpc_reply *reply, struct memory_account *memory);

/* Frees the content: empty again. */
void rpc_reply_free(struct rpc_reply *reply);

/* Begins an empty reply and reserves the bytes of the record mark. */
void rpc_gather_begin(struct rpc_gather *gather, struct rpc_reply *reply, bool by_reference);

/* Ends it and writes the record mark; false if memory has failed or it is too long for a record. */
bool rpc_gather_end(struct rpc_gather *gather);

#endif
