#include "policies/policy.h"

#include <ctype.h>

#include "base/nearest.h"

/*
 * A row for each policy, in the order of listings: NAME for the policy_NAME of policies/NAME.c.
 * docs/POLICIES.md says how to add one.
 */
/* clang-format off */
#define POLICIES(row) \
    row(lru)          \
    row(lfu)          \
    row(fifo)         \
    row(rand)         \
    row(maxs)         \
    row(mru)          \
    row(clock)        \
    row(sieve)        \
    row(slru)         \
    row(two_q)        \
    row(lru_k)        \
    row(s3_fifo)      \
    row(arc)          \
    row(lecar)        \
    row(gdsf)         \
    row(gds)          \
    row(lfuda)        \
    row(hyperbolic)   \
    row(lhd)          \
    row(tinylfu)      \
    row(w_tinylfu)    \
    row(lirs)         \
    row(clock_pro)    \
    row(opt)
/* clang-format on */

#define DECLARE(name) extern const struct policy_ops policy_##name;
#define ADDRESS(name) &policy_##name,

POLICIES(DECLARE)

const struct policy_ops *const policies[] = {POLICIES(ADDRESS) NULL};

/* The same name, but for case and hyphens? */
static bool
names_equal(const char *a, const char *b)
{
    for (;;) {
        while (*a == '-')
            a++;
        while (*b == '-')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

const struct policy_ops *
policy_find(const char *name)
{
    for (size_t i = 0; policies[i]; i++) {
        const char *const *alias = policies[i]->aliases;

        if (names_equal(policies[i]->name, name))
            return policies[i];
        for (; alias && *alias; alias++) {
            if (names_equal(*alias, name))
                return policies[i];
        }
    }
    return NULL;
}

const struct policy_ops *
policy_nearest(const char *name)
{
    struct nearest nearest = NEAREST_TO(name);

    for (size_t i = 0; policies[i]; i++) {
        const char *const *alias = policies[i]->aliases;

        nearest_offer(&nearest, policies[i]->name);
        for (; alias && *alias; alias++)
            nearest_offer(&nearest, *alias);
    }
    return nearest_is_near(&nearest) ? policy_find(nearest.best) : NULL;
}
