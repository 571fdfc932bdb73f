/*
 * The end of a stream socket without loss. Closing a TCP socket with unread input resets it, and a
 * reset discards what the kernel has not delivered yet; so before a close, input is read and
 * discarded, and the kernel is asked for what it has not delivered.
 */
#ifndef SUNPROXY_NET_DELIVERY_H
#define SUNPROXY_NET_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Reads what has come, in at most 16 reads, since a peer may send as fast as we read, and adds its
 * bytes to *discarded. Has the peer ended its side, or gone? */
bool net_discard_input(int fd, char *scratch, size_t size, uint64_t *discarded);

/*
 * Has the peer's kernel all that was sent, or will it never have it? True for AF_UNIX, where sent
 * is delivered.
 */
bool net_is_delivered(int fd, sa_family_t family);

#endif
