/*
 * Output by reference: a queue of what is to be sent on a connection, as pieces that are sent from
 * where they stand. Each output keeps its bytes valid until it is released, which is when its last
 * byte has been written or the connection is gone. As many pieces of as many outputs as possible go
 * with one system call: -59 % CPU per hit of 1 KiB with four calls outstanding on each of 32
 * connections.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_NET_OUTPUT_H
#define SUNPROXY_NET_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>

enum {
    NET_SEND_PIECES = 128,   /* given to the kernel at once */
    NET_JOINED_BYTES = 2048, /* of all pieces together, that are copied into one */
    /*
     * Written at once, so that other connections do not wait for long. Where a worker has short
     * messages to send as well, less is better for downloads: 50 of 1 MiB at a time are a tenth
     * more per second with 64 KiB than with 128. The 99th percentile of the time of a 1 KiB hit
     * beside them is 4.5 and 4.9 ms; the median is 0.8 and 0.1, since 128 KiB fill the send buffer
     * of a near peer, and the connection waits then.
     */
    NET_TURN_BYTES = 1 << 17,
    NET_TURN_BYTES_SHARED = 1 << 16,
};

/* Part of its owner's object. The owner sets pieces, count, len and release, and `sent` to 0. */
struct net_output {
    STAILQ_ENTRY(net_output) link; /* the queue's */
    struct iovec *pieces;          /* none of them empty; changed as they are sent */
    unsigned count;
    unsigned sent;     /* pieces written whole; the first after them may be cut short in place */
    size_t len;        /* bytes of all pieces */
    int64_t queued_us; /* when it was queued */
    /* Called once. It may queue further output on the connection, if that is still open. */
    void (*release)(struct net_output *output);
};

struct net_output_queue {
    STAILQ_HEAD(, net_output) outputs;
    size_t bytes; /* not yet written */
};

void net_output_queue_init(struct net_output_queue *queue);

void net_output_queue_add(struct net_output_queue *queue, struct net_output *output,
                          int64_t now_us);

/* Releases all that is queued. */
void net_output_queue_drop(struct net_output_queue *queue);

/* When the first output was queued; INT64_MAX if there is none. */
int64_t net_output_queue_since(const struct net_output_queue *queue);

enum net_send_status {
    NET_SENT,      /* the queue is empty */
    NET_SENT_PART, /* the kernel takes no more at present, or as much as it was to be is written */
    NET_SEND_FAILED
};

/*
 * Writes to a non-blocking socket until the queue is empty, the kernel takes no more, or
 * `most` bytes are written; *written counts them. `pieces` has NET_SEND_PIECES elements.
 */
enum net_send_status net_output_queue_send(struct net_output_queue *queue, int fd, size_t most,
                                           struct iovec *pieces, size_t *written);

static inline bool
net_output_queue_is_empty(const struct net_output_queue *queue)
{
    return STAILQ_EMPTY(&queue->outputs);
}

#endif
