/*
 * Two clocks in microseconds: a monotonic one for durations and time-outs, the wall clock for dates
 * that people and HTTP see. Both are safe on any thread and cannot fail on Linux.
 */
#ifndef SUNPROXY_BASE_CLOCK_H
#define SUNPROXY_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t
clock_read_us(clockid_t id)
{
    struct timespec ts;

    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static inline int64_t
clock_monotonic_us(void)
{
    return clock_read_us(CLOCK_MONOTONIC);
}

static inline int64_t
clock_wall_us(void)
{
    return clock_read_us(CLOCK_REALTIME);
}

/* A duration or a time of a clock, 0 or more, for functions that take a timespec. */
static inline struct timespec
clock_timespec(int64_t us)
{
    return (struct timespec){.tv_sec = (time_t)(us / 1000000),
                             .tv_nsec = (long)(us % 1000000) * 1000};
}

#endif
