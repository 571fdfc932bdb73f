/*
 * Passing what is purged to the process that has taken a store over, over a connection between
 * both, which is the noter's at one end and a thread's of its own at the other. Private.
 */
#ifndef SUNPROXY_STORE_STORE_PASS_H
#define SUNPROXY_STORE_STORE_PASS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/source.h"

#define PASS_MAGIC 0x31535350u

#define PASS_LOST ((uint64_t)1 << 63)

/* A purge, with its texts behind it. The answer is a number: it and all before it are noted. With
 * PASS_LOST they hold there, and may not last. */
struct pass_head {
    uint32_t magic;
    uint8_t by;
    uint8_t soft;
    uint16_t zero;
    uint32_t name_len;
    uint32_t scope_len;
    uint64_t number;
};

/* Is a call that ended so to be made again? */
static inline bool
pass_is_retried(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* The end of the process that is replaced. */
struct pass {
    int fd;         /* owned; -1: none */
    uint64_t sent;  /* how many purges */
    uint64_t taken; /* how many of them the other process has answered */
    bool lost;      /* the last answer was that they may not last */
    char answer[sizeof(uint64_t)];
    size_t answered; /* bytes of the next answer that have come */
};

/* Sends it, and waits for space for it. False: the other process is gone. */
bool pass_send(struct pass *pass, const struct source_purge *purge);

/* Waits until all are answered there. Likewise. */
bool pass_await(struct pass *pass);

/* The thread of the other process, with its store (store_taker.c). */
void *pass_take_run(void *store);

#endif
