/*
 * The mix of the soak: one table of what is asked, how often, and what has to come back.
 */
#ifndef SUNPROXY_TESTS_SOAK_MIX_H
#define SUNPROXY_TESTS_SOAK_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "proxy.h"
#include "rpc/client.h"

#define MIX_URL 512u
#define MIX_SHARES 100000u /* the shares of all rows add up to this */

enum mix_kind {
    MIX_GET,      /* PROXY_GET of version 2 */
    MIX_FETCH,    /* PROXY_FETCH of version 1 */
    MIX_NO_STORE, /* PROXY_GET past the cache */
    MIX_HEADERS,  /* PROXY_GET with a request header, past the cache too */
    MIX_STAT,
    MIX_PURGE_URL, /* from here on for administrators: refused over TCP */
    MIX_PURGE_PREFIX,
    MIX_PURGE_ALL,
    MIX_SET_POLICY,
    MIX_SET_CAPACITY,
    MIX_NO_PROCEDURE, /* calls that RPC itself refuses */
    MIX_NO_VERSION,
    MIX_NO_ARGUMENTS,
    MIX_VANISH_IN_CALL,   /* on a connection of its own, closed in the middle of the call, */
    MIX_VANISH_AT_ONCE,   /* right behind it, */
    MIX_VANISH_IN_REPLY,  /* in the middle of the reply, */
    MIX_VANISH_PIPELINED, /* or behind many calls */
};

struct mix_row {
    const char *name;
    uint32_t share; /* of MIX_SHARES */
    enum mix_kind kind;
    /*
     * The URL is http://HOSTn.soak/pNUMBER and the tail, where n is below `hosts` and NUMBER below
     * `pages`; or with `path` instead of /pNUMBER and the tail; or `fixed`, as it stands. Port 82
     * is one on which no process listens.
     */
    const char *host;
    uint32_t hosts, pages;
    const char *tail;
    const char *fixed;
    const char *path;
    const char *final_path; /* whose text the body is, after redirects; NULL: the URL's own */
    uint32_t size;          /* of the body; 0: what the origin draws */
    unsigned http_status;   /* 0: 200 */
    enum proxy_status status;
    enum proxy_status or_status; /* also right; 0: no other is */
    enum rpc_client_status rpc;  /* of MIX_FETCH and of calls that RPC refuses */
    bool unstored;               /* the page must neither be stored nor be a hit */
    bool rare;                   /* asked again in the phase of rare rows */
};

extern const struct mix_row mix_rows[];
extern const unsigned mix_count;

/* One request: a row, and what was drawn for it. */
struct mix_ask {
    const struct mix_row *row;
    uint32_t draw;
    char url[MIX_URL];
    uint64_t hash; /* of the URL whose text the body is */
    size_t size;   /* of the body that is expected */
};

/* A small generator of its own for each thread; `state` is not zero. */
uint32_t mix_random(uint64_t *state);

/* The row that a number below MIX_SHARES falls into. */
const struct mix_row *mix_row_at(uint32_t number);

/* The rows of the phase of rare rows, one after the other and again. */
const struct mix_row *mix_rare_at(uint64_t number);
unsigned mix_rare_count(void);

/* Draws a request of this row. */
void mix_draw(struct mix_ask *ask, const struct mix_row *row, uint64_t *random);

/*
 * Checks an answer; NULL if it is as expected, else what is wrong with it, in static memory of the
 * calling thread. `admin`: the connection is one that may administrate.
 */
const char *mix_check_page(const struct mix_ask *ask, const struct proxy_fetch_result *result);
const char *mix_check_text(const struct mix_ask *ask, const char *text, size_t len);
const char *mix_check_status(const struct mix_ask *ask, bool admin, enum proxy_status status);

#endif
