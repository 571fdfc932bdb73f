/*
 * Where administrators' calls wait for a reload: workers leave them, and the main thread takes
 * them, reloads, and answers each on its worker.
 */
#ifndef SUNPROXY_SERVER_CONFIG_RELOAD_DESK_H
#define SUNPROXY_SERVER_CONFIG_RELOAD_DESK_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "net/worker.h"

/* A call; the memory is the worker's. */
struct reload_call {
    TAILQ_ENTRY(reload_call) link;
    struct net_worker *worker;
    struct net_task task; /* runs when the call is answered; set by the worker */
    bool done;            /* then: the configuration is in force */
    char *text;           /* then: owned by the worker; NULL without memory */
};

TAILQ_HEAD(reload_calls, reload_call);

struct reload_desk {
    pthread_mutex_t lock;
    pthread_t main; /* its thread is sent SIGHUP for each call */
    /* protected by lock */
    bool open;
    struct reload_calls calls;
};

/* A desk that is closed. */
void reload_desk_init(struct reload_desk *desk);

/* From now on this thread takes calls, at each SIGHUP. */
void reload_desk_open(struct reload_desk *desk);

/* Leaves a call. False, and it is not taken: the desk is closed. [any thread] */
bool reload_desk_leave(struct reload_desk *desk, struct reload_call *call);

/* Takes the calls that wait now. */
void reload_desk_take(struct reload_desk *desk, struct reload_calls *calls);

/* Answers these calls. */
void reload_desk_answer(struct reload_calls *calls, bool done, const char *text);

/* Closes it: the calls that wait are answered with this text. Harmless for one that is closed. */
void reload_desk_close(struct reload_desk *desk, const char *text);

#endif
