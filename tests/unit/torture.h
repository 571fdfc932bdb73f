/*
 * Torture: run a piece of code again and again, with the first, the second, the third ... of its
 * allocations failing, until it runs through with none failed. Programs named torture_*.c are
 * linked with malloc, calloc, realloc, aligned_alloc, strdup and strndup wrapped (calls from our
 * own code only; those inside shared libraries are not touched).
 */
#ifndef SUNPROXY_TESTS_TORTURE_H
#define SUNPROXY_TESTS_TORTURE_H

#include <stdbool.h>

/* From now on the n-th allocation (from 1) on this thread fails, once; 0: none does,
 * and torture_failed() still reports the last one. */
void torture_fail_at(unsigned n);

/* Did the failure asked for happen? */
bool torture_failed(void);

/*
 * Calls body(context) with n = 1, 2, 3, ... until an n is not reached; returns the number of seams
 * walked. The body checks for itself that whatever failed was answered and nothing was lost.
 */
unsigned torture_walk(void (*body)(void *context), void *context);

#endif
