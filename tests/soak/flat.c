#include "tests/soak/flat.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool
flat_measure(pid_t pid, struct flat_point *point)
{
    char path[64], line[256];
    const struct dirent *entry;
    FILE *status;
    DIR *folder;

    snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
    status = fopen(path, "re");
    if (!status)
        return false;
    while (fgets(line, sizeof(line), status)) {
        uint64_t n;

        if (sscanf(line, "VmRSS: %" SCNu64, &n) == 1)
            point->resident = n * 1024;
        else if (sscanf(line, "RssAnon: %" SCNu64, &n) == 1)
            point->own = n * 1024;
        else if (sscanf(line, "VmData: %" SCNu64, &n) == 1)
            point->data = n * 1024;
        else if (sscanf(line, "Threads: %" SCNu64, &n) == 1)
            point->threads = (unsigned)n;
    }
    fclose(status);
    snprintf(path, sizeof(path), "/proc/%ld/fd", (long)pid);
    folder = opendir(path);
    if (!folder)
        return false;
    point->descriptors = 0;
    while ((entry = readdir(folder)) != NULL)
        point->descriptors += entry->d_name[0] != '.';
    closedir(folder);
    return true;
}

static bool
check_memory(const struct flat_point *points, unsigned count, struct buf *why)
{
    uint64_t least = UINT64_MAX, most = 0, allowed;

    for (unsigned i = count / 2; i < count; i++) {
        least = points[i].resident < least ? points[i].resident : least;
        most = points[i].resident > most ? points[i].resident : most;
    }
    allowed = least + least / 100 * FLAT_PERCENT + FLAT_BYTES;
    if (most <= allowed)
        return true;
    buf_printf(why,
               "memory is not flat: from %" PRIu64 " to %" PRIu64
               " KiB resident over the last half of the points, %" PRIu64 " KiB are allowed\n",
               least >> 10, most >> 10, allowed >> 10);
    return false;
}

static bool
check_counts(const struct flat_point *points, unsigned count, struct buf *why)
{
    bool flat = true;

    for (unsigned i = 1; i < count; i++) {
        if (points[i].descriptors != points[0].descriptors) {
            buf_printf(why, "descriptors are not flat: %u at point 1, %u at point %u\n",
                       points[0].descriptors, points[i].descriptors, i + 1);
            flat = false;
        }
        if (points[i].threads != points[0].threads) {
            buf_printf(why, "threads are not flat: %u at point 1, %u at point %u\n",
                       points[0].threads, points[i].threads, i + 1);
            flat = false;
        }
    }
    return flat;
}

bool
flat_check(const struct flat_point *points, unsigned count, struct buf *why)
{
    bool flat = count > 0 && check_memory(points, count, why);

    return check_counts(points, count, why) && flat;
}

bool
flat_check_rare(const struct flat_point *points, unsigned count, struct buf *why)
{
    bool flat = count >= 5;

    if (flat) {
        uint64_t from = points[1].own > points[2].own ? points[1].own : points[2].own;
        uint64_t to = points[count - 1].own < points[count - 2].own ? points[count - 1].own
                                                                    : points[count - 2].own;

        flat = to <= from + FLAT_RARE_BYTES;
        if (!flat)
            buf_printf(why,
                       "memory is not flat with rare rows: from %" PRIu64 " to %" PRIu64
                       " KiB of its own, %" PRIu64 " KiB more are allowed\n",
                       from >> 10, to >> 10, FLAT_RARE_BYTES >> 10);
    }
    return check_counts(points, count, why) && flat;
}
