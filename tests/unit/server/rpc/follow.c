#include "tests/unit/server/rpc/follow.h"

void
follow_set_up(void)
{
    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.capacity_pages = 100}, VICTIMS_NONE);
}

void
follow_tear_down(void)
{
    front_server_stop();
}

static bool
is(const char *bytes, size_t len, const char *text)
{
    return span_equal(span_of(bytes, len), span_str(text));
}

void
expect_page_of(int fd, uint32_t xid, proxy_source source, const char *url, const char *body)
{
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert_uint_eq(page->http_status, 200);
    ck_assert_int_eq(page->source, source);
    ck_assert_msg(is(page->final_url.proxy_url_val, page->final_url.proxy_url_len, url), "%.*s",
                  (int)page->final_url.proxy_url_len, page->final_url.proxy_url_val);
    ck_assert(is(page->body.body_val, page->body.body_len, body));
    free_page(&result);
}

void
expect_this_page(int fd, uint32_t xid)
{
    proxy_fetch_result result;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert(is(result.proxy_fetch_result_u.page.body.body_val,
                 result.proxy_fetch_result_u.page.body.body_len, "page"));
    free_page(&result);
}

void
expect_page_1(int fd, uint32_t xid, const char *body)
{
    expect_text_1(fd, xid, body, strlen(body));
}

void
expect_refused(int fd, uint32_t xid, proxy_status status)
{
    proxy_fetch_result result;

    receive_page(fd, xid, status, &result);
    ck_assert_str_ne(result.proxy_fetch_result_u.sentence, "");
    if (status == PROXY_BAD_REDIRECT)
        ck_assert_str_eq(result.proxy_fetch_result_u.sentence,
                         "the origin redirects to where the proxy does not follow");
    free_page(&result);
}

struct scene_fetch *
begin_redirect(const char *url, unsigned status, const char *lines)
{
    struct scene_fetch *fetch = await_fetch(url);

    fetch->sink->begin(fetch->context);
    scene_response_of(fetch, status, lines);
    ck_assert_int_eq(scene_head(fetch, status, lines, -1), FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(fetch, 10), FETCH_CONTINUE);
    return fetch;
}
