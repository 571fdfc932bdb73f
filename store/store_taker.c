/* The thread of the process that has taken a store over: purges here what the other one passes. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "store/disk_store.h"

#define SYNC_US (10 * STORE_NOTE_US) /* the store has answered by then */

/* Waits for bytes. False: the other end is closed. */
static bool
receive(int fd, void *to, size_t len)
{
    char *at = to;

    while (len) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&ready, 1, -1) < 0 ? -1 : recv(fd, at, len, MSG_DONTWAIT);

        if (n == 0 || (n < 0 && !pass_is_retried(errno)))
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

/* Answers when it is noted, or lost. False: the other end is closed. */
static bool
answer(struct store *store, uint64_t number)
{
    enum store_synced synced;

    do
        synced = store_await_sync(store, SYNC_US);
    while (synced == STORE_SYNCS);
    if (synced == STORE_SYNC_LOST)
        number |= PASS_LOST;
    return send(store->taker_fd, &number, sizeof(number), MSG_NOSIGNAL) ==
           (ssize_t)sizeof(number);
}

void *
pass_take_run(void *context)
{
    struct store *store = context;
    struct pass_head head;

    while (take_one(store, &head))
        if (!has_more(store->taker_fd) && !answer(store, head.number))
            break;
    (void)shutdown(store->taker_fd, SHUT_RDWR);
    atomic_store(&store->taking, false);
    return NULL;
}
