/*
 * Which lines of a kind that remote parties can cause are logged: at most one in a minute about a
 * subject, and LOG_LIMIT_LINES in a minute about all of them. Of subjects that collide, the last
 * one is remembered.
 *
 * Safe on any thread.
 */
#ifndef SUNPROXY_SERVER_LOGS_LOG_LIMIT_H
#define SUNPROXY_SERVER_LOGS_LOG_LIMIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define LOG_LIMIT_US ((int64_t)60 * 1000000)
#define LOG_LIMIT_LINES 60u
#define LOG_LIMIT_SUBJECTS 256u

struct log_limit {
    pthread_mutex_t lock;
    /* protected by lock */
    int64_t since_us; /* when this minute began, by the monotonic clock */
    unsigned lines;   /* in it */
    struct log_limit_subject {
        uint64_t hash;
        int64_t logged_us; /* 0: never */
        uint64_t withheld; /* lines since then */
    } subjects[LOG_LIMIT_SUBJECTS];
};

void log_limit_init(struct log_limit *limit);
void log_limit_free(struct log_limit *limit);

/*
 * Is a line about the subject with this hash logged now? If it is, *withheld is the number of lines
 * about it that were not since the last one.
 */
bool log_limit_take(struct log_limit *limit, uint64_t hash, int64_t now_us, uint64_t *withheld);

/* A line about it is logged in any case: it counts as one for which log_limit_take() is true. */
void log_limit_note(struct log_limit *limit, uint64_t hash, int64_t now_us, uint64_t *withheld);

#endif
