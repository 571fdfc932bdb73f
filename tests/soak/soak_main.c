/*
 * soak: sends a running sunproxyd the requests of the mix, checks every answer, and looks at its
 * cache, memory, descriptors and threads at ten points; then the rare rows of the mix alone.
 * tests/soak/soak.py starts what it needs.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "tests/soak/flat.h"
#include "tests/soak/lane.h"
#include "tests/soak/quiesce.h"
#include "tests/soak/tally.h"

#define POINTS 10u
#define RARE_POINTS 6u
#define RARE_SHARE 1000u /* requests of the mix for each run of a rare row, */
#define RARE_LEAST 100u  /* but at least so often */
#define CAPACITY_URLS 1000u
#define CALL_US (60 * (int64_t)1000000)
#define MOST_RESTS 5u /* of a point, a second or more each */
#define EXIT_INTERRUPTED 130

struct options {
    uint64_t requests, lanes, seed, port;
    const char *socket;
    uint64_t pid;
};

static struct lane_work work = {.timeout_us = CALL_US, .lock = PTHREAD_MUTEX_INITIALIZER};
static struct tally start; /* before the first request */
static volatile sig_atomic_t interrupted;

static const char help[] =
    "usage: soak --port N --socket PATH --pid N [--requests N] [--lanes N] [--seed N]\n"
    "\n"
    "  --port N      the daemon's TCP port on 127.0.0.1\n"
    "  --socket PATH its AF_UNIX socket\n"
    "  --pid N       its process id\n"
    "  --requests N  (10000000)\n"
    "  --lanes N     connections that the requests are spread over (4)\n"
    "  --seed N      of what is drawn (1)\n"
    "\n"
    "Exit status: 0 all answers as expected, a cache that works, and flat; 1 not so; 130 interrupted.\n";

static void
on_signal(int number)
{
    (void)number;
    interrupted = 1;
    atomic_store(&work.stop, true);
}

static _Noreturn void
usage_error(const char *what)
{
    fprintf(stderr, "soak: %s; see --help\n", what);
    exit(EX_USAGE);
}

static void
parse_options(struct options *o, int argc, char **argv)
{
    static const struct option table[] = {
        {"port", required_argument, NULL, 'p'},  {"socket", required_argument, NULL, 's'},
        {"pid", required_argument, NULL, 'i'},   {"requests", required_argument, NULL, 'r'},
        {"lanes", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},        {0},
    };
    bool good = true;
    int c;

    *o = (struct options){.requests = 10000000, .lanes = 4, .seed = 1};
    while (good && (c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        switch (c) {
        case 'p':
            good = units_parse_uint(optarg, 1, 65535, &o->port);
            break;
        case 's':
            o->socket = optarg;
            break;
        case 'i':
            good = units_parse_uint(optarg, 1, INT32_MAX, &o->pid);
            break;
        case 'r':
            good = units_parse_uint(optarg, POINTS, UINT32_MAX, &o->requests);
            break;
        case 'l':
            good = units_parse_uint(optarg, 2, 64, &o->lanes);
            break;
        case 'S':
            good = units_parse_uint(optarg, 1, UINT32_MAX, &o->seed);
            break;
        case 'h':
            fputs(help, stdout);
            exit(EXIT_SUCCESS);
        default:
            exit(EX_USAGE);
        }
    }
    if (!good)
        usage_error("a value cannot be");
    if (optind < argc || !o->port || !o->socket || !o->pid)
        usage_error("--port, --socket and --pid are needed, and no arguments");
}

static void
set_addresses(const struct options *o)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&work.tcp.address;
    struct sockaddr_un *un = (struct sockaddr_un *)&work.local.address;

    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)o->port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    work.tcp.len = sizeof(*in);
    un->sun_family = AF_UNIX;
    if (strlen(o->socket) >= sizeof(un->sun_path))
        usage_error("the path of the socket is too long");
    strcpy(un->sun_path, o->socket);
    work.local.len = sizeof(*un);
    work.local.admin = true;
}

/*
 * Brings the daemon to rest and measures. Descriptors and threads that differ from the first
 * point's are looked at again after another rest: a leak stays.
 */
static bool
measure(const struct options *o, struct rpc_client *admin, const struct flat_point *first,
        struct flat_point *point, uint64_t *purged)
{
    const struct quiesce_state state = {start.policy, work.capacity_urls};
    char why[256];

    for (unsigned i = 0; i < MOST_RESTS; i++) {
        if (!quiesce(admin, &state, purged, why, sizeof(why))) {
            fprintf(stderr, "soak: the daemon does not come to rest: %s\n", why);
            return false;
        }
        if (!flat_measure((pid_t)o->pid, point)) {
            fputs("soak: the daemon is gone\n", stderr);
            return false;
        }
        if (first->descriptors == point->descriptors && first->threads == point->threads)
            break;
    }
    return true;
}

static void
print_point(const struct flat_point *point, int64_t started)
{
    const double mib = 1 << 20;

    printf("%12" PRIu64 " %8.1f %12.1f %12.1f %12.1f %12u %8u\n", point->requests,
           (double)(clock_monotonic_us() - started) / 1e6, (double)point->resident / mib,
           (double)point->own / mib, (double)point->data / mib, point->descriptors, point->threads);
    fflush(stdout);
}

static void
print_rows(void)
{
    puts("\nanswered as expected:");
    for (unsigned i = 0; i < mix_count; i++)
        printf("%12" PRIu64 "  %s\n", atomic_load(&work.asked[i]), mix_rows[i].name);
}

