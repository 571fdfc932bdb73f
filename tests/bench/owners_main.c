/*
 * owners: the owners of URLs among peers, by rendezvous hashing as the daemon finds them
 * (origins/origin_peers.h) and by ketama, a ring with POINTS points for each peer: how evenly URLs
 * are divided, how many of the others' change their owner when one peer goes, and the time of a
 * look-up.
 * SCALE.md, "The owner of a URL", has
 * the table.
 *
 * owners [PEERS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/hash.h"
#include "origins/origin_peers.h"

#define URLS 1000000u
#define POINTS 160u /* as clients of memcached have, for each server */
#define NOW_US ((int64_t)1000000000)

struct point {
    uint64_t place;
    unsigned peer;
};

static struct origin_route route;
static struct origin_server servers[ORIGIN_ROUTE_MEMBERS];
static char names[ORIGIN_ROUTE_MEMBERS][32];
static struct origin_peers peers = {.route = &route};
static struct point ring[ORIGIN_ROUTE_MEMBERS * POINTS];
static size_t ring_size;

static void
make_peers(unsigned count)
{
    route.balance = ORIGIN_BALANCE_HASH;
    route.count = count;
    for (unsigned i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "http://10.0.0.%u:3128", i + 1);
        route.members[i].url = span_str(names[i]);
        route.members[i].server = &servers[i];
    }
}

static int
compare_points(const void *a, const void *b)
{
    const uint64_t left = ((const struct point *)a)->place, right = ((const struct point *)b)->place;

    return left < right ? -1 : left > right;
}

static void
make_ring(unsigned count)
{
    ring_size = 0;
    for (unsigned i = 0; i < count; i++)
        for (unsigned n = 0; n < POINTS; n++)
            ring[ring_size++] =
                (struct point){hash64_uint(hash64_bytes(span_str(names[i])) + n), i};
    qsort(ring, ring_size, sizeof(*ring), compare_points);
}

/* The first point behind the key. */
static unsigned
find_on_ring(struct span url)
{
    const uint64_t key = hash64_bytes(url);
    size_t low = 0, high = ring_size;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (ring[middle].place < key)
            low = middle + 1;
        else
            high = middle;
    }
    return ring[low < ring_size ? low : 0].peer;
}

static unsigned
find_by_score(struct span url)
{
    return origin_peers_owner(&peers, url, NOW_US);
}

static void
own_all(unsigned (*find)(struct span url), unsigned char *owners)
{
    char url[64];

    for (unsigned i = 0; i < URLS; i++) {
        const int len = snprintf(url, sizeof(url), "http://example.com/page/%u", i);

        owners[i] = (unsigned char)find(span_of(url, (size_t)len));
    }
}

/* Nanoseconds for a look-up, without the writing of the URL. */
static double
time_one(unsigned (*find)(struct span url))
{
    static const char url[] = "http://example.com/page/123456";
    volatile unsigned sum = 0;
    int64_t begun_us = clock_monotonic_us(), took_us;

    for (unsigned i = 0; i < URLS; i++)
        sum += find(span_of(url, sizeof(url) - 1 - (i & 1)));
    took_us = clock_monotonic_us() - begun_us;
    (void)sum; /* clang warns of what is never read */
    return (double)took_us * 1e3 / URLS;
}

static void
report(const char *name, unsigned count, const unsigned char *before, const unsigned char *after,
       size_t bytes, double ns)
{
    unsigned owned[ORIGIN_ROUTE_MEMBERS] = {0}, most = 0, least = URLS, moved = 0;

    for (unsigned i = 0; i < URLS; i++) {
        owned[before[i]]++;
        moved += before[i] != after[i] && before[i] != count - 1;
    }
    for (unsigned i = 0; i < count; i++) {
        most = owned[i] > most ? owned[i] : most;
        least = owned[i] < least ? owned[i] : least;
    }
    printf("%-11s most / mean %.3f, least / mean %.3f; moved without need %.3f %%; %zu bytes; "
           "%.0f ns\n",
           name, (double)most * count / URLS, (double)least * count / URLS, 100.0 * moved / URLS,
           bytes, ns);
}

int
main(int argc, char **argv)
{
    static unsigned char before[URLS], after[URLS];
    const unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : ORIGIN_ROUTE_MEMBERS;
    double ns;

    if (count < 2 || count > ORIGIN_ROUTE_MEMBERS) {
        fprintf(stderr, "usage: owners [PEERS], 2 to %u\n", ORIGIN_ROUTE_MEMBERS);
        return EX_USAGE;
    }
    make_peers(count);
    own_all(find_by_score, before);
    ns = time_one(find_by_score);
    make_peers(count - 1);
    own_all(find_by_score, after);
    report("rendezvous", count, before, after, 0, ns);
    make_ring(count);
    own_all(find_on_ring, before);
    ns = time_one(find_on_ring);
    make_ring(count - 1);
    own_all(find_on_ring, after);
    report("ketama", count, before, after, count * POINTS * sizeof(*ring), ns);
    return 0;
}
