/*
 * What the tests of redirects share: a service that follows ten of them, and what its clients
 * receive.
 */
#ifndef SUNPROXY_TESTS_SERVER_RPC_FOLLOW_H
#define SUNPROXY_TESTS_SERVER_RPC_FOLLOW_H

#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define A "http://host/a"
#define B "http://host/b"
#define C "http://other/c"

/* Of 100 pages. */
void follow_set_up(void);
void follow_tear_down(void);

/* Receives a page of version 2 from this URL. */
void expect_page_of(int fd, uint32_t xid, proxy_source source, const char *url, const char *body);

/* Receives the page "page" of version 2 from any URL. */
void expect_this_page(int fd, uint32_t xid);

/* Receives a page of version 1. */
void expect_page_1(int fd, uint32_t xid, const char *body);

/* Receives a failure of version 2, with the sentence for clients where that is of a redirect. */
void expect_refused(int fd, uint32_t xid, proxy_status status);

/* Waits for the fetch of the URL, and sends the head of a redirect whose body does not end. */
struct scene_fetch *begin_redirect(const char *url, unsigned status, const char *lines);

#endif