static void
print_heading(void)
{
    printf("%12s %8s %12s %12s %12s %12s %8s\n", "requests", "seconds", "resident MiB", "own MiB",
           "data MiB", "descriptors", "threads");
    fflush(stdout);
}

/* Sends the requests up to number `until`. False if that came to no end. */
static bool
run_phase(const struct options *o, uint64_t until)
{
    atomic_store(&work.next, atomic_load(&work.until));
    atomic_store(&work.until, until);
    atomic_store(&work.hits, 0);
    atomic_store(&work.stored, 0);
    atomic_store(&work.evicted, 0);
    if (!lane_run_all(&work, (unsigned)o->lanes)) {
        fputs("soak: no threads can be made\n", stderr);
        return false;
    }
    return !atomic_load(&work.stop);
}

static bool
take(struct rpc_client *admin, struct tally *tally)
{
    enum rpc_client_status status = tally_take(admin, tally);

    if (status != RPC_CLIENT_OK)
        fprintf(stderr, "soak: no statistics: %s\n", rpc_client_strstatus(status));
    return status == RPC_CLIENT_OK;
}

/* Runs the mix; the number of points measured. What is wrong with the cache comes into `why`. */
static unsigned
run_mix(const struct options *o, struct rpc_client *admin, struct flat_point points[POINTS],
        struct buf *why)
{
    int64_t started = clock_monotonic_us();

    print_heading();
    for (unsigned i = 0; i < POINTS; i++) {
        uint64_t until = o->requests / POINTS * (i + 1) + o->requests % POINTS, purged = 0;
        struct tally_answers answers = {.requests = until - atomic_load(&work.until)};
        struct tally before, after;

        if (!take(admin, &before) || !run_phase(o, until) || !take(admin, &after))
            return i;
        points[i].requests = until;
        if (!measure(o, admin, &points[0], &points[i], &purged))
            return i;
        print_point(&points[i], started);
        answers.hits = atomic_load(&work.hits);
        answers.stored = atomic_load(&work.stored);
        answers.evicted = atomic_load(&work.evicted);
        if (!tally_check(start.policy, &before, &after, &answers, purged, why))
            buf_printf(why,
                       "the cache did not work up to request %" PRIu64
                       ", where its policy was %s: %" PRIu64 " hits, %" PRIu64 " stored, %" PRIu64
                       " evicted\n",
                       until, after.policy, answers.hits, answers.stored, answers.evicted);
    }
    return POINTS;
}

/* Runs the rare rows alone; the number of points measured. */
static unsigned
run_rare(const struct options *o, struct rpc_client *admin, struct flat_point points[RARE_POINTS])
{
    uint64_t each = o->requests / RARE_SHARE > RARE_LEAST ? o->requests / RARE_SHARE : RARE_LEAST;
    uint64_t all = each * mix_rare_count(), purged = 0;
    int64_t started = clock_monotonic_us();

    printf("\nrare rows alone:\n");
    print_heading();
    work.rare = true;
    atomic_store(&work.until, 0);
    for (unsigned i = 0; i < RARE_POINTS; i++) {
        if (!run_phase(o, all * (i + 1) / RARE_POINTS))
            return i;
        points[i].requests = atomic_load(&work.until);
        if (!measure(o, admin, &points[0], &points[i], &purged))
            return i;
        print_point(&points[i], started);
    }
    return RARE_POINTS;
}

static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Runs everything. True if it came to its end; `wrong` takes what was not as it has to be. */
static bool
soak(const struct options *o, struct rpc_client *admin, struct buf *wrong)
{
    struct flat_point points[POINTS] = {0}, rare[RARE_POINTS] = {0};

    struct flat_point at_start = {0};
    uint64_t purged = 0;

    if (!take(admin, &start) || !measure(o, admin, &at_start, &at_start, &purged) ||
        run_mix(o, admin, points, wrong) < POINTS)
        return false;
    flat_check(points, POINTS, wrong);
    if (run_rare(o, admin, rare) < RARE_POINTS)
        return false;
    flat_check_rare(rare, RARE_POINTS, wrong);
    return true;
}

int
main(int argc, char **argv)
{
    struct options options;
    struct rpc_client *admin;
    struct buf wrong;
    bool finished, good;

    parse_options(&options, argc, argv);
    set_addresses(&options);
    work.seed = options.seed;
    work.capacity_urls = CAPACITY_URLS;
    /* In a short run a smaller cache, so that it is filled. */
    if (options.requests / POINTS / 5 < CAPACITY_URLS)
        work.capacity_urls = (uint32_t)(options.requests / POINTS / 5) + 5;
    catch_signals();
    admin = rpc_client_connect((const struct sockaddr *)&work.local.address, work.local.len,
                               CALL_US, 1u << 20);
    if (!admin) {
        perror("soak: the daemon's socket");
        return EX_UNAVAILABLE;
    }
    buf_init(&wrong, 1u << 16);
    finished = soak(&options, admin, &wrong);
    rpc_client_close(admin);
    print_rows();
    fflush(stdout);
    fputs(buf_str(&wrong), stderr);
    good = finished && wrong.len == 0 && !buf_failed(&wrong);
    buf_free(&wrong);
    if (interrupted) {
        puts("\ninterrupted");
        return EXIT_INTERRUPTED;
    }
    printf("\n%u unexpected answers; %s\n", work.failures,
           !finished ? "not finished"
           : good    ? "flat"
                     : "not flat, or no working cache");
    return good && work.failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
