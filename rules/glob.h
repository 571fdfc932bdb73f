/*
 * Patterns of rules: "*" is any bytes, also none; everything else is itself. Pure.
 */
#ifndef SUNPROXY_RULES_GLOB_H
#define SUNPROXY_RULES_GLOB_H

#include "base/span.h"

/* Takes time of at most the product of both lengths. */
bool glob_matches(struct span pattern, struct span text);

/* The same without regard to the case of ASCII letters. */
bool glob_matches_any_case(struct span pattern, struct span text);

/* What is before the first star, or behind the last one; all of a pattern without one. */
struct span glob_prefix(struct span pattern);
struct span glob_suffix(struct span pattern);

#endif
