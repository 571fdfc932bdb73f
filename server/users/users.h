/*
 * Checks of the users of the forward proxy: a name and a password are compared with the file of
 * --users (user_file.h), or sent to the helpers of --auth-helper. A check by the file is slow on
 * purpose, and one by a helper waits for another process. So both are the work of a thread of their
 * own, which starts with the first check.
 *
 * Cost: that thread computes for at most half of the time. Checks wait in a queue in which clients
 * take turns (base/fair_queue.h), USERS_MAX_QUEUED of them at most: when there are more, the last
 * one of the client with the most is answered that no check could be made. Answers are used again,
 * from a cache of a bounded size (user_cache.h).
 *
 * Secrecy: a name that the file does not have costs the same work as one that it has, by the method
 * of one of the file's users. A password stays in memory during its check only.
 *
 * Every function is safe on any thread.
 */
#ifndef SUNPROXY_SERVER_USERS_USERS_H
#define SUNPROXY_SERVER_USERS_USERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clients.h"
#include "base/shared.h"
#include "base/span.h"
#include "server/users/user_file.h"

#define USERS_MAX_QUEUED 1024u

struct users;

enum user_answer {
    USER_ACCEPTED,
    USER_REFUSED,
    USER_UNAVAILABLE, /* no check could be made: no helper, a full queue, the time is over */
    USER_PENDING,     /* done() is called */
};

/* The caller's memory, from users_check() until done() is called or users_cancel() has returned. */
struct user_check {
    /*
     * Called once if users_check() has returned USER_PENDING, with the answer set, on the thread of
     * the checks: it posts a task or the like, and calls no function of this header.
     */
    void (*done)(struct user_check *check);
    enum user_answer answer;
    int64_t until_us; /* until when the answer may be used again, by the monotonic clock */

    struct user_question *question; /* its own; NULL: none is pending */
};

/* What is asked. Name and password are copied, and references are taken. */
struct user_request {
    struct span name;
    struct span password;
    const struct user_file *file; /* NULL: the helpers are asked */
    struct shared *keeps;         /* what keeps the file alive: the configuration; or NULL */
    struct client *client; /* that takes its turn: of the connection, since no user is known */
};

struct users_config {
    int64_t timeout_us; /* of a check, its time in the queue included */
    int64_t ttl_us;     /* for which an accepted answer is used again */

    /* users_create() only */
    unsigned helpers;     /* 0: there are none */
    unsigned concurrency; /* as in helpers.h */
    int keeper;           /* of helper_keeper_start(); taken over */
};

/* A refused answer is used again for this time, or ttl_us if that is shorter. */
#define USERS_REFUSED_US ((int64_t)10 * 1000000)

struct users_stats {
    uint64_t accepted; /* checks that were made, by their answers */
    uint64_t refused;
    uint64_t unavailable;
    uint64_t cached;  /* answered from the cache */
    uint64_t pending; /* now */
    uint64_t helpers; /* that run */
    uint64_t helpers_restarted;
};

/* Starts no thread, unless there are helpers. NULL without memory. */
struct users *users_create(const struct users_config *config);

/* Ends the thread and frees all. No check may be pending. NULL is harmless. */
void users_destroy(struct users *users);

/* Other times, for all checks and answers from now on. */
void users_configure(struct users *users, const struct users_config *config);

/*
 * Checks a user: answers at once from the cache, or if there is nothing to be checked, such as a
 * name that no user can have or an empty password; otherwise USER_PENDING. check->done is set by
 * the caller, the other members by this. `now_us` is by the monotonic clock.
 */
enum user_answer users_check(struct users *users, const struct user_request *request,
                             int64_t now_us, struct user_check *check);

/*
 * Gives a check up, whether it is pending or not. Afterwards done() has returned, or is never
 * called. Not from done().
 */
void users_cancel(struct users *users, struct user_check *check);

void users_get_stats(struct users *users, struct users_stats *stats);

#endif
