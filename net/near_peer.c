#include "net/near_peer.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
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

/* An option that is refused costs speed only, here and below. */
static void
use_reno(int fd)
{
    static const char control[] = "reno";

    (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, sizeof(control) - 1);
}

void
net_near_peer_tune(int fd)
{
    const int bytes = net_near_peer_buffer(shortest_rtt(fd));

    if (!bytes)
        return;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    use_reno(fd);
}

static bool
is_loopback(const struct sockaddr *address)
{
    const struct sockaddr_in *inet = (const struct sockaddr_in *)(const void *)address;
    const struct sockaddr_in6 *inet6 = (const struct sockaddr_in6 *)(const void *)address;

    if (address->sa_family == AF_INET)
        return ntohl(inet->sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&inet6->sin6_addr);
}

void
net_near_peer_listen(int fd, const struct sockaddr *address)
{
    if (is_loopback(address))
        use_reno(fd);
}
