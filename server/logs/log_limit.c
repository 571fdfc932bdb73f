#include "server/logs/log_limit.h"

void
log_limit_init(struct log_limit *limit)
{
    *limit = (struct log_limit){0};
    pthread_mutex_init(&limit->lock, NULL);
}

void
log_limit_free(struct log_limit *limit)
{
    pthread_mutex_destroy(&limit->lock);
}

static bool
may_log(struct log_limit *limit, const struct log_limit_subject *subject, int64_t now_us)
{
    if (limit->lines && now_us - limit->since_us >= LOG_LIMIT_US)
        limit->lines = 0;
    if (subject->logged_us && now_us - subject->logged_us < LOG_LIMIT_US)
        return false;
    return limit->lines < LOG_LIMIT_LINES;
}

/* Locks the limit. */
static struct log_limit_subject *
lock_subject(struct log_limit *limit, uint64_t hash)
{
    struct log_limit_subject *subject = &limit->subjects[hash % LOG_LIMIT_SUBJECTS];

    pthread_mutex_lock(&limit->lock);
    if (subject->hash != hash)
        *subject = (struct log_limit_subject){.hash = hash};
    return subject;
}

static void
count_line(struct log_limit *limit, struct log_limit_subject *subject, int64_t now_us,
           uint64_t *withheld)
{
    *withheld = subject->withheld;
    subject->withheld = 0;
    subject->logged_us = now_us;
    if (limit->lines++ == 0)
        limit->since_us = now_us;
}

bool
log_limit_take(struct log_limit *limit, uint64_t hash, int64_t now_us, uint64_t *withheld)
{
    struct log_limit_subject *subject = lock_subject(limit, hash);
    const bool may = may_log(limit, subject, now_us);

    if (may)
        count_line(limit, subject, now_us, withheld);
    else
        subject->withheld++;
    pthread_mutex_unlock(&limit->lock);
    return may;
}

void
log_limit_note(struct log_limit *limit, uint64_t hash, int64_t now_us, uint64_t *withheld)
{
    struct log_limit_subject *subject = lock_subject(limit, hash);

    (void)may_log(limit, subject, now_us); /* begins a minute, perhaps */
    count_line(limit, subject, now_us, withheld);
    pthread_mutex_unlock(&limit->lock);
}
