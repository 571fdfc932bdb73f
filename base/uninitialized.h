/*
 * UNINITIALIZED: a variable of a function that -ftrivial-auto-var-init does not clear. For what is
 * large, on the path of a hit, and written before it is read.
 */
#ifndef SUNPROXY_BASE_UNINITIALIZED_H
#define SUNPROXY_BASE_UNINITIALIZED_H

#ifdef __has_attribute
#if __has_attribute(uninitialized)
#define UNINITIALIZED __attribute__((uninitialized))
#endif
#endif
#ifndef UNINITIALIZED
#define UNINITIALIZED
#endif

#endif
