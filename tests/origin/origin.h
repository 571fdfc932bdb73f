/*
 * A scripted origin for tests and demos: an HTTP/1.1 server on loopback that answers any host and
 * any path over http and https, with bodies that follow from the URL, and that misbehaves on
 * request (faults.c). One thread, one event loop; nothing here is locked.
 */
#ifndef SUNPROXY_TESTS_ORIGIN_H
#define SUNPROXY_TESTS_ORIGIN_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"

#define ORIGIN_MAX_HEAD 65536u         /* bytes of a request's head */
#define ORIGIN_MAX_HEADERS (16u << 20) /* bytes of an answer's own header lines */
#define ORIGIN_DEFAULT_SIZE_MIN 1024u
#define ORIGIN_DEFAULT_SIZE_MAX 16384u

/* ---- sizes.c: a table of URLs and the bytes of their bodies ---------------------------------- */

struct sizes;

/* Reads a file of URL<TAB>bytes lines. NULL, with a sentence in `why`, on failure. */
struct sizes *sizes_load(const char *path, char *why, size_t why_size);
void sizes_free(struct sizes *sizes);

/* The bytes for a URL, looked up as it is, then without its port. */
bool sizes_find(const struct sizes *sizes, const char *url, const char *url_without_port,
                uint64_t *bytes);

/* FNV-1a, 64 bits. */
uint64_t origin_hash(const char *text);

/* ---- tls.c: an authority made at start, leaf certificates on demand -------------------------- */

struct authority;

/* Makes the authority and writes `folder`/ca.pem. NULL, with a sentence in `why`, on failure. */
struct authority *authority_create(const char *folder, char *why, size_t why_size);
void authority_free(struct authority *authority);

/* A server's side of a new connection, or NULL. */
SSL *authority_accept(struct authority *authority);

/* ---- main.c: the program --------------------------------------------------------------------- */

struct conn;

struct origin {
    struct event_base *base;
    struct authority *authority;
    struct sizes *sizes; /* or NULL */
    FILE *log;           /* or NULL */
    uint64_t size_min;
    uint64_t size_max;
    uint64_t seed;
    int64_t latency_us;   /* fixed, or the median of a log-normal distribution */
    double latency_sigma; /* 0: fixed */
    struct buf headers;   /* lines that every answer carries */
    uint64_t bandwidth;   /* bytes a second for each connection; 0: no bound */
    struct conn *conns;   /* all that are open */
    uint64_t open;
};

/* ---- plan.c: what a request is answered ------------------------------------------------------ */

enum framing { FRAMED_BY_LENGTH, FRAMED_BY_CHUNKS, FRAMED_BY_CLOSE };
enum coding { CODED_NOT, CODED_GZIP, CODED_GZIP_BOMB, CODED_GZIP_GARBAGE };
enum ending { END_KEEP, END_CLOSE, END_RESET, END_HANG };

struct request {
    const char *method;
    const char *scheme;
    char *host;   /* as in the Host field, lower case */
    char *target; /* path and query, starts with '/' */
    struct span head;
    bool keep_alive;
    uint64_t body; /* bytes of its own that follow */
};

struct plan {
    unsigned status;
    int64_t delay_us; /* before the first byte */
    uint64_t size;    /* of the body, before any coding */
    uint64_t seed;    /* of the body's text */
    enum framing framing;
    enum coding coding;
    enum ending ending;
    bool cut;           /* the ending comes early: */
    bool cut_in_head;   /* in the middle of the head, */
    uint64_t cut_after; /* or after this number of bytes of the body */
    int64_t drip_us;    /* from byte to byte; 0: as fast as can be */
    bool drip_head;     /* the head too */
    int64_t more;       /* bytes stated beyond those sent, or, negative, sent beyond those stated */
    char *length_text;  /* what Content-Length says instead; owned */
    bool zero;          /* a zero byte in the middle of the body */
    bool bad_chunk;
    bool garbage;     /* no HTTP at all */
    bool echo;        /* the body is the request's head */
    unsigned asked;   /* how often for this URL, this time included; 0: not counted yet */
    bool drop_idle;   /* close all other connections that wait for a request */
    unsigned interim; /* informational answers before the real one */
    struct buf headers;
};

void plan_make(struct plan *plan, const struct origin *origin, const struct request *request);
void plan_free(struct plan *plan);

/* Writes the head of the answer. */
void plan_write_head(const struct plan *plan, const struct request *request,
                     const struct origin *origin, struct evbuffer *out);

/* "20ms" or "lognormal:20ms:0.5". */
bool latency_parse(const char *text, int64_t *median_us, double *sigma);

/* ---- faults.c: misbehaviour on request ------------------------------------------------------- */

/* Applies one fault, "name" or "name:value". False if there is none of that name or value. */
bool fault_apply(struct plan *plan, const struct request *request, const char *fault);
void fault_print_help(FILE *out);

/* ---- body.c: the bytes ----------------------------------------------------------------------- */

struct body {
    const struct plan *plan;
    uint64_t at; /* bytes of text made */
    uint64_t size;
    uint32_t crc;
    uint64_t bits; /* of a bomb's deflate stream, not yet written */
    unsigned bit_count;
    bool begun;
    bool done;
};

void body_init(struct body *body, const struct plan *plan);

/* Adds a piece of the body, coded and framed, of about 64 KiB, to out; sets body->done at the end.
 */
void body_next(struct body *body, struct evbuffer *out);

/* `len` bytes of the text of a URL from offset `at`. */
void body_text(uint64_t seed, uint64_t at, char *out, size_t len);

/* ---- conn.c: connections --------------------------------------------------------------------- */

/* Takes over a connected socket. */
void conn_accept(struct origin *origin, evutil_socket_t fd, bool tls);
void conn_close_all(struct origin *origin);

#endif
