/*
 * What each test of a whole fetcher begins with: a policy that lets it go to loopback, and a
 * configuration with short time limits, which the test changes as it likes.
 */
#ifndef SUNPROXY_TESTS_FETCH_FIXTURE_H
#define SUNPROXY_TESTS_FETCH_FIXTURE_H

#include <string.h>

#include "tests/unit/fetch/names.h"
#include "tests/unit/fetch/outcome.h"
#include "tests/unit/fetch/scripted.h"
#include "tests/unit/unit.h"

extern struct address_policy *addresses;
extern struct fetch_config config;

/* For a case with more to set up; fixture_case() has them called. */
void fixture_set_up(void);
void fixture_tear_down(void);

/* A suite, and a case of it that begins and ends so. */
Suite *fixture_suite(const char *name, TCase **tc);

struct fetcher *start_fetcher(const struct fetch_config *with);

/* A policy that allows nothing private: the operator's own choices need no permission. */
void forbid_loopback(void);

#endif
