#include "net/delivery.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

enum { DISCARD_AT_ONCE = 16 }; /* reads */

bool
net_discard_input(int fd, char *scratch, size_t size, uint64_t *discarded)
{
    for (int i = 0; i < DISCARD_AT_ONCE; i++) {
        ssize_t got = recv(fd, scratch, size, MSG_DONTWAIT);

        if (got <= 0)
            return got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
        *discarded += (uint64_t)got;
    }
    return false;
}

/* A peer that has closed resets the connection when it is sent something. */
static bool
is_reset(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == TCP_CLOSE;
}

bool
net_is_delivered(int fd, sa_family_t family)
{
    int unsent = 0;

    return family == AF_UNIX || ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent == 0 || is_reset(fd);
}
