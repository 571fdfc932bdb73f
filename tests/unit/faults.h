/*
 * Faults: run a piece of code again and again, with the first, the second, the third ... of its
 * calls of the operating system failing, until it runs through with none failed. Programs named
 * faults_*.c are linked with the calls of FAULT_WRAPS (Makefile) wrapped: those from our own code
 * only.
 *
 * What torture.h does for allocations.
 */
#ifndef SUNPROXY_TESTS_FAULTS_H
#define SUNPROXY_TESTS_FAULTS_H

#include <stdbool.h>

/* From now on the n-th call (from 1) on this thread fails with this errno, once; 0: none does,
 * and faults_failed() still names the last that did. */
void faults_fail_at(unsigned n, int error);

/* Calls of this name on this thread neither fail nor count; NULL: all do. Static memory. */
void faults_spare(const char *name);

/* Each call of this name on this thread fails with EAGAIN, and does not count; NULL: none does.
 * Static memory. */
void faults_refuse(const char *name);

/* For wrapped calls outside of faults.c: true, with errno set, if this one is to fail. */
bool faults_now(const char *name);

/* The name of the call that failed, or NULL if none did yet. */
const char *faults_failed(void);

/*
 * Calls body(context) with n = 1, 2, 3, ... until an n is not reached; returns the number of calls
 * walked. The body checks for itself that the failure was answered and nothing was lost.
 */
unsigned faults_walk(void (*body)(void *context), void *context, int error);

#endif
