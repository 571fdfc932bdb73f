#include "tests/unit/proxy/writes.h"

static const struct scene_options defaults;

void
writes_scene(void)
{
    scene_begin(&defaults);
    scene_add_rule(&scene.tag_rules, "/* -> $1");
    scene_add_rule(&scene.write_rules, "/paths -> users");
}

void
store_http(const char *url, const char *lines)
{
    struct visit v;

    ck_assert(!visit_http(&v, url, ""));
    scene_answer(url, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
}

/* The GET, behind the fetch of a write to the same URL. */
static struct scene_fetch *
scene_get(const char *url)
{
    struct scene_fetch *fetch = scene_fetch(url);

    while (*fetch->method && strcmp(fetch->method, "GET") != 0)
        fetch = TAILQ_NEXT(fetch, link);
    return fetch;
}

void
store_beside(const char *url, const char *lines)
{
    struct scene_fetch *fetch;
    struct visit v;

    ck_assert(!visit_http(&v, url, ""));
    fetch = scene_get(url);
    scene_response(fetch, lines, false);
    scene_head(fetch, 200, lines, 20);
    scene_body(fetch, 20);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
}

bool
has_http(const char *url)
{
    struct visit v;

    ck_assert(visit_http(&v, url, "Cache-Control: only-if-cached\r\n"));
    return v.fails == 0;
}

void
begin_write(struct visit *v, const char *url, bool owned)
{
    *v = (struct visit){.url = url, .http = true, .streams = true, .method = "PUT", .owned = owned};
    ck_assert(!visit(v));
}

void
write_to(const char *url, bool owned, unsigned status, const char *lines)
{
    struct visit v;

    begin_write(&v, url, owned);
    scene_answer(url, status, lines, 5);
    expect_body(&v, OUTCOME_BYPASS, 5);
}
