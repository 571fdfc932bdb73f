/*
 * The body of a request on its way to libcurl: from memory, or from a source that supplies it piece
 * by piece and may have no piece for a while.
 *
 * One thread; allocates nothing.
 */
#ifndef SUNPROXY_FETCH_UPLOAD_H
#define SUNPROXY_FETCH_UPLOAD_H

#include "fetch/fetch.h"

/* As in struct fetch_sink. */
typedef enum fetch_supply upload_source(void *context, void *buffer, size_t size, size_t *len);

enum upload_step {
    UPLOAD_PIECE, /* some bytes were read */
    UPLOAD_WAITS, /* the source has none now */
    UPLOAD_ENDED, /* there are no more */
    UPLOAD_FAILED /* the source failed or ended early; the reason is in upload->reason */
};

struct upload {
    enum fetch_body_kind kind;
    struct span bytes;     /* of FETCH_BODY_BYTES; outlives this */
    int64_t length;        /* -1: unknown */
    upload_source *source; /* of FETCH_BODY_SUPPLIED */
    void *context;
    uint64_t taken; /* bytes read */
    bool ended;     /* all have been read, or there is no body, or an empty one */
    const char *reason;
};

void upload_init(struct upload *upload, const struct fetch_body *body, upload_source *source,
                 void *context);

/* Reads at most `size` bytes, at least one. */
enum upload_step upload_read(struct upload *upload, void *buffer, size_t size, size_t *len);

/* Begins again from the first byte. False for a body that cannot be repeated. */
bool upload_rewind(struct upload *upload);

#endif
