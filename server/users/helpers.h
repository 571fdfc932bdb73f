/*
 * Helpers: processes that know users, such as Squid's basic_ldap_auth, in the protocol of Squid's
 * basic authenticators. A question is a line "USER PASSWORD", both percent-encoded (RFC 1738), with
 * the number of a channel before it if a helper takes several at once. The answer is a line that
 * begins with the same number, and then has "OK", "ERR", or "BH" if it cannot tell, whose reason is
 * logged. Squid refuses a user after "BH", too, and has to: basic_ldap_auth of Squid 5 answers so
 * where a password is wrong.
 *
 * A helper that ends, answers something else, answers what it was not asked, or does not answer a
 * question in time, is replaced by a new process after a pause, which grows while that goes on.
 * Without numbers of channels an answer too many is taken for that of the next question, if that
 * has been asked by then.
 *
 * For one thread at a time, but for helpers_get_stats().
 */
#ifndef SUNPROXY_SERVER_USERS_HELPERS_H
#define SUNPROXY_SERVER_USERS_HELPERS_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "server/users/helper_keeper.h"
#include "server/users/users.h"

#define HELPERS_CONCURRENCY_MAX 64u
#define HELPERS_FDS (HELPERS_MAX + 1u)

struct helpers;
struct helper;

/* A question to a helper: the caller's memory until it is answered or given up. Zero at first. */
struct helper_job {
    struct helper *helper; /* NULL: it is with none */
    unsigned channel;
};

enum helper_answer {
    HELPER_ACCEPTED,
    HELPER_REFUSED,
    HELPER_CANNOT_TELL, /* the user is refused, for this time */
    HELPER_ENDED        /* before it has answered: another one may be asked */
};

struct helpers_config {
    int keeper;           /* of helper_keeper_start(); the helpers' from then on */
    unsigned count;       /* 1 to HELPERS_MAX */
    unsigned concurrency; /* 0: no channels; at most HELPERS_CONCURRENCY_MAX */

    /* A question is answered. Called by helpers_work(); not to call a function of this header. */
    void (*answered)(void *context, struct helper_job *job, enum helper_answer answer);
    void *context;
};

struct helpers_stats {
    uint64_t running;
    uint64_t restarted;
};

/* NULL without memory; the keeper is not taken then. */
struct helpers *helpers_create(const struct helpers_config *config);

/* Closes the connections, with which the helpers end. NULL is harmless. */
void helpers_destroy(struct helpers *helpers);

/* How many questions all helpers take at once, when all run. */
unsigned helpers_capacity(const struct helpers *helpers);

/* Does a helper take a question now? */
bool helpers_are_free(struct helpers *helpers);

/* Asks one, after helpers_are_free(). The texts are strings, of the lengths that users.h has. */
void helpers_ask(struct helpers *helpers, struct helper_job *job, const char *name,
                 const char *password, int64_t now_us);

/* The question is not answered any more; its helper goes on with it. Harmless without one. */
void helpers_give_up(struct helper_job *job);

/* What to wait for, into HELPERS_FDS places; returns their number. */
unsigned helpers_get_fds(const struct helpers *helpers, struct pollfd *fds);

/* Until when there is nothing to do without an event; INT64_MAX: for ever. */
int64_t helpers_next_us(const struct helpers *helpers, int64_t timeout_us);

/* Reads, writes, replaces and starts helpers, by what helpers_get_fds() got from poll(). A helper
 * has `timeout_us` for a question. */
void helpers_work(struct helpers *helpers, const struct pollfd *fds, int64_t timeout_us,
                  int64_t now_us);

/* Safe on any thread. */
void helpers_get_stats(const struct helpers *helpers, struct helpers_stats *stats);

#endif
