/*
 * Dates in logs and listings: RFC 3339, UTC, with microseconds.
 */
#ifndef SUNPROXY_BASE_TIMESTAMP_H
#define SUNPROXY_BASE_TIMESTAMP_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define TIMESTAMP_SIZE 32

/* "2026-11-20T22:26:29.123456Z" */
static inline void
timestamp_format(int64_t wall_us, char text[TIMESTAMP_SIZE])
{
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm tm;
    size_t len;

    gmtime_r(&seconds, &tm);
    len = strftime(text, TIMESTAMP_SIZE, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + len, TIMESTAMP_SIZE - len, ".%06dZ", (int)(wall_us % 1000000));
}

#endif
