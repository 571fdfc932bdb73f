/*
 * The part of a content (content.h) that is decoded: a coded body on its way through a decoder into
 * blocks of memory. Private to content.
 *
 * Behind the bytes that are wanted one more is decoded: it shows whether they are the last ones.
 */
#ifndef SUNPROXY_SERVER_RPC_DECODING_H
#define SUNPROXY_SERVER_RPC_DECODING_H

#include "http/coding.h"
#include "server/rpc/content.h"

/* Decoded bytes, or field lines, in the order of a list, which belongs to the content or to a piece. */
struct content_block {
    struct content_block *next;
    struct client_share *share; /* that counts it, for */
    struct client *client;      /* this client */
    size_t size, len;
    char bytes[];
};

struct decoding {
    struct content_limits limits;
    enum coding coding;
    struct decoder *decoder; /* NULL: it is not needed any more */
    bool unfinished;         /* the decoder may make more of the input that it has */
    unsigned char ahead;     /* the byte behind those of the blocks, if there is one */
    size_t window;           /* bytes charged for what the decoder keeps */
    uint64_t at;             /* offset of the first byte that was neither taken nor passed over */
    size_t made;             /* bytes in the blocks, from there on */
    uint64_t length;         /* bytes decoded so far: at + made, or with the one ahead */
    struct content_block *blocks, *last;
    size_t size; /* bytes charged for this struct */
    size_t fields_len;
    char sentence[128]; /* of a failure */
    char fields[];      /* content_fields() */
};

/* Begins to decode the content of this coding: CONTENT_CODED, or CONTENT_BROKEN without memory. */
void decoding_begin(struct content *content, enum coding coding,
                    const struct content_limits *limits);

/* Gives the content fields of its own: those of the object that clients get. CONTENT_BROKEN without
 * memory. */
void decoding_copy_fields(struct content *content, const struct content_limits *limits);

/* content_seek() and content_take(). */
enum content_step decoding_seek(struct content *content, uint64_t offset, size_t want);
void decoding_take(struct content *content, struct content_piece *piece);

/* CONTENT_BROKEN: the decoder is freed. The sentence is static, or the decoding's. */
void decoding_break(struct content *content, enum failure why, const char *sentence);

#endif
