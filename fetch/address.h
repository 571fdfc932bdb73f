/*
 * Which network addresses and ports may be connected to. By default only globally routable ones
 * (the IANA special-purpose registries, RFC 6890); an operator may allow more by CIDR block.
 * Addresses that carry an IPv4 address (mapped, compatible, NAT64 64:ff9b::/96, 6to4, Teredo) are
 * checked by what they carry as well. The host's own addresses may be excepted.
 *
 *  * Immutable once in use; safe on any thread.
 */
#ifndef SUNPROXY_FETCH_ADDRESS_H
#define SUNPROXY_FETCH_ADDRESS_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct address_policy;

/* A policy that allows public addresses only. NULL without memory. */
struct address_policy *address_policy_create(void);
void address_policy_destroy(struct address_policy *policy);

/*
 * Allows a block: "127.0.0.0/8", "::1", "fd00::/8"; a bare address is a block of one. False, with a
 * sentence in `why`, if the text is no block, has bits set past its prefix, or there is no memory.
 */
bool address_policy_allow(struct address_policy *policy, const char *cidr, char *why,
                          size_t why_size);

/*
 * From now on refuses the addresses that this host has at the time of each question, unless a block
 * allows them. False, with a sentence in `why`, if the system cannot be asked for them.
 */
bool address_policy_refuse_own(struct address_policy *policy, char *why, size_t why_size);

/*
 * May this address be connected to? False for every family but AF_INET and AF_INET6. If it may not,
 * `why` is what it is and what would allow it, as in "an address of this host (allow it with
 * --allow-net 192.0.2.1)".
 */
bool address_policy_check(const struct address_policy *policy, const struct sockaddr *address,
                          char *why, size_t why_size);

/* The same without a sentence. */
bool address_policy_permits(const struct address_policy *policy, const struct sockaddr *address);

/* ---- the host's own addresses ---------------------------------------------------------------- */

/*
 * A connection to an address of this host comes in over the loopback device, past a packet filter
 * that guards the interfaces, so it is no public address even if it is globally routable. The
 * kernel is asked for its route to an address each time, over a socket of the family AF_NETLINK
 * (SOCK_RAW, protocol NETLINK_ROUTE) that is opened once: what it answers is true at that moment,
 * whatever interfaces and addresses have come and gone, and takes in ranges that are routed to the
 * host without being on an interface. [any thread]
 */
struct own_addresses;

/* NULL with errno if there is no such socket or no memory. */
struct own_addresses *own_addresses_open(void);
void own_addresses_close(struct own_addresses *own);

/*
 * Does a packet to this address (AF_INET or AF_INET6, in network order) end at this host? True also
 * if the kernel cannot be asked.
 */
bool own_addresses_have(struct own_addresses *own, int family, const unsigned char *bytes);

/* ---- ports ----------------------------------------------------------------------------------- */

/*
 * Is the port for another protocol, as one of the Fetch standard's bad ports (section "port
 * blocking")? A request sent there may be a command to what listens.
 */
bool port_is_blocked(uint16_t port);

#endif
