/* Scenes of tests in which writes invalidate what is stored, by rules and by tags. */
#ifndef SUNPROXY_TESTS_PROXY_WRITES_H
#define SUNPROXY_TESTS_PROXY_WRITES_H

#include "tests/unit/proxy/scene.h"

#define HOST "http://origin.test"
#define OTHER "http://other.test"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=1000\r\n"

/* Begins a scene with a rule that tags paths with their first segments, and one for writes. */
void writes_scene(void);

/* Stores a response to HTTP of 20 bytes with these field lines. */
void store_http(const char *url, const char *lines);

/* The same while a write to the URL is under way. */
void store_beside(const char *url, const char *lines);

/* Is the object of the URL in the cache, and fresh over HTTP? */
bool has_http(const char *url);

/* Begins a PUT, by the owner of several origins or not; write_to() also has it answered. */
void begin_write(struct visit *visit, const char *url, bool owned);
void write_to(const char *url, bool owned, unsigned status, const char *lines);

#endif
