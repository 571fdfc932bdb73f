/*
 * A model of a memcached server, as far as the tier uses one, on a thread and a port of its own;
 * and what it can do wrong.
 */
#ifndef SUNPROXY_TESTS_TIER_MODEL_H
#define SUNPROXY_TESTS_TIER_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum model_fault {
    MODEL_WORKS,
    MODEL_SILENT,     /* takes commands, and does not answer */
    MODEL_IS_STOPPED, /* takes them when it goes on */
    MODEL_CLOSES,     /* closes the connection instead of an answer, */
    MODEL_CUTS,       /* or within it */
    MODEL_GARBAGE,    /* sends what is no reply, */
    MODEL_STRANGE,    /* or one of another request */
    MODEL_IS_FULL,    /* stores nothing */
    MODEL_CORRUPTS,   /* changes a bit of each value */
    MODEL_ROLLS_BACK, /* gives the values that were stored first */
    MODEL_IS_APART,   /* its clock is a minute ahead */
    MODEL_TELLS_LATE, /* pauses before it tells its time, which is that of before the pause */
    MODEL_IS_SLOW,    /* pauses before it gives pages, and before it answers the probe */
    MODEL_IS_OLD,     /* knows no meta commands */
    MODEL_PROMISES,   /* says of each page that another daemon fetches it */
};

struct model_item {
    char key[40];
    char *value, *first; /* owned; the first one that was stored */
    uint32_t len, first_len;
    uint64_t cas;
    bool is_stale, is_leased;
};

#define MODEL_CONNECTIONS 8u

struct model_connection {
    int fd;     /* -1: none */
    char *text; /* owned: what has come */
    size_t len;
};

struct model {
    struct model_connection connections[MODEL_CONNECTIONS]; /* the thread's */
    int listener;
    unsigned port;
    pthread_t thread;
    _Atomic bool stops;
    _Atomic enum model_fault fault;
    _Atomic unsigned sets, gets, probes;
    _Atomic unsigned pages;     /* commands that ask for a page, whatever comes of them */
    _Atomic unsigned leases;    /* that were given */
    _Atomic unsigned conflicts; /* values not stored, since another one was there */
    _Atomic unsigned pause_ms;  /* of MODEL_IS_SLOW and MODEL_TELLS_LATE */
    _Atomic unsigned age_s;     /* of leases, as the server says */
    pthread_mutex_t lock;
    struct model_item items[64]; /* protected by lock */
    unsigned count;
    uint64_t cas;
};

void model_start(struct model *model);
void model_stop(struct model *model);

/* Forgets all values, */
void model_flush(struct model *model);

/* or one, if it is there. Under the lock. */
void model_drop(struct model *model, const char *key);

#endif
