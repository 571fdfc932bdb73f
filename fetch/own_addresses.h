/*
 * The addresses of this host. A connection to one of them comes in over the loopback device, past a
 * packet filter that guards the interfaces, so it is no public address even if it is globally
 * routable.
 *
 * The kernel is asked for its route to an address each time, over a socket of the family AF_NETLINK
 * (SOCK_RAW, protocol NETLINK_ROUTE) that is opened once: what it answers is true at that moment,
 * whatever interfaces and addresses have come and gone, and takes in ranges that are routed to the
 * host without being on an interface. Any thread may ask.
 */
#ifndef SUNPROXY_FETCH_OWN_ADDRESSES_H
#define SUNPROXY_FETCH_OWN_ADDRESSES_H

#include <stdbool.h>

struct own_addresses;

/* NULL with errno if there is no such socket or no memory. */
struct own_addresses *own_addresses_open(void);
void own_addresses_close(struct own_addresses *own);

/*
 * Does a packet to this address (AF_INET or AF_INET6, in network order) end at this host? True also
 * if the kernel cannot be asked.
 */
bool own_addresses_have(struct own_addresses *own, int family, const unsigned char *bytes);

#endif
