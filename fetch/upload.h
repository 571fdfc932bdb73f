/*
 * The body of a request on its way to libcurl, from a source that supplies it piece by piece and
 * may have no piece for a while.
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

enum upload_stage {
    UPLOAD_FLOWS,
    UPLOAD_HELD,     /* the source had none */
    UPLOAD_COMPLETE, /* all have been read, or there is no body, or an empty one */
};

struct upload {
    int64_t length; /* -1: unknown */
    upload_source *source;
    void *context;
    uint64_t taken; /* bytes read */
    enum upload_stage stage;
    const char *reason;
};

void upload_init(struct upload *upload, const struct request_body *body, upload_source *source,
                 void *context);

/* Reads at most `size` bytes, at least one. */
enum upload_step upload_read(struct upload *upload, void *buffer, size_t size, size_t *len);

#endif
