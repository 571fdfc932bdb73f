/*
 * The body of an object as clients of RPC get it: without content coding (RFC 9110, section 8.4).
 * Clients of HTTP get the same object as its origin has sent it.
 *
 * A body that is not coded is read in the object, at any offset where its bytes are kept: nothing
 * is allocated for it. A coded one is read in order. It is decoded as far as is asked for, into memory
 * that is counted for the client and charged to the account (MEMORY_REPLIES), as its decoder is.
 *
 * Belongs to one thread. The caller refers to the object until content_end(), or until it makes no
 * other call for the content.
 */
#ifndef SUNPROXY_SERVER_RPC_CONTENT_H
#define SUNPROXY_SERVER_RPC_CONTENT_H

#include "base/client_share.h"
#include "cache/object.h"
#include "proxy/proxy.h"

/*
 * Bytes that a long body may have for each coded one. That is more than gzip and deflate can make
 * of a byte (1,032); br and zstd make any number.
 */
#define CONTENT_MAX_RATIO 1100u

/*
 * The work of one call, or of all calls of a thread in one turn, at most: a decoded byte
 * counts 2, a coded one 1. It is enough for 1 MiB that its coding has not made longer by more than a
 * quarter.
 */
#define CONTENT_TURN ((size_t)13 << 18)

/* Bounds of a body that is decoded. */
struct content_limits {
    struct client_share *share; /* counts the memory, and has the account */
    struct client *client;      /* has the memory */
    const uint64_t *turn;       /* the number of the worker's turn; NULL: each call is one */
    uint64_t max_body;          /* decoded bytes that are allowed in any case */
    unsigned ratio;             /* decoded bytes that are allowed for each coded one */
};

/*
 * CODED -all decoded-> ENDED
 * CODED, or at its beginning -failure-> BROKEN
 */
enum content_stage {
    CONTENT_PLAIN,  /* not coded */
    CONTENT_CODED,  /* being decoded */
    CONTENT_ENDED,  /* decoded to its end */
    CONTENT_BROKEN, /* it cannot be decoded, or may not be */
};

struct decoding;
struct content_block;

/* All zero: content_end() is harmless. */
struct content {
    const struct object *object;
    struct object_place place; /* plain: behind the last byte that was taken; coded: behind the last
                                  one that the decoder has used */
    enum content_stage stage;
    enum failure why;          /* of CONTENT_BROKEN */
    const char *sentence;      /* of CONTENT_BROKEN, for the operator; as long as the content */
    size_t there;              /* what the last content_seek() has found */
    struct decoding *decoding; /* owned; NULL: not coded */
    struct content_block *fields; /* owned: content_fields(); NULL: those of object or decoding */
};

/* Frees what the content has: content_end(). */
void decoding_end(struct content *content);

/* The body of an object that has its head. It may be CONTENT_BROKEN at once: of an unknown coding,
 * or without memory. */
void content_begin(struct content *content, const struct object *object,
                   const struct content_limits *limits);

/* Frees what the content has, but not pieces that were taken. */
static inline void
content_end(struct content *content)
{
    if (content->decoding || content->fields)
        decoding_end(content);
}

enum content_step {
    CONTENT_THERE,  /* the wanted bytes are there, and more follow */
    CONTENT_LAST,   /* the body ends behind the bytes that are there */
    CONTENT_WAITS,  /* more may be there when the object has grown; it is not complete */
    CONTENT_BUSY,   /* CONTENT_TURN is over: another call, in another turn of the loop, goes on */
    CONTENT_PASSED, /* bytes at the offset are not kept any more */
    CONTENT_FAILED, /* CONTENT_BROKEN */
};

/*
 * Finds up to `want` bytes at this offset in the body: content->there. Until they are taken,
 * further calls are for the same offset and no fewer bytes. For no bytes nothing is decoded, so
 * that the step is CONTENT_WAITS while the end of a coded body is not known.
 */
enum content_step content_seek(struct content *content, uint64_t offset, size_t want);

/* Frees a list, and clears it: content_piece_release(). */
void content_free_blocks(struct content_block **blocks);

/* A part of a body. */
struct content_piece {
    const struct object *object;  /* has the bytes, and is not owned; NULL: they were decoded */
    struct object_place place;    /* where it begins in the object */
    struct content_block *blocks; /* owned */
    size_t len;
};

/* Makes of what content_seek() has found a piece, to be released. The next one follows it. */
void content_take(struct content *content, struct content_piece *piece);

/*
 * The next run of bytes; the piece begins behind it then. For copies of a piece, which are not
 * released. Empty behind the last one.
 */
struct span content_piece_read(struct content_piece *piece);

/* Of a piece that is the whole body of a complete object: its bytes, if they are one run there,
 * with a zero byte behind it. A NULL pointer otherwise. */
struct span content_piece_inline(const struct content_piece *piece);

/* Is a zero byte in the piece? It is the whole body of a complete object. */
bool content_piece_has_zero_byte(const struct content_piece *piece);

/* Harmless on a zeroed one, and on one that has been released. */
static inline void
content_piece_release(struct content_piece *piece)
{
    if (piece->blocks)
        content_free_blocks(&piece->blocks);
}

/* Field lines for clients: those of the object without HTTP_ORIGIN_CONTROL, and of a coded body
 * without Content-Encoding and Content-Length. As long as content and object. */
struct span content_fields(const struct content *content);

/* Of the whole body; -1: not known yet. */
int64_t content_length(const struct content *content);

/* The object's bytes before this offset have been taken or decoded: exchange_taken(). */
static inline uint64_t
content_taken(const struct content *content)
{
    return content->place.offset;
}

#endif
