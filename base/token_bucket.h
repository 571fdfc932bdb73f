/*
 * Token buckets: a bound on a rate that allows bursts. A bucket holds at most `burst` tokens and
 * gains `per_second` of them a second. Pure arithmetic: time is an argument, nothing is locked.
 *
 * A bucket may be in debt: what is known only afterwards, such as the length of an answer, is taken
 * all the same, and the bucket is empty until the debt is paid. Time that runs backwards adds no
 * token.
 */
#ifndef SUNPROXY_BASE_TOKEN_BUCKET_H
#define SUNPROXY_BASE_TOKEN_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

/* The largest rate and burst, in tokens: a bucket counts millionths in 63 bits. */
#define TOKEN_BUCKET_MOST ((uint64_t)1000000000000)

struct token_rate {
    uint64_t per_second; /* at most TOKEN_BUCKET_MOST; 0: not bounded, no bucket is needed */
    uint64_t burst;      /* from 1 to TOKEN_BUCKET_MOST */
};

struct token_bucket {
    int64_t level; /* millionths of a token, as of at_us; negative: debt */
    int64_t at_us;
};

/* A full bucket. In all functions `rate` is that of the bucket, and its per_second is not 0. */
void token_bucket_init(struct token_bucket *bucket, const struct token_rate *rate, int64_t now_us);

/*
 * Microseconds until the bucket has `count` tokens, 0 if it has them. `count` is at most the burst;
 * 0 asks when the debt is paid.
 */
int64_t token_bucket_wait_us(struct token_bucket *bucket, const struct token_rate *rate,
                             uint64_t count, int64_t now_us);

/* Takes tokens, if need be into debt. */
void token_bucket_spend(struct token_bucket *bucket, const struct token_rate *rate, uint64_t count,
                        int64_t now_us);

/* The rate changes: a level or debt stays, as far as the new burst has room; without a rate before,
 * the bucket is full. */
void token_bucket_change(struct token_bucket *bucket, const struct token_rate *from,
                         const struct token_rate *to, int64_t now_us);

/* Gives tokens back that were not used after all; what is over the burst is lost. */
void token_bucket_give_back(struct token_bucket *bucket, const struct token_rate *rate,
                            uint64_t count, int64_t now_us);

#endif
