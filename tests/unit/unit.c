#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clients.h"

#define EXIT_SKIPPED 77 /* as automake has it */
#define EXIT_USAGE 64   /* EX_USAGE */

void __wrap__mark_point(const char *file, int line);

/*
 * Check calls this for each assertion that holds, to report where a child crashed, and writes the
 * place by a system call. A crash ends these programs with a report of its own, and an assertion
 * that fails states its place by itself. Without these calls the tests under AddressSanitizer
 * take 84 s of CPU time, not 246: one program wrote 2.5 million places.
 */
void
__wrap__mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

void
unit_skip(const char *format, ...)
{
    va_list args;

    fputs("SKIP: ", stdout);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    exit(EXIT_SKIPPED);
}

const char *
unit_dataset(const char *name)
{
    static char path[4096];
    const char *folder = getenv("SUNPROXY_DATASETS");

    snprintf(path, sizeof(path), "%s/%s", folder ? folder : "../shared/datasets", name);
    if (access(path, R_OK) != 0)
        unit_skip("%s is not here", path);
    return path;
}

static struct client clients[UNIT_CLIENTS];

__attribute__((constructor)) static void
make_clients(void)
{
    for (uint32_t uid = 0; uid < UNIT_CLIENTS; uid++) {
        uint32_t number = htonl(uid);

        clients[uid].key.kind = CLIENT_UID;
        memcpy(clients[uid].key.bytes, &number, sizeof(number));
        clients[uid].references = 1;
    }
}

struct client *
unit_client(unsigned uid)
{
    ck_assert_uint_lt(uid, UNIT_CLIENTS);
    return &clients[uid];
}

bool
unit_clients_are_idle(void)
{
    bool idle = true;

    for (unsigned uid = 0; uid < UNIT_CLIENTS; uid++) {
        const struct client *client = &clients[uid];

        idle = idle && client->references == 1 && client->connections == 0 && client->bodies == 0;
        for (unsigned i = 0; i < CLIENT_SHARED; i++)
            idle = idle && client->has[i] == 0;
    }
    return idle;
}

unsigned
unit_open_descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

void
unit_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static struct unit *units;

void
unit_register(struct unit *unit)
{
    unit->next = units;
    units = unit;
}

static const struct unit *
find_unit(const char *name)
{
    const struct unit *unit = units;

    while (unit && strcmp(unit->name, name) != 0)
        unit = unit->next;
    return unit;
}

static bool starts_no_thread;

/* Stands before the C library's function, and shows that a file that starts no thread starts none.
 */
int
pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
               void *(*start)(void *), void *restrict context)
{
    static int (*next)(pthread_t *restrict, const pthread_attr_t *restrict, void *(*)(void *),
                       void *restrict);

    if (starts_no_thread) {
        fputs("A test starts a thread. Its file defines UNIT_STARTS_NO_THREAD.\n", stderr);
        abort();
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attributes, start, context);
}

int
main(int argc, char *argv[])
{
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const struct unit *unit = find_unit(slash ? slash + 1 : argc > 0 ? argv[0] : "");
    SRunner *runner;
    int failed;

    if (!unit) {
        fputs("The program is called by the name of a suite:\n", stderr);
        for (unit = units; unit; unit = unit->next)
            fprintf(stderr, "    %s\n", unit->name);
        return EXIT_USAGE;
    }
    starts_no_thread = unit->starts_no_thread;
    runner = srunner_create(unit->suite());
    if (!getenv("CK_FORK"))
        srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
