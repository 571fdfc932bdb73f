#include "policies/policy.h"

#include <strings.h>

/* One row a policy, NAME for the policy_NAME that policies/NAME.c defines. */
#define POLICIES(row) \
    row(lru) row(lfu) row(fifo) row(rand) row(maxs) row(gdsf) row(gds) row(lfuda) row(opt)

#define DECLARE(name) extern const struct policy_ops policy_##name;
#define ADDRESS(name) &policy_##name,

POLICIES(DECLARE)

const struct policy_ops *const policies[] = {POLICIES(ADDRESS) NULL};

const struct policy_ops *
policy_find(const char *name)
{
    for (size_t i = 0; policies[i]; i++) {
        if (strcasecmp(policies[i]->name, name) == 0)
            return policies[i];
    }
    return NULL;
}
