/*
 * The load: connections that each keep a number of calls outstanding, until a fixed number of calls
 * has been answered. One thread, one epoll; replies are checked (reply.h) but not copied out of the
 * kernel where that can be avoided, so that the load does not drown the server that it measures.
 */
#ifndef SUNPROXY_TESTS_BENCH_LOAD_H
#define SUNPROXY_TESTS_BENCH_LOAD_H

#include <stdint.h>
#include <sys/socket.h>

#include "tests/bench/call.h"
#include "tests/bench/reply.h"

struct load_config {
    struct sockaddr_storage address;
    socklen_t address_len;
    struct reply_expected expected;
    unsigned connections;
    unsigned depth; /* calls outstanding on each connection */
    uint32_t first_key;
    uint32_t keys;
    bool in_order;      /* the keys one after the other, from the first phase's first call on */
    bool shuffled;      /* likewise, but each is far from the one before */
    int64_t timeout_us; /* of a whole phase, and of connecting */
};

/* What came of a phase. */
struct load_result {
    uint64_t answered;   /* replies, flawed ones included */
    uint64_t errors;     /* flawed replies, and calls never answered */
    uint64_t wire_bytes; /* of good replies, from here on */
    uint64_t headers_bytes;
    int64_t elapsed_us;
    /* From the sending of a call to its reply, half and 99 % of them at most; with a depth of 1. */
    uint32_t median_us;
    uint32_t slow_us;
    char first_error[128]; /* "" if there was none */
};

struct load;

/* The template stays the caller's and must outlive the load. NULL without memory or descriptors. */
struct load *load_create(const struct load_config *config, struct call_template *call);

/*
 * Opens the connections, a few at a time, each few proven by one call and its reply (not with
 * keys in order: no call is to be spent). False if one could not be opened or did not answer as it
 * should; what went wrong is in *result.
 */
bool load_connect(struct load *load, struct load_result *result);

/* Sends `requests` calls over all connections and waits for the replies. Without memory for their
 * times these are 0. */
void load_run(struct load *load, uint64_t requests, struct load_result *result);

/* NULL is harmless. */
void load_destroy(struct load *load);

#endif
