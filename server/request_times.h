/* How long the request database waits. The daemon uses request_times; tests use shorter ones. */
#ifndef SUNPROXY_SERVER_REQUEST_TIMES_H
#define SUNPROXY_SERVER_REQUEST_TIMES_H

#include <stdint.h>

struct request_times {
    int64_t write_us;  /* rows are written this often, also after a failure */
    int64_t leave_us;  /* this often, leaving a file that was moved away is tried */
    int64_t reopen_us; /* a caller waits at most this long for a reopening */
    int64_t last_us;   /* at the end, rows that cannot be written are tried again this long */
    int busy_ms;       /* a lock of another process is waited for this long */
};

static const struct request_times request_times = {
    .write_us = 1000000,
    .leave_us = 900000,
    .reopen_us = 2000000,
    .last_us = 2000000,
    .busy_ms = 1000,
};

#endif
