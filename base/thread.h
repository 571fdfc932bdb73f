/*
 * Starting threads. Signals are handled by the thread that the program made for them, so every
 * other one runs with all signals blocked.
 */
#ifndef SUNPROXY_BASE_THREAD_H
#define SUNPROXY_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>

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

#endif
