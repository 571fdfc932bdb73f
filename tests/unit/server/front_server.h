/*
 * What the tests of the fronts share: the service of both protocol versions on an RPC server of
 * this process, over a proxy whose origin the test scripts (tests/unit/proxy/scene.h); and a peer
 * that reads the replies byte by byte. The test's thread is the fetcher's; exchanges run on the
 * server's workers.
 */
#ifndef SUNPROXY_TESTS_SERVER_FRONT_SERVER_H
#define SUNPROXY_TESTS_SERVER_FRONT_SERVER_H

#include "base/buf.h"
#include "proxy.h"
#include "server/service.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/server/front_config.h"

#define MAX_AGE "Cache-Control: max-age=3600\r\n"

/*
 * A segmented body comes without a length; one of at most 256 KiB that is stored becomes inline. An
 * inline body of more than 1 MiB is segmented, too.
 */
enum body_form { BODY_INLINE, BODY_SEGMENTED };

/* The running service; its proxy has the configuration of the scene's. */
extern struct service front_service;

/* The options of the service; zero but for what is set here before front_server_start(). */
extern struct options front_options;

/* The request database of the service; NULL: none. */
extern struct request_db *front_request_db;

/* That a call of PROXY_READ waits for its first byte; 0: as in the daemon. */
extern int64_t front_cursor_wait_us;

/* Begins a scene with these options, and serves it with two workers, over HTTP, too. */
void front_server_start(const struct scene_options *options, enum show_victims show_victims);

/* Closes the listeners and what is left after `timeout_us`; returns the connections cut off. */
unsigned front_server_halt(int64_t timeout_us);

/* Frees everything, after front_server_halt(), and ends the scene: nothing is charged any more. */
void front_server_free(void);

/* Both, where no connection has a request in flight. */
void front_server_stop(void);

/* ---- the peer -------------------------------------------------------------------------------- */

/* A connection over the AF_UNIX socket, of an administrator; and over TCP, of anyone. */
int front_connect(void);
int front_connect_tcp(void);

/*
 * A connection to the HTTP front over TCP, to its listener behind the PROXY protocol, and over an
 * AF_UNIX socket, of an administrator.
 */
int http_connect(void);
int http_connect_proxied(void);
int http_connect_local(void);

/* Sends text; false when the connection is lost. */
bool http_send(int fd, const char *text);

/*
 * Receives a response whole: its head in `head`, its body in `body` (each ended by a zero byte),
 * framed as the head has it. `no_body`: it answers HEAD. False if the connection ends before.
 */
struct http_answer {
    unsigned status;
    size_t head_len, body_len;
    bool until_close; /* its body ended with the connection */
    char head[8192];
    char body[3 * MIB];
};
bool http_receive(int fd, struct http_answer *answer, bool no_body);

/* Is there such a line in the head, or one that begins so? Case counts. */
bool http_has(const struct http_answer *answer, const char *line);
bool http_has_start(const struct http_answer *answer, const char *start);

/* Receives a response of this status; one of status 200 with this body, a text. */
void http_expect_status(int fd, struct http_answer *answer, unsigned status);
void http_expect_page(int fd, struct http_answer *answer, const char *body);

/* Sends a request, and receives a response of this status. */
void http_expect(int fd, const char *request, struct http_answer *answer, unsigned status);

/* Stores a page by a request of its own to the forward proxy; `lines` are the response's. */
void http_store(const char *url, const char *lines, const char *body);

/* A request for a URL that is stored, by the forward proxy; and the expected response. */
void http_expect_hit(int fd, const char *url, const char *body, size_t len);

/* Sends a call of version 1; the URL may contain any bytes. */
void send_fetch(int fd, uint32_t xid, const char *url, size_t len);

/* Sends a call of version 2: a fetch with flags, and with fields; or any procedure. */
void send_get(int fd, uint32_t xid, const char *url, unsigned flags);
void send_get_with(int fd, uint32_t xid, const char *url, const char *fields);
void send_call(int fd, uint32_t xid, uint32_t procedure, xdrproc_t encode, void *args);

/* The xid of the reply that comes next, which is not received yet. */
uint32_t next_xid(int fd);

/* Receives an accepted reply: its accept_stat. */
enum accept_stat receive_status(int fd, uint32_t xid);

/*
 * Receives a result, into zeroed memory that is to be freed by xdr_free(). The reply ends with it
 * and its padding, which is of zeros.
 */
void receive_result(int fd, uint32_t xid, xdrproc_t decode, void *result);

/* Receives a page of version 1: a text of these bytes. */
void expect_text_1(int fd, uint32_t xid, const char *bytes, size_t len);

/* Receives the result of a fetch of version 2 that has this status. */
void receive_page(int fd, uint32_t xid, proxy_status status, proxy_fetch_result *result);
void free_page(proxy_fetch_result *result);

/* ---- the origin ------------------------------------------------------------------------------ */

/* Waits until the URL is being fetched. */
struct scene_fetch *await_fetch(const char *url);

/* Waits for the fetch of a URL, and sends the head of a response with status 200. The length is
 * that of the body; -1: it is not known. */
struct scene_fetch *origin_begins(const char *url, const char *lines, int64_t length);

/* Waits for the fetch of a URL, and responds with status 200, field lines, and a body. */
void origin_responds(const char *url, const char *lines, enum body_form form, const char *bytes,
                     size_t len);

/* The same with a status and a text, as far as it is wanted. */
void origin_answers(const char *url, unsigned status, const char *lines, const char *body);

/* Waits for the fetch of a URL, and responds with this Location, other lines and a body. */
void origin_redirects(const char *url, unsigned status, const char *location, const char *lines);

/* Waits for the fetch of a URL, and has it fail. */
void origin_fails(const char *url, enum fetch_error error, const char *sentence);

/* Stores a page by a fetch of its own. */
void front_store(const char *url, const char *lines, enum body_form form, const char *bytes,
                 size_t len);

/* `len` bytes (at most 2 MiB) without a zero byte, position by position the same. */
const char *plain_bytes(size_t len);

/* Calls what sends a request, and waits until it waits beside the earlier ones. */
#define AWAIT_ONE_MORE(sends)                                             \
    do {                                                                  \
        size_t before = client_share_total(&front_service.proxy.waiting); \
                                                                          \
        sends;                                                            \
        AWAIT(client_share_total(&front_service.proxy.waiting) > before); \
    } while (0)

#endif
