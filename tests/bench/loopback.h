/* The socket of a server that is measured: on 127.0.0.1, with a port of the system's choice. */
#ifndef SUNPROXY_TESTS_BENCH_LOOPBACK_H
#define SUNPROXY_TESTS_BENCH_LOOPBACK_H

#include <stdint.h>

/* A listening TCP socket, and its port in *port. -1 with errno set if there can be none. */
int loopback_listen(uint16_t *port);

#endif
