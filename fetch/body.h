/*
 * The bodies of a transfer: that of the answer on its way from libcurl, and that of the request on
 * its way there. One thread; allocates nothing.
 */
#ifndef SUNPROXY_FETCH_BODY_H
#define SUNPROXY_FETCH_BODY_H

#include "fetch/fetch.h"
#include "http/chunked.h"

/* ---- the answer's ---------------------------------------------------------------------------- */

/*
 * From the bytes on the wire to those that go on: the chunked framing of HTTP/1.1 is checked and
 * taken off. libcurl follows the framing as well, to find the end of the message, but is more
 * lenient than RFC 9112 section 7.1.
 */
enum body_step {
    BODY_WANTS,     /* all input is used up */
    BODY_PAUSED,    /* the allowance is used up, or the taker has paused: the rest of the input is
                       to be given again later */
    BODY_TAKER,     /* the taker has refused */
    BODY_TOO_LARGE, /* its trailers are over their bound */
    BODY_BROKEN     /* it is malformed; the reason is in body->reason */
};

/* Takes a piece of the body, which is not empty. */
typedef enum fetch_flow body_taker(void *context, const void *bytes, size_t len);

struct body {
    bool chunked;
    struct chunked chunks;
    const char *reason; /* static */
};

/* A body that comes chunked or not, with at most these bytes and lines of trailers. */
void body_init(struct body *body, bool chunked, uint32_t max_trailer_bytes,
               uint32_t max_trailer_lines);

/*
 * Reads on in *input, which is moved behind what was used, and hands what it holds to `take`.
 * *allowance is lowered by the bytes handed on; at zero reading stops.
 */
enum body_step body_read(struct body *body, struct span *input, size_t *allowance, body_taker *take,
                         void *context);

/*
 * Has all of the body been read, which has `length` bytes (-1: not stated), of which `received`
 * have come? False if only the end of the connection would show it.
 */
bool body_is_complete(const struct body *body, int64_t length, uint64_t received);

/* The input has ended. NULL if the body may end here, or else what it lacks, static. */
const char *body_end(const struct body *body);

/* ---- the request's --------------------------------------------------------------------------- */

/* Supplies it piece by piece and may have no piece for a while: as in struct fetch_sink. */
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
