/*
 * Moderation of a worker's wake-ups, as a network card moderates its interrupts. A thread that is
 * woken by every message runs at once, answers one client or a few, and sleeps again. While many
 * clients send at a time, the worker asks the kernel not to preempt other threads when it wakes
 * (SCHED_BATCH, sched(7)): it then runs when they pause, and finds all that they sent meanwhile.
 * Where clients and server share a CPU, at 32 connections, that is -11 % CPU per hit of 1 KiB over
 * HTTP and -2 % over RPC, but +7 % per hit of 1 MiB. A single client is not delayed, and a worker
 * that is not busy is woken at once.
 *
 * Everything here is for the worker's thread.
 */
#ifndef SUNPROXY_NET_MODERATION_H
#define SUNPROXY_NET_MODERATION_H

#include <stdbool.h>
#include <stdint.h>

/* The load of a worker since it was last evaluated. */
struct net_moderation {
    int64_t since_us;
    uint64_t events; /* of its life, then */
    uint64_t turns;  /* of the loop, since then */
    bool on;
    bool scheduled; /* as SCHED_BATCH, by net_moderation_apply() */
};

/* The worker's thread runs from now on. */
void net_moderation_begin(struct net_moderation *moderation, int64_t now_us);

/*
 * The loop has made a turn, and the worker has found connections ready `events` times in its life.
 * True: other threads should finish before it is woken. Evaluated every 10 ms or more rarely: on
 * from 10,000 events a second of which three or more come in a turn, off below 5,000 or two.
 */
bool net_moderation_turn(struct net_moderation *moderation, int64_t now_us, uint64_t events);

/*
 * Has the kernel schedule the calling thread as `on` says (SCHED_BATCH, or back to SCHED_OTHER). A
 * policy that was set from outside stays, SCHED_BATCH too; a refusal is harmless.
 */
void net_moderation_apply(struct net_moderation *moderation);

#endif
