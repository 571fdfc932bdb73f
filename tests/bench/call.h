/*
 * The calls of the load generator: each encoded once, as a template in which a call's number (the
 * RPC xid) and its key are then overwritten in place, so that making the next call costs a few
 * stores and its bytes never leave the cache of the CPU.
 */
#ifndef SUNPROXY_TESTS_BENCH_CALL_H
#define SUNPROXY_TESTS_BENCH_CALL_H

#include <stdint.h>

#include "base/buf.h"

#define CALL_KEY_DIGITS 8u
#define CALL_MAX_KEYS 100000000u /* what eight digits can name */

enum call_protocol {
    CALL_RPC2,      /* PROXY_GET of version 2 */
    CALL_RPC1,      /* PROXY_FETCH of version 1 */
    CALL_BARE,      /* the bytes of CALL_RPC2, for a server that does not read them */
    CALL_MEMCACHED, /* get, in the text protocol */
    CALL_MEMCACHED_SET,
    CALL_HTTP /* GET over HTTP/1.1; the key is the request's target */
};

struct call_template {
    struct buf bytes;
    size_t xid_at; /* SIZE_MAX: the protocol has none */
    size_t key_at;
    size_t key_len; /* the whole URL or key, digits included */
};

/*
 * Makes the template for keys `prefix`, eight digits, `suffix`. `value_len` is the length of a
 * value to be set, for CALL_MEMCACHED_SET. False without memory, or if the key would be longer
 * than the protocol allows (8192 bytes for a URL or target, 250 for memcached).
 */
bool call_begin(struct call_template *call, enum call_protocol protocol, struct span prefix,
                struct span suffix, size_t value_len);

/* Adds a field line, without its end, to a template of CALL_HTTP. False without memory. */
bool call_add_field(struct call_template *call, struct span line);

/* Turns the template into call number `xid` for key number `key` (below CALL_MAX_KEYS). */
void call_set(struct call_template *call, uint32_t xid, uint32_t key);

void call_free(struct call_template *call);

#endif
