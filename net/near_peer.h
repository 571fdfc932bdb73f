/*
 * How TCP sends to a peer that is near: on this host, or as fast to reach.
 *
 * The send buffer. Left to itself the kernel takes some MiB of output at once. To a near peer that
 * costs more than it saves: the bytes leave the processor's caches before they are read, and one
 * connection holds up the others. With 64 KiB a hit of 1 MiB costs 10 % less CPU at 32 connections,
 * and the 99th percentile of the time of a 1 KiB hit during 50 downloads of 1 MiB is a third. With
 * 128 KiB the CPU per hit is 2 % less than that, that of the clients 6 % more, and the percentile a
 * half.
 *
 * The congestion control. No path is shared with others that it could congest, so the one that does
 * the least will do, which is Reno, and each kernel has it: -2.7 % CPU per hit of 1 KiB at 32
 * connections where the default is BBR. A connection that begins with BBR is paced for its whole
 * life, with Reno as well: a timer interrupts the worker for each few segments. So where all peers
 * are near, Reno is set before there is a connection: -6 % CPU per hit of 1 MiB.
 *
 * A peer farther away may need as much as the kernel takes, since it acknowledges later what it has
 * got, and congestion control is the administrator's choice: all is left alone.
 */
#ifndef SUNPROXY_NET_NEAR_PEER_H
#define SUNPROXY_NET_NEAR_PEER_H

#include <stdint.h>

struct sockaddr;

enum { NET_NEAR_BYTES = 65536, NET_NEAR_RTT_US = 50 };

/*
 * The bytes to be asked for (SO_SNDBUF) for a peer with this shortest round-trip time in
 * microseconds, or 0: the kernel's own choice. NET_NEAR_BYTES, which the kernel doubles, within
 * NET_NEAR_RTT_US are 21 Gbit/s. UINT32_MAX is a time that is not known.
 */
int net_near_peer_buffer(uint32_t rtt_us);

/*
 * Sets both for a connected TCP socket, by the shortest round-trip time so far. Another socket is
 * left as it is. It takes up to three system calls, which a connection of a few small messages is
 * not worth.
 */
void net_near_peer_tune(int fd);

/*
 * Sets the congestion control for all connections of a TCP listener, if the address that it is
 * bound to is a loopback address, which normally only this host can reach. Another one is left as
 * it is.
 */
void net_near_peer_listen(int fd, const struct sockaddr *address);

#endif
