/*
 * A counter with one writer, readable on any thread. Writing costs no atomic read-modify-write:
 * -1.5 % CPU per hit with four calls outstanding on each of 32 connections.
 */
#ifndef SUNPROXY_NET_COUNTER_H
#define SUNPROXY_NET_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t net_counter;

/* For the counter's one writer. */
static inline void
net_counter_add(net_counter *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* [any] */
static inline uint64_t
net_counter_read(const net_counter *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
