/*
 * How much of its output the kernel takes of a connection at once.
 *
 * Left to itself the kernel takes some MiB. To a peer on this host that costs more than it saves:
 * the bytes leave the processor's caches before they are read, and one connection holds up the
 * others. With 64 KiB a hit of 1 MiB costs 13 % less CPU at 32 connections, and the 99th percentile
 * of the time of a 1 KiB hit during 50 downloads of 1 MiB is a third; with 128 KiB it is half. A
 * peer farther away may need as much as the kernel takes, since it acknowledges later what it has
 * got: its buffer is left alone.
 */
#ifndef SUNPROXY_NET_SEND_BUFFER_H
#define SUNPROXY_NET_SEND_BUFFER_H

#include <stdint.h>

enum { NET_NEAR_BYTES = 65536, NET_NEAR_RTT_US = 50 };

/*
 * The bytes to be asked for (SO_SNDBUF) for a peer with this shortest round-trip time in
 * microseconds, or 0: the kernel's own choice. NET_NEAR_BYTES, which the kernel doubles, within
 * NET_NEAR_RTT_US are 21 Gbit/s. UINT32_MAX is a time that is not known.
 */
int net_send_buffer_for(uint32_t rtt_us);

/* Sets the buffer of an accepted TCP socket by the round-trip time of its handshake. Another socket
 * is left as it is. */
void net_send_buffer_set(int fd);

#endif
