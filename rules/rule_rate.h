/*
 * The rate of a rule, which all threads share without a lock: the generic cell rate algorithm (ITU
 * T I.371, annex A), whose state is the time at which the bucket would be full again. Private to
 * rules/.
 */
#ifndef SUNPROXY_RULES_RULE_RATE_H
#define SUNPROXY_RULES_RULE_RATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Takes a token at this time of the monotonic clock; false if there is none. `even_ns` is the
 * state, at first 0; at most `burst` tokens are taken at once, and `per_second` of them in the
 * long run.
 */
static inline bool
rate_take(_Atomic int64_t *even_ns, int64_t per_second, int64_t burst, int64_t now_us)
{
    const int64_t each_ns = INT64_C(1000000000) / per_second, now_ns = now_us * 1000;
    int64_t even = atomic_load_explicit(even_ns, memory_order_relaxed), next;

    do {
        next = (even > now_ns ? even : now_ns) + each_ns;
        if (next - now_ns > burst * each_ns)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(even_ns, &even, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

/* Is there one, that is not taken? */
static inline bool
rate_has(_Atomic int64_t *even_ns, int64_t per_second, int64_t burst, int64_t now_us)
{
    const int64_t each_ns = INT64_C(1000000000) / per_second, now_ns = now_us * 1000;
    const int64_t even = atomic_load_explicit(even_ns, memory_order_relaxed);

    return (even > now_ns ? even : now_ns) + each_ns - now_ns <= burst * each_ns;
}

#endif
