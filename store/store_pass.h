/*
 * Passing what is purged to the process that has taken a store over, over a connection between both,
 * which is the noter's at one end and a thread's of its own at the other. Private.
 */
#ifndef SUNPROXY_STORE_STORE_PASS_H
#define SUNPROXY_STORE_STORE_PASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/source.h"

/* The end of the process that is replaced. */
struct pass {
    int fd;         /* owned; -1: none */
    uint64_t sent;  /* how many purges */
    uint64_t taken; /* how many of them the other process has noted */
    char answer[sizeof(uint64_t)];
    size_t answered; /* bytes of the next answer that have come */
};

/* Sends it, and waits for space for it. False: the other process is gone. */
bool pass_send(struct pass *pass, const struct source_purge *purge);

/* Waits until all are noted there. Likewise. */
bool pass_await(struct pass *pass);

/* The thread of the other process, with its store. */
void *pass_take_run(void *store);

#endif
