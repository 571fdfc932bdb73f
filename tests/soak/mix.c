#include "tests/soak/mix.h"

#include <stdio.h>
#include <string.h>

#include "tests/soak/text.h"

#define HOT .host = "hot", .hosts = 16, .pages = 500, .tail = ""
#define COLD .host = "cold", .hosts = 61, .pages = 30000, .tail = ""
#define LIE(text) .host = "lie", .hosts = 61, .pages = 1000000, .tail = "?fault=" text
#define BROKE .status = PROXY_ORIGIN_BROKE
#define RARE .rare = true
#define UNSTORED .unstored = true

const struct mix_row mix_rows[] = {
    /* Pages that fit into the cache, and those that evict each other. */
    {"hit", 76650, MIX_GET, HOT},
    {"hit, version 1", 6000, MIX_FETCH, HOT},
    {"hit, 64 KiB", 800, MIX_GET, .host = "long", .hosts = 4, .pages = 16,
     .tail = "?fault=size:65536", .size = 65536},
    {"miss", 7600, MIX_GET, COLD},
    {"miss, version 1", 600, MIX_FETCH, COLD},
    {"hit, chunked", 800, MIX_GET, .host = "chunked", .hosts = 4, .pages = 100,
     .tail = "?fault=chunked"},
    {"hit, gzip", 800, MIX_GET, .host = "gzip", .hosts = 4, .pages = 100, .tail = "?fault=gzip"},
    {"hit, to the end", 400, MIX_GET, .host = "end", .hosts = 4, .pages = 100,
     .tail = "?fault=no-length"},
    {"past the cache", 400, MIX_NO_STORE, HOT},
    {"with headers", 400, MIX_HEADERS, HOT},
    {"redirected", 300, MIX_GET, .host = "chain", .hosts = 61, .path = "/fault/chain:3",
     .final_path = "/fault/chain:0"},
    {"not found", 400, MIX_GET, .host = "gone", .hosts = 16, .pages = 1000,
     .tail = "?fault=status:404", .http_status = 404, UNSTORED},
    {"unavailable", 200, MIX_GET, .host = "busy", .hosts = 16, .pages = 1000,
     .tail = "?fault=status:503", .http_status = 503, UNSTORED},

    /* Requests that the daemon refuses. */
    {"bad scheme", 600, MIX_GET, .fixed = "ftp://hot0.soak/p1", .status = PROXY_BAD_URL},
    {"bad host", 600, MIX_GET, .fixed = "http://:80/p1", .status = PROXY_BAD_URL},
    {"bad URL, version 1", 200, MIX_FETCH, .fixed = "http://[::1/", .rpc = RPC_CLIENT_GARBAGE_ARGS},
    {"private address", 600, MIX_GET, .fixed = "http://10.0.0.1:8081/", .status = PROXY_DENIED},
    {"metadata address", 600, MIX_GET, .fixed = "http://169.254.169.254:8081/",
     .status = PROXY_DENIED},
    {"no procedure", 200, MIX_NO_PROCEDURE, .rpc = RPC_CLIENT_PROC_UNAVAIL},
    {"no version", 200, MIX_NO_VERSION, .rpc = RPC_CLIENT_PROG_MISMATCH},
    {"no arguments", 200, MIX_NO_ARGUMENTS, .rpc = RPC_CLIENT_GARBAGE_ARGS},

    /* Origins that lie, fail or stall. */
    {"refused", 100, MIX_GET, .fixed = "http://closed.soak:82/", .status = PROXY_CONNECT_FAILED},
    {"shorter than stated", 200, MIX_GET, LIE("short:100"), BROKE, RARE},
    {"two lengths", 50, MIX_GET, LIE("two-lengths"), BROKE, RARE},
    {"cut in the head", 50, MIX_GET, LIE("cut"), BROKE, RARE},
    {"cut in the body", 50, MIX_GET, LIE("cut:50"), BROKE, RARE},
    {"reset in the head", 50, MIX_GET, LIE("reset"), BROKE, RARE},
    {"reset in the body", 50, MIX_GET, LIE("reset:50"), BROKE, RARE},
    {"bad chunk", 50, MIX_GET, LIE("bad-chunk"), BROKE, RARE},
    {"cut chunk", 50, MIX_GET, LIE("cut-chunk"), BROKE, RARE},
    {"no HTTP", 50, MIX_GET, LIE("garbage"), BROKE, RARE},
    {"closed unanswered", 50, MIX_GET, LIE("close"), BROKE, RARE},
    {"no gzip", 50, MIX_GET, LIE("gzip-garbage"), BROKE, RARE},
    {"lie, version 1", 50, MIX_FETCH, LIE("short:100"), .rpc = RPC_CLIENT_SYSTEM_ERR, RARE},
    {"huge headers", 50, MIX_GET, LIE("huge-headers:200000"), .status = PROXY_TOO_LARGE, RARE},
    {"too large, version 1", 50, MIX_FETCH, LIE("size:30M"), .rpc = RPC_CLIENT_SYSTEM_ERR, RARE},
    {"redirected in a circle", 50, MIX_GET, .host = "loop", .hosts = 61, .path = "/fault/loop",
     .status = PROXY_BAD_REDIRECT, RARE},
    {"redirected inside", 50, MIX_GET, .host = "inside", .hosts = 61,
     .path = "/fault/redirect:http://10.0.0.1:8081/", .status = PROXY_DENIED,
     .or_status = PROXY_BAD_REDIRECT, RARE},
    /* Version 2 passes on what has come of a slow body. */
    {"dripping, version 1", 50, MIX_FETCH, LIE("size:100&fault=drip:1"), .size = 100},
    {"stalled in the body, version 1", 2, MIX_FETCH, LIE("hang-body:50"),
     .rpc = RPC_CLIENT_SYSTEM_ERR},
    {"stalled unanswered", 2, MIX_GET, LIE("hang-silent"), .status = PROXY_TIMED_OUT},
    {"stalled in the head", 2, MIX_GET, LIE("hang"), .status = PROXY_TIMED_OUT},

    /* Administrators. */
    {"statistics", 100, MIX_STAT, .host = NULL},
    {"purge a page", 50, MIX_PURGE_URL, HOT},
    {"purge a prefix", 10, MIX_PURGE_PREFIX, .host = "cold", .hosts = 61, .path = "/"},
    {"purge all", 2, MIX_PURGE_ALL, RARE},
    {"set the policy", 10, MIX_SET_POLICY, RARE},
    {"set the capacity", 10, MIX_SET_CAPACITY, RARE},

    /* Clients that vanish. */
    {"vanish in a call", 50, MIX_VANISH_IN_CALL, HOT, RARE},
    {"vanish behind a call", 50, MIX_VANISH_AT_ONCE, LIE("delay:20ms"), RARE},
    {"vanish in a reply", 50, MIX_VANISH_IN_REPLY, .host = "huge", .hosts = 1, .pages = 2,
     .tail = "?fault=size:1048576", RARE},
    {"vanish behind many calls", 12, MIX_VANISH_PIPELINED, .host = "long", .hosts = 4, .pages = 16,
     .tail = "?fault=size:65536", RARE},
};

