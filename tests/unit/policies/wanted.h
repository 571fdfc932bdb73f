/*
 * Tests of one policy: with SUNPROXY_POLICY=NAME the tests that go through policies skip the
 * others. `make check-policy POLICY=NAME` sets it.
 */
#ifndef SUNPROXY_TESTS_POLICIES_WANTED_H
#define SUNPROXY_TESTS_POLICIES_WANTED_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WANTED_VARIABLE "SUNPROXY_POLICY"

/* `text` is a policy with parameters or without. */
static inline bool
policy_is_wanted(const char *text)
{
    const char *wanted = getenv(WANTED_VARIABLE);

    return !wanted ||
           (strlen(wanted) == strcspn(text, ":") && strncmp(text, wanted, strlen(wanted)) == 0);
}

/* A model is compared with that policy: a line that tests/check_policy.sh looks for. */
static inline void
policy_has_model(const char *text)
{
    if (!getenv(WANTED_VARIABLE))
        return;
    printf("model: %s\n", text);
    fflush(stdout);
}

#endif
