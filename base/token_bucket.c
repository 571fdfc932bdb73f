#include "base/token_bucket.h"

/* Millionths of a token: a rate in tokens a second is the same number of them a microsecond. */
#define MILLION ((int64_t)1000000)

/* Enough for any debt that is ever paid, and far from an overflow. */
#define DEEPEST (INT64_MIN / 4)

static int64_t
top_of(const struct token_rate *rate)
{
    return (int64_t)rate->burst * MILLION;
}

/* Microseconds until the level has risen by `missing`, rounded up. */
static int64_t
time_for(const struct token_rate *rate, int64_t missing)
{
    int64_t speed = (int64_t)rate->per_second;

    return missing <= 0 ? 0 : (missing - 1) / speed + 1;
}

static void
refill(struct token_bucket *bucket, const struct token_rate *rate, int64_t now_us)
{
    int64_t elapsed_us = now_us - bucket->at_us;

    if (elapsed_us <= 0)
        return;
    if (elapsed_us >= time_for(rate, top_of(rate) - bucket->level))
        bucket->level = top_of(rate);
    else
        bucket->level += elapsed_us * (int64_t)rate->per_second;
    bucket->at_us = now_us;
}

void
token_bucket_init(struct token_bucket *bucket, const struct token_rate *rate, int64_t now_us)
{
    *bucket = (struct token_bucket){.level = top_of(rate), .at_us = now_us};
}

void
token_bucket_change(struct token_bucket *bucket, const struct token_rate *from,
                    const struct token_rate *to, int64_t now_us)
{
    if (!from->per_second) {
        token_bucket_init(bucket, to, now_us);
        return;
    }
    refill(bucket, from, now_us);
    if (bucket->level > top_of(to))
        bucket->level = top_of(to);
}

int64_t
token_bucket_wait_us(struct token_bucket *bucket, const struct token_rate *rate, uint64_t count,
                     int64_t now_us)
{
    refill(bucket, rate, now_us);
    return time_for(rate, (int64_t)count * MILLION - bucket->level);
}

void
token_bucket_spend(struct token_bucket *bucket, const struct token_rate *rate, uint64_t count,
                   int64_t now_us)
{
    int64_t cost = (int64_t)(count < TOKEN_BUCKET_MOST ? count : TOKEN_BUCKET_MOST) * MILLION;

    refill(bucket, rate, now_us);
    bucket->level = bucket->level < DEEPEST + cost ? DEEPEST : bucket->level - cost;
}

void
token_bucket_give_back(struct token_bucket *bucket, const struct token_rate *rate, uint64_t count,
                       int64_t now_us)
{
    int64_t value = (int64_t)(count < TOKEN_BUCKET_MOST ? count : TOKEN_BUCKET_MOST) * MILLION;

    refill(bucket, rate, now_us);
    if (value < top_of(rate) - bucket->level)
        bucket->level += value;
    else
        bucket->level = top_of(rate);
}
