/*
 * URLs whose last answer could not be shared: requests for them do not wait for each other, since
 * the wait would be for nothing. A mark is a hint and nothing follows from a wrong one but a wait
 * too much or a fetch too many, so marks are few, short-lived and kept by hash: a new one replaces
 * the oldest of its set, and two URLs of one hash share theirs.
 *
 * Every function is safe on any thread. The time is that of one monotonic clock.
 */
#ifndef SUNPROXY_FETCH_MARKS_H
#define SUNPROXY_FETCH_MARKS_H

#include <stdint.h>

#include "base/span.h"

#define MARKS_MAX 4096u
#define MARKS_LIFE_US ((int64_t)120 * 1000000)

struct marks;

/* NULL without memory. */
struct marks *marks_create(void);

/* NULL is harmless. */
void marks_destroy(struct marks *marks);

/* Marks a URL for MARKS_LIFE_US from `now_us` on, also one that is marked. */
void marks_set(struct marks *marks, struct span url, int64_t now_us);

/* Takes the mark of a URL away, if it has one. */
void marks_clear(struct marks *marks, struct span url);

/* Is the URL marked at that time? */
bool marks_has(struct marks *marks, struct span url, int64_t now_us);

#endif
