/*
 * What every unit test shares: its file defines unit_suite(), and unit.c has main(). The files of a
 * folder are one program, which runs the suite of the file by whose name it is called. Run one test
 * case with CK_RUN_CASE=name. CK_FORK=no (the default here) is what the sanitizers need.
 */
#ifndef SUNPROXY_TESTS_UNIT_H
#define SUNPROXY_TESTS_UNIT_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/* A test file's suite, and the file's name without .c. */
struct unit {
    const char *name;
    Suite *(*suite)(void);
    bool starts_no_thread;
    struct unit *next;
};

/* Makes a suite known to main(). The unit must last. */
void unit_register(struct unit *unit);

/*
 * A file whose tests start no thread defines UNIT_STARTS_NO_THREAD before this is included: it is
 * not run under ThreadSanitizer, and fails where it starts one.
 */
#ifdef UNIT_STARTS_NO_THREAD
enum { UNIT_THREADLESS = true };
#else
enum { UNIT_THREADLESS = false };
#endif

/* The Makefile defines UNIT_NAME for test files, each of which defines this function. */
#ifdef UNIT_NAME
static Suite *unit_suite(void);

__attribute__((constructor)) static void
register_this(void)
{
    static struct unit unit = {UNIT_NAME, unit_suite, UNIT_THREADLESS, NULL};

    unit_register(&unit);
}
#endif

/* Ends the program as skipped, with a word on stdout that names what is missing. */
_Noreturn void unit_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * A file of the real data sets: $SUNPROXY_DATASETS/name, or ../shared/datasets/name beside the
 * project. Skips the program if it is not there. The result is static memory.
 */
const char *unit_dataset(const char *name);

/* The number of descriptors that the process has open, and a few that are always the same. */
unsigned unit_open_descriptors(void);

/*
 * The client of this uid, below UNIT_CLIENTS, in no table: static memory, whose last reference is
 * not released.
 */
enum { UNIT_CLIENTS = 1024 };
struct client *unit_client(unsigned uid);

/* Has nothing been left with any of them? */
bool unit_clients_are_idle(void);

/*
 * Sleeps for 0.1 ms, in a loop that waits for what another thread does. Where that thread waits for
 * a disk, sched_yield() returns at once, and the loop takes the time of a processor.
 */
void unit_pause(void);

/*
 * A number from 0 to before `below`, drawn from a state that may begin as any number (Knuth's
 * linear congruential generator, The Art of Computer Programming, 3.3.4). The same state draws the
 * same.
 */
static inline uint32_t
unit_draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % below;
}

#endif
