#include "net/near_peer.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

int
net_near_peer_buffer(uint32_t rtt_us)
{
    return rtt_us <= NET_NEAR_RTT_US ? NET_NEAR_BYTES : 0;
}

/* UINT32_MAX if it is not known. */
static uint32_t
shortest_rtt(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof(info);

    memset(&info, 0, sizeof(info));
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt))
        return UINT32_MAX;
    return info.tcpi_min_rtt;
}

void
net_near_peer_tune(int fd)
{
    const int bytes = net_near_peer_buffer(shortest_rtt(fd));

    /* Refused, it costs speed and nothing else. */
    if (bytes)
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}
