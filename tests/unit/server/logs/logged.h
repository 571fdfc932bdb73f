/*
 * What the code under test logs: standard error goes to a file from logged_begin() to logged_end().
 * Lines of all threads count.
 */
#ifndef SUNPROXY_TESTS_SERVER_LOGS_LOGGED_H
#define SUNPROXY_TESTS_SERVER_LOGS_LOGGED_H

#include <stdbool.h>

void logged_begin(void);
void logged_end(void);

/* Forgets what was logged. */
void logged_clear(void);

/* What was logged since, 64 KiB of it at most; static memory of the calling thread. */
const char *logged_text(void);

/* How often these words were logged. */
unsigned logged_times(const char *words);

#endif
