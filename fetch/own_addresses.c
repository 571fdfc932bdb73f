#include "fetch/own_addresses.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct own_addresses {
    int fd;
    pthread_mutex_t lock;
    /* protected by lock */
    uint32_t sequence;
};

/* What it is asked: the route to an address. */
struct query {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr to;
    unsigned char address[16];
};

struct own_addresses *
own_addresses_open(void)
{
    struct own_addresses *own = calloc(1, sizeof(*own));
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

    if (!own)
        return NULL;
    own->fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (own->fd >= 0 && connect(own->fd, (const struct sockaddr *)&kernel, sizeof(kernel)) == 0 &&
        pthread_mutex_init(&own->lock, NULL) == 0)
        return own;
    if (own->fd >= 0)
        close(own->fd);
    free(own);
    return NULL;
}

void
own_addresses_close(struct own_addresses *own)
{
    if (!own)
        return;
    close(own->fd);
    pthread_mutex_destroy(&own->lock);
    free(own);
}

static bool
ask(struct own_addresses *own, int family, const unsigned char *bytes)
{
    unsigned short len = family == AF_INET ? 4 : 16;
    struct query query = {
        .head = {.nlmsg_len = (uint32_t)offsetof(struct query, address) + len,
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST,
                 .nlmsg_seq = ++own->sequence},
        .route = {.rtm_family = (unsigned char)family, .rtm_dst_len = (unsigned char)(len * 8)},
        .to = {.rta_len = (unsigned short)RTA_LENGTH(len), .rta_type = RTA_DST},
    };

    memcpy(query.address, bytes, len);
    return send(own->fd, &query, query.head.nlmsg_len, 0) == (ssize_t)query.head.nlmsg_len;
}

/* The kernel answers before send() returns. Answers to earlier questions are passed over. */
static bool
read_answer(struct own_addresses *own, bool *here)
{
    union {
        struct nlmsghdr head;
        char bytes[4096];
    } answer;
    const struct rtmsg *route;
    ssize_t got;

    for (;;) {
        got = recv(own->fd, &answer, sizeof(answer), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < (ssize_t)sizeof(answer.head))
            return false;
        if (answer.head.nlmsg_seq == own->sequence)
            break;
    }
    *here = false;
    if (answer.head.nlmsg_type == NLMSG_ERROR)
        return true; /* there is no way to it at all */
    if (answer.head.nlmsg_type != RTM_NEWROUTE || got < (ssize_t)NLMSG_LENGTH(sizeof(*route)))
        return false;
    route = NLMSG_DATA(&answer.head);
    *here = route->rtm_type == RTN_LOCAL || route->rtm_type == RTN_ANYCAST ||
            route->rtm_type == RTN_BROADCAST;
    return true;
}

bool
own_addresses_have(struct own_addresses *own, int family, const unsigned char *bytes)
{
    bool here = true;

    pthread_mutex_lock(&own->lock);
    if (!ask(own, family, bytes) || !read_answer(own, &here))
        here = true;
    pthread_mutex_unlock(&own->lock);
    return here;
}
