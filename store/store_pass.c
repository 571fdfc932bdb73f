#include "store/store_pass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

static bool
take_answers(struct pass *pass)
{
    ssize_t n = recv(pass->fd, pass->answer + pass->answered,
                     sizeof(pass->answer) - pass->answered, MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && pass_is_retried(errno);
    pass->answered += (size_t)n;
    if (pass->answered == sizeof(pass->answer)) {
        memcpy(&pass->taken, pass->answer, sizeof(pass->taken));
        pass->lost = (pass->taken & PASS_LOST) != 0;
        pass->taken &= ~PASS_LOST;
        pass->answered = 0;
    }
    return true;
}

/* Waits for one of these events. What has come is taken. */
static bool
await(struct pass *pass, short events)
{
    struct pollfd fd = {.fd = pass->fd, .events = (short)(events | POLLIN)};

    if (poll(&fd, 1, -1) < 0)
        return errno == EINTR;
    return !(fd.revents & (POLLIN | POLLHUP | POLLERR | POLLNVAL)) || take_answers(pass);
}

static bool
send_all(struct pass *pass, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(pass->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        } else if (!pass_is_retried(errno) || !await(pass, POLLOUT)) {
            return false;
        }
    }
    return true;
}

bool
pass_send(struct pass *pass, const struct source_purge *purge)
{
    const struct pass_head head = {
        .magic = PASS_MAGIC,
        .by = (uint8_t)purge->by,
        .soft = purge->soft,
        .name_len = (uint32_t)purge->name.len,
        .scope_len = (uint32_t)purge->scope.len,
        .number = pass->sent + 1,
    };

    if (!send_all(pass, (const char *)&head, sizeof(head)) ||
        !send_all(pass, purge->name.ptr, purge->name.len) ||
        !send_all(pass, purge->scope.ptr, purge->scope.len))
        return false;
    pass->sent++;
    return true;
}

bool
pass_await(struct pass *pass)
{
    while (pass->taken != pass->sent)
        if (!await(pass, 0))
            return false;
    return true;
}
