/*
 * Starting threads, and conditions. Signals are handled by the thread that the program made for
 * them, so every other one runs with all signals blocked.
 */
#ifndef SUNPROXY_BASE_THREAD_H
#define SUNPROXY_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

/*
 * Starts a thread with all signals blocked; the caller joins it. 0 or an error number, as of
 * pthread_create().
 */
static inline int
thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, run, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

/* A condition whose timed waits are by the monotonic clock. */
static inline void
thread_cond_init(pthread_cond_t *condition)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attr);
    pthread_condattr_destroy(&attr);
}

#endif
