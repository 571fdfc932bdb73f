#include "server/limits/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/load.h"

#define LARGEST_FILE 65536u

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The path of the group below the root, without a slash at its end; "" for the root. */
static bool
read_path(const char *membership, char *path, size_t size)
{
    struct buf content;
    bool found = false;

    buf_init(&content, LARGEST_FILE);
    if (load_file(membership, &content) == 0)
        for (const char *line = buf_str(&content); line && !found; line = strchr(line, '\n')) {
            line += *line == '\n';
            found = strncmp(line, "0::/", 4) == 0;
            if (found)
                snprintf(path, size, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
        }
    buf_free(&content);
    /* One outside of what this process sees: only the root is left to look at. */
    if (found && (strncmp(path, "/..", 3) == 0 || path[strlen(path) - 1] == '/'))
        path[0] = '\0';
    return found;
}

/* Up to two numbers of a file of the group; "max" and what is missing is UINT64_MAX. */
static void
read_numbers(const char *root, const char *path, const char *name, uint64_t numbers[2])
{
    char file[PATH_MAX];
    struct buf content;

    numbers[0] = numbers[1] = UINT64_MAX;
    buf_init(&content, LARGEST_FILE);
    snprintf(file, sizeof(file), "%s%s/%s", root, path, name);
    if (load_file(file, &content) == 0) {
        char *rest = NULL;
        unsigned long long number = strtoull(buf_str(&content), &rest, 10);

        if (rest != buf_str(&content)) {
            numbers[0] = number;
            numbers[1] = strtoull(rest, NULL, 10);
        }
    }
    buf_free(&content);
}

struct cgroup_limits
cgroup_limits_read(const char *membership, const char *root)
{
    struct cgroup_limits limits = {.memory = UINT64_MAX};
    char path[PATH_MAX / 2] = "";
    bool more = read_path(membership, path, sizeof(path));

    while (more) {
        uint64_t numbers[2]; /* of memory.max; of cpu.max quota and period in microseconds */
        char *last = strrchr(path, '/');

        read_numbers(root, path, "memory.max", numbers);
        limits.memory = least(limits.memory, numbers[0]);
        read_numbers(root, path, "cpu.max", numbers);
        if (numbers[0] != UINT64_MAX && numbers[0] > 0 && numbers[1] > 0) {
            uint64_t processors = (numbers[0] - 1) / numbers[1] + 1;

            limits.processors =
                (unsigned)least(processors, limits.processors ? limits.processors : UINT_MAX);
        }
        more = last != NULL;
        if (last)
            *last = '\0';
    }
    return limits;
}

bool
cgroup_fit_memory(uint64_t memory, uint64_t *capacity, uint64_t *transit)
{
    const uint64_t wanted = *capacity, wanted_transit = *transit;
    uint64_t rest = memory > CGROUP_BASE ? memory - CGROUP_BASE : 0;

    if (wanted <= rest && wanted_transit <= rest - wanted)
        return false;
    *transit = least(wanted_transit, rest - least(wanted, rest / 2));
    if (*transit < CGROUP_LEAST_TRANSIT)
        *transit = CGROUP_LEAST_TRANSIT;
    rest -= least(rest, *transit);
    /* A cache that is not bounded in bytes stays so, and none has no bytes. */
    if (wanted)
        *capacity = least(wanted, rest ? rest : 1);
    return *capacity != wanted || *transit != wanted_transit;
}
