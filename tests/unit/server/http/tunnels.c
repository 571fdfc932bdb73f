#include "tests/unit/server/http/tunnels.h"

#include <fcntl.h>

#include "tests/unit/net/stream.h"

struct http_tunnel_stats
tunnels_stats(void)
{
    struct http_tunnel_stats stats;

    http_service_get_tunnels(front_service.http, &stats);
    return stats;
}

void
tunnels_end(void)
{
    AWAIT(tunnels_stats().open == 0);
    front_server_stop();
}

int
tunnels_hand_over(struct scene_fetch *fetch)
{
    int pair[2];

    ck_assert_uint_eq(fetch->flags & ~(unsigned)REQUEST_CONFIGURED, REQUEST_CONNECT_ONLY);
    ck_assert_str_eq(fetch->fields, "");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(fcntl(pair[1], F_SETFL, O_NONBLOCK), 0);
    fetch->sink->connected(fetch->context, pair[1]);
    scene_done(fetch, FETCH_OK, "");
    return pair[0];
}

void
tunnels_expect(int fd, const char *text)
{
    char bytes[256];

    ck_assert_uint_lt(strlen(text), sizeof(bytes));
    ck_assert(peer_read(fd, bytes, strlen(text)));
    ck_assert_msg(memcmp(bytes, text, strlen(text)) == 0, "%.*s", (int)strlen(text), bytes);
}
