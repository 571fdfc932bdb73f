/*
 * The access log: a line a request. Those who serve only append to a buffer in memory; a thread of
 * its own writes the buffer out, so that a slow disk slows nobody. When the disk is full, or slower
 * than the requests for long, lines are lost and counted, and serving goes on.
 *
 * A plain line has eight fields separated by tabs: time, client, URL, outcome, HTTP status, bytes
 * of the body, microseconds, and the URLs of the pages that had to leave, separated by spaces; "-"
 * stands for nothing. Bytes outside of printable ASCII, and the backslash, are written as \xNN.
 */
#ifndef SUNPROXY_SERVER_ACCESS_LOG_H
#define SUNPROXY_SERVER_ACCESS_LOG_H

#include <stdint.h>

#include "base/span.h"
#include "cache/cache.h"
#include "rpc/server.h"
#include "server/log.h"

struct access_log;

struct access_entry {
    const struct rpc_peer *peer;
    struct span url;
    const char *outcome;
    unsigned status; /* 0: none */
    uint64_t bytes;
    int64_t us;
    const struct cache_victims *victims; /* NULL: none */
};

/*
 * Opens (appending, made with mode 0640) and starts the thread; "-" is standard output. NULL with
 * errno set on failure.
 */
struct access_log *access_log_open(const char *path, enum log_format format);

/* Writes out what is left and ends the thread. NULL is harmless. */
void access_log_close(struct access_log *log);

/* Appends a line. [any thread] */
void access_log_add(struct access_log *log, const struct access_entry *entry);

/* Opens the file anew, for whoever has moved the old one away. [any thread] */
void access_log_reopen(struct access_log *log);

/* Lines that were lost so far. [any thread] */
uint64_t access_log_lost(struct access_log *log);

#endif
