/*
 * A relay: the bytes that come on a connection go to another socket, and those that come from there
 * go to the connection, whatever they mean. It is what a protocol makes of a connection that is to
 * become a tunnel (RFC 9110, section 9.3.6).
 *
 * Either side is read only as fast as the other takes it. When the connection's peer ends its side,
 * the other socket is shut down for writing, and what still comes from there is passed on; when the
 * other side ends, the connection is finished. The connection counts a request in work until the
 * relay is over. The bounds and the idle timeout of its set hold for it, and a client's rate of
 * bytes, but not its rate of calls. A server that stops accepting ends its relays, which could last
 * for any time.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_NET_RELAY_H
#define SUNPROXY_NET_RELAY_H

#include <stdint.h>

#include "net/counter.h"
#include "net/protocol.h"

struct net_relay;

/*
 * Begins to relay between an open connection and a connected, non-blocking socket, which belongs to
 * the relay from then on. NULL, with the socket still the caller's, without memory. Both must stay
 * until net_relay_destroy().
 */
struct net_relay *net_relay_create(struct net_connection *connection, int fd);

/* Adds what is passed on to counters of the worker, besides. */
void net_relay_count(struct net_relay *relay, net_counter *sent, net_counter *received);

/*
 * Sends the protocol's own `head` to the connection's peer, and behind it `first`, which was read
 * from the socket before; to be called at most once, first of all. Both are copied. False without
 * memory: nothing is sent.
 */
bool net_relay_begin(struct net_relay *relay, struct span head, struct span first);

/* For the protocol's received(): takes input, and may hold it (NET_INPUT_HOLD). */
enum net_input net_relay_received(struct net_relay *relay, struct span *input);

/* For the protocol's stopped(): no more comes on the connection. */
void net_relay_stopped(struct net_relay *relay);

/* Bytes passed on so far from the socket to the connection. */
uint64_t net_relay_received_bytes(const struct net_relay *relay);

/* For the protocol's closed(). NULL is harmless. */
void net_relay_destroy(struct net_relay *relay);

#endif
