/*
 * Up to which number the news of each peer have been taken (peer_news.h). A peer that starts again
 * counts anew; for a while the numbers of both are known, since a process that is replaced serves
 * on until its connections have ended. What the processes before have told last is missed, unless
 * each that is known has taken its leave. No order of the times at which they have started is
 * relied on, since a clock may be set back. One that is not heard of is forgotten when another one
 * begins: nothing that was stored before is used then without a validation.
 *
 * Safe on any thread.
 */
#ifndef SUNPROXY_SERVER_PEERS_PEER_LOG_H
#define SUNPROXY_SERVER_PEERS_PEER_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define PEER_LOG_ENTRIES 64u
#define PEER_LOG_SILENCE_US ((int64_t)10000000) /* a process that runs is heard of each second */

struct peer_log {
    pthread_mutex_t lock;
    /* protected by lock */
    uint64_t clock; /* counts uses */
    struct {
        uint64_t sender; /* hash of its URL; 0: the entry is free */
        uint64_t incarnation;
        uint64_t taken;
        bool left;     /* it has taken its leave: there is no more */
        uint64_t used; /* when, by the clock: the one used least recently gives way */
        int64_t heard_us; /* the monotonic clock then */
    } entries[PEER_LOG_ENTRIES];
};

void peer_log_init(struct peer_log *log);
void peer_log_free(struct peer_log *log);

/* Is something missing before the news behind this number: does it count anew, or further? */
bool peer_log_misses(struct peer_log *log, struct span sender, uint64_t incarnation,
                     uint64_t before);

/* The process has taken its leave. */
void peer_log_leave(struct peer_log *log, struct span sender, uint64_t incarnation);

/* Its news are taken up to this number, now. */
void peer_log_take(struct peer_log *log, struct span sender, uint64_t incarnation, uint64_t last,
                   int64_t now_us);

#endif
