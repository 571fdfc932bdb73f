#include "store/store_pass.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/disk_store.h"

#define PASS_MAGIC 0x31535350u
#define SYNC_US ((int64_t)1000000)

/* A purge, with its texts behind it. The answer is a number: it and all before it are noted. */
struct pass_head {
    uint32_t magic;
    uint8_t by;
    uint8_t soft;
    uint16_t zero;
    uint32_t name_len;
    uint32_t scope_len;
    uint64_t number;
};

static bool
is_retried(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* ---- the process that is replaced ------------------------------------------------------------ */

static bool
take_answers(struct pass *pass)
{
    ssize_t n = recv(pass->fd, pass->answer + pass->answered,
                     sizeof(pass->answer) - pass->answered, MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && is_retried(errno);
    pass->answered += (size_t)n;
    if (pass->answered == sizeof(pass->answer)) {
        memcpy(&pass->taken, pass->answer, sizeof(pass->taken));
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
        } else if (!is_retried(errno) || !await(pass, POLLOUT)) {
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

/* ---- the other one --------------------------------------------------------------------------- */

/* Waits for bytes. False: the other end is closed. */
static bool
receive(int fd, void *to, size_t len)
{
    char *at = to;

    while (len) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&ready, 1, -1) < 0 ? -1 : recv(fd, at, len, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && !is_retried(errno)))
            return false;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return true;
}

static bool
is_sound(const struct pass_head *head)
{
    return head->magic == PASS_MAGIC && head->by <= CACHE_BY_TAG &&
           head->name_len <= OBJECT_MAX_META && head->scope_len <= OBJECT_MAX_META;
}

/* Purges what comes next. */
static bool
take_one(struct store *store, struct pass_head *head)
{
    char *texts;
    bool sound;

    if (!receive(store->taker_fd, head, sizeof(*head)) || !is_sound(head))
        return false;
    texts = malloc((size_t)head->name_len + head->scope_len + 1);
    sound = texts && receive(store->taker_fd, texts, (size_t)head->name_len + head->scope_len);
    if (sound)
        store->config.purged(store->config.context, NULL,
                             &(struct source_purge){
                                 .by = (enum cache_by)head->by,
                                 .soft = head->soft,
                                 .name = span_of(texts, head->name_len),
                                 .scope = span_of(texts + head->name_len, head->scope_len),
                             });
    free(texts);
    return sound;
}

static bool
has_more(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};

    return poll(&ready, 1, 0) > 0;
}

void *
pass_take_run(void *context)
{
    struct store *store = context;
    struct pass_head head;

    while (take_one(store, &head)) {
        enum store_synced synced;

        if (has_more(store->taker_fd))
            continue;
        do
            synced = store_await_sync(store, SYNC_US);
        while (synced == STORE_SYNCS);
        if (synced == STORE_SYNC_LOST ||
            send(store->taker_fd, &head.number, sizeof(head.number), MSG_NOSIGNAL) !=
            (ssize_t)sizeof(head.number))
            break;
    }
    (void)shutdown(store->taker_fd, SHUT_RDWR);
    atomic_store(&store->taking, false);
    return NULL;
}