const unsigned mix_count = sizeof(mix_rows) / sizeof(mix_rows[0]);

uint32_t
mix_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

const struct mix_row *
mix_row_at(uint32_t number)
{
    unsigned i = 0;

    while (i + 1 < mix_count && number >= mix_rows[i].share)
        number -= mix_rows[i++].share;
    return &mix_rows[i];
}

const struct mix_row *
mix_rare_at(uint64_t number)
{
    uint64_t rare = 0;

    for (unsigned i = 0; i < mix_count; i++)
        if (mix_rows[i].rare && number % mix_rare_count() == rare++)
            return &mix_rows[i];
    return &mix_rows[0];
}

unsigned
mix_rare_count(void)
{
    unsigned rare = 0;

    for (unsigned i = 0; i < mix_count; i++)
        rare += mix_rows[i].rare;
    return rare;
}

void
mix_draw(struct mix_ask *ask, const struct mix_row *row, uint64_t *random)
{
    char of_body[MIX_URL];

    ask->row = row;
    ask->draw = mix_random(random);
    ask->hash = 0;
    ask->size = 0;
    ask->url[0] = '\0';
    if (row->fixed) {
        snprintf(ask->url, sizeof(ask->url), "%s", row->fixed);
    } else if (row->path) {
        unsigned host = ask->draw % row->hosts;

        snprintf(ask->url, sizeof(ask->url), "http://%s%u.soak%s", row->host, host, row->path);
        snprintf(of_body, sizeof(of_body), "http://%s%u.soak%s", row->host, host,
                 row->final_path ? row->final_path : row->path);
        ask->hash = text_hash(of_body);
    } else if (row->host) {
        uint32_t page = ask->draw % row->pages;

        snprintf(ask->url, sizeof(ask->url), "http://%s%u.soak/p%u%s", row->host, page % row->hosts,
                 page, row->tail);
        ask->hash = text_hash(ask->url);
    }
    if (ask->hash)
        ask->size = row->size ? row->size : text_drawn_size(ask->hash);
}

static const char *
complaint(const char *what, unsigned got, unsigned expected)
{
    static _Thread_local char text[160];

    snprintf(text, sizeof(text), "%s %u instead of %u", what, got, expected);
    return text;
}

const char *
mix_check_text(const struct mix_ask *ask, const char *text, size_t len)
{
    if (len != ask->size)
        return complaint("a body of bytes", (unsigned)len, (unsigned)ask->size);
    if (!text_is(ask->hash, text, len))
        return "a body with other bytes";
    return NULL;
}

const char *
mix_check_page(const struct mix_ask *ask, const struct proxy_fetch_result *result)
{
    const struct mix_row *row = ask->row;
    const struct proxy_page *page = &result->proxy_fetch_result_u.page;
    unsigned http_status = row->http_status ? row->http_status : 200;

    if (result->status != row->status &&
        (row->or_status == PROXY_OK || result->status != row->or_status))
        return complaint("status", result->status, row->status);
    if (result->status != PROXY_OK)
        return NULL;
    if (row->unstored && page->ending.stored)
        return "a page that must not be stored was stored";
    if (row->unstored && page->source == PROXY_HIT)
        return "a page that must not be stored is a hit";
    if (page->http_status != http_status)
        return complaint("HTTP status", page->http_status, http_status);
    if ((row->kind == MIX_NO_STORE || row->kind == MIX_HEADERS) && page->source != PROXY_BYPASS)
        return complaint("source", page->source, PROXY_BYPASS);
    if (page->source == PROXY_BYPASS && (page->ending.stored || page->ending.evicted > 0))
        return "a page past the cache was stored";
    return mix_check_text(ask, page->body.body_val, page->body.body_len);
}

const char *
mix_check_status(const struct mix_ask *ask, bool admin, enum proxy_status status)
{
    enum proxy_status expected =
        ask->row->kind >= MIX_PURGE_URL && !admin ? PROXY_DENIED : PROXY_OK;

    return status == expected ? NULL : complaint("status", status, expected);
}
