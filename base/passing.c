#include "base/passing.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Space for a control message, aligned as one. */
union control {
    char bytes[CMSG_SPACE(PASSING_MAX * sizeof(int))];
    struct cmsghdr header;
};

bool
passing_send(int fd, const void *bytes, size_t len, const int *passed, unsigned count)
{
    struct iovec piece = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    union control control = {{0}};
    ssize_t sent;

    if (count) {
        struct cmsghdr *header;

        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), passed, count * sizeof(int));
    }
    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 && (size_t)sent < len)
        errno = EAGAIN;
    return sent == (ssize_t)len;
}

/* Takes the descriptors of a message over. */
static unsigned
take(struct msghdr *message, int passed[PASSING_MAX])
{
    unsigned count = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        size_t size;

        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
            continue;
        size = at->cmsg_len - CMSG_LEN(0);
        memcpy(passed, CMSG_DATA(at), size);
        count = (unsigned)(size / sizeof(int));
    }
    return count;
}

ssize_t
passing_receive(int fd, void *bytes, size_t len, int passed[PASSING_MAX], unsigned *count)
{
    struct iovec piece = {.iov_base = bytes, .iov_len = len};
    union control control = {{0}};
    struct msghdr message = {.msg_iov = &piece,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof(control.bytes)};
    ssize_t received;

    *count = 0;
    do
        received = recvmsg(fd, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    while (received < 0 && errno == EINTR);
    if (received >= 0)
        *count = take(&message, passed);
    if (received == (ssize_t)len)
        return received;
    while (*count)
        close(passed[--*count]);
    return received < 0 ? -1 : 0;
}
