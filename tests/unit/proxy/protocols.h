/*
 * What tests of objects that requests over RPC and over HTTP share have in common: a request over
 * either, and what comes of it.
 */
#ifndef SUNPROXY_TESTS_PROXY_PROTOCOLS_H
#define SUNPROXY_TESTS_PROXY_PROTOCOLS_H

#include <stdio.h>

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define TAGGED "ETag: \"a\"\r\n"
#define FRESH TAGGED "Cache-Control: max-age=10\r\n"
#define VALIDATES "If-None-Match: \"a\"\r\n"
#define PRIVATE "Set-Cookie: a=b\r\n"

enum protocol { RPC, HTTP };

static const struct scene_options defaults;

/* As visit() returns. */
static inline bool
begin(struct visit *v, enum protocol protocol, const char *fields)
{
    *v = (struct visit){.url = URL, .http = protocol == HTTP, .streams = true, .fields = fields};
    return visit(v);
}

/* The fields of a request that is fetched for the protocol, with these after its own. */
static inline void
expect_fields(enum protocol protocol, const char *fields)
{
    char expected[256];

    snprintf(expected, sizeof(expected), "%s%s", protocol == RPC ? SCENE_RPC_FIELDS : "", fields);
    ck_assert_str_eq(scene_fetch(URL)->fields, expected);
}

/* A request that is fetched without conditions, and gets this response. */
static inline void
miss(enum protocol protocol, const char *lines, size_t len, bool stored)
{
    struct visit v;

    ck_assert(!begin(&v, protocol, ""));
    expect_fields(protocol, "");
    scene_answer(URL, 200, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert_int_eq(v.stored, stored);
}

static inline void
hit(enum protocol protocol, size_t len)
{
    struct visit v;

    ck_assert(begin(&v, protocol, ""));
    expect_body(&v, OUTCOME_HIT, len);
    ck_assert(v.stored);
}

/* A request that validates what is stored, which the origin confirms with these lines. */
static inline void
revalidate(enum protocol protocol, const char *lines, size_t len)
{
    struct visit v;

    ck_assert(!begin(&v, protocol, ""));
    expect_fields(protocol, VALIDATES);
    scene_answer(URL, 304, lines, 0);
    expect_body(&v, OUTCOME_REVALIDATED, len);
    ck_assert_uint_eq(v.status, 200);
    ck_assert_uint_eq(v.origin_status, 304);
    ck_assert(v.stored);
}

#endif
