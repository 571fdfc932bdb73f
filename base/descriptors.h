/*
 * File descriptors kept for what matters most: when the process comes near RLIMIT_NOFILE, what can
 * wait has to do without one. The kernel hands out the lowest free number, so a new descriptor's
 * number says how many are in use.
 */
#ifndef SUNPROXY_BASE_DESCRIPTORS_H
#define SUNPROXY_BASE_DESCRIPTORS_H

#include <stdbool.h>

/*
 * Is a descriptor that was just opened among the last `reserve` numbers below the soft limit? The
 * limit is read each time, since it may be changed from outside (prlimit(1)). Any thread.
 */
bool descriptors_is_reserved(int fd, unsigned reserve);

#endif
