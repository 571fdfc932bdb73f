/*
 * sunproxy stat: the counters of a running server, once or again and again.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "client/admin.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "client/connect.h"
#include "cli/output.h"
#include "cli/statistics.h"
#include "client/commands.h"

/* Every number of the answer: its name in JSON, for people, and where it stands. */
enum kind { COUNT, COUNT_WITH_RATE, BYTES, BYTES_WITH_RATE };

static const struct {
    const char *name;
    const char *label;
    enum kind kind;
    size_t offset;
} numbers[] = {
#define NUMBER(name, label, kind)                       \
    {                                                   \
#name, label, kind, offsetof(proxy_stats, name) \
    }
    NUMBER(pages, "pages in the cache", COUNT),
    NUMBER(bytes, "bytes in the cache", BYTES),
    NUMBER(requests, "requests", COUNT_WITH_RATE),
    NUMBER(hits, "hits", COUNT_WITH_RATE),
    NUMBER(misses, "misses", COUNT_WITH_RATE),
    NUMBER(coalesced, "coalesced", COUNT_WITH_RATE),
    NUMBER(bypasses, "bypasses", COUNT_WITH_RATE),
    NUMBER(failures, "failures", COUNT_WITH_RATE),
    NUMBER(bytes_served, "bytes served", BYTES_WITH_RATE),
    NUMBER(bytes_hit, "bytes from the cache", BYTES_WITH_RATE),
    NUMBER(bytes_fetched, "bytes fetched", BYTES_WITH_RATE),
    NUMBER(insertions, "insertions", COUNT_WITH_RATE),
    NUMBER(evictions, "evictions", COUNT_WITH_RATE),
    NUMBER(connections, "connections open", COUNT),
    NUMBER(connections_total, "connections ever", COUNT_WITH_RATE),
    NUMBER(connections_refused, "connections refused", COUNT_WITH_RATE),
    NUMBER(refused_full, "- too many in all", COUNT_WITH_RATE),
    NUMBER(refused_client, "- of one client", COUNT_WITH_RATE),
    NUMBER(refused_descriptors, "- no descriptor", COUNT_WITH_RATE),
    NUMBER(refused_memory, "- no memory", COUNT_WITH_RATE),
    NUMBER(clients, "clients known", COUNT),
    NUMBER(calls, "RPC calls", COUNT_WITH_RATE),
    NUMBER(calls_bad, "RPC calls gone wrong", COUNT_WITH_RATE),
    NUMBER(calls_delayed, "RPC calls delayed", COUNT_WITH_RATE),
    NUMBER(fetches_active, "fetches under way", COUNT),
    NUMBER(fetches_waiting, "- without answer", COUNT),
    NUMBER(fetches_queued, "fetches queued", COUNT),
    NUMBER(fetches_displaced, "fetches displaced", COUNT_WITH_RATE),
    NUMBER(fetches_refused, "fetches refused", COUNT_WITH_RATE),
    NUMBER(log_lines_lost, "log lines lost", COUNT_WITH_RATE),
    NUMBER(memory_limit, "memory limit", BYTES),
    NUMBER(memory_pages, "- pages outside", BYTES),
    NUMBER(memory_fetches, "- fetches", BYTES),
    NUMBER(memory_records, "- calls in part", BYTES),
    NUMBER(memory_requests, "- requests", BYTES),
    NUMBER(memory_replies, "- replies", BYTES),
    NUMBER(memory_refusals, "memory refusals", COUNT_WITH_RATE),
    NUMBER(memory_reclaimed, "memory reclaimed", BYTES),
#undef NUMBER
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static uint64_t
number(const proxy_stats *stats, size_t i)
{
    return *(const u_quad_t *)((const char *)stats + numbers[i].offset);
}

/* A view of the counters, and of those before, which rates are reckoned from. */
struct view {
    proxy_stats now;
    proxy_stats before; /* zeros the first time */
    double seconds;     /* between them; 0: no rates */
};

/* Counters that were set to zero in between have no rate. */
static double
rate(const struct view *view, uint64_t now, uint64_t before)
{
    return view->seconds > 0 && now >= before ? (double)(now - before) / view->seconds : 0;
}

/* ---- forms ----------------------------------------------------------------------------------- */

static void
show_table(const struct view *view, const struct server *server)
{
    static const struct column list[] = {{NULL, -22, false}, {NULL, 16, false}, {NULL, 16, false}};
    struct columns columns = {.out = stdout, .list = list, .count = 3};
    const proxy_stats *s = &view->now;
    char uptime[32], capacity[64];

    output_put(s->software);
    printf(" at ");
    output_put(server->name);
    printf(", up %s\npolicy ",
           units_format_duration((int64_t)s->uptime_us, uptime, sizeof(uptime)));
    output_put(s->policy);
    printf(", %s; workers: %u, shards: %u\n\n",
           capacity_format(s->capacity_urls, s->capacity_bytes, capacity, sizeof(capacity)),
           s->workers, s->shards);
    columns_pair(&columns, "hit ratio", "%.2f %%", 100 * statistics_ratio(s->hits, s->requests));
    columns_pair(&columns, "byte hit ratio", "%.2f %%",
                 100 * statistics_ratio(s->bytes_hit, s->bytes_served));
    for (size_t i = 0; i < NUMBERS; i++) {
        bool is_bytes = numbers[i].kind == BYTES || numbers[i].kind == BYTES_WITH_RATE;
        bool has_rate = numbers[i].kind == COUNT_WITH_RATE || numbers[i].kind == BYTES_WITH_RATE;
        double per_second = rate(view, number(s, i), number(&view->before, i));
        char text[32];

        columns_cell(&columns, "%s", numbers[i].label);
        if (is_bytes)
            columns_cell(&columns, "%s", units_format_bytes(number(s, i), text, sizeof(text)));
        else
            columns_cell(&columns, "%" PRIu64, number(s, i));
        if (has_rate && view->seconds > 0 && is_bytes)
            columns_cell(&columns, "%s/s",
                         units_format_bytes((uint64_t)per_second, text, sizeof(text)));
        else if (has_rate && view->seconds > 0)
            columns_cell(&columns, "%.1f/s", per_second);
        columns_end(&columns);
    }
}

static int
show_json(const struct view *view)
{
    const proxy_stats *s = &view->now;
    struct buf out;
    struct json j;

    buf_init(&out, 16384);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_cstring(&j, "software", s->software);
    json_cstring(&j, "policy", s->policy);
    json_uint(&j, "workers", s->workers);
    json_uint(&j, "shards", s->shards);
    json_uint(&j, "uptime_us", s->uptime_us);
    json_uint(&j, "capacity_urls", s->capacity_urls);
    json_uint(&j, "capacity_bytes", s->capacity_bytes);
    json_double(&j, "hit_ratio", statistics_ratio(s->hits, s->requests), 6);
    json_double(&j, "byte_hit_ratio", statistics_ratio(s->bytes_hit, s->bytes_served), 6);
    for (size_t i = 0; i < NUMBERS; i++)
        json_uint(&j, numbers[i].name, number(s, i));
    if (view->seconds > 0) {
        json_open_object(&j, "per_second");
        for (size_t i = 0; i < NUMBERS; i++)
            if (numbers[i].kind == COUNT_WITH_RATE || numbers[i].kind == BYTES_WITH_RATE)
                json_double(&j, numbers[i].name, rate(view, number(s, i), number(&view->before, i)),
                            3);
        json_close_object(&j);
    }
    json_close_object(&j);
    return output_json(&out);
}

/* A line for a file or a pipe; its columns are named every twenty lines. */
static void
show_line(const struct view *view, uint64_t lines)
{
    static const struct column list[] = {
        {"requests/s", 10, false}, {"hits/s", 10, false},   {"hit %", 8, false},
        {"evicted/s", 10, false},  {"failed/s", 10, false}, {"pages", 10, false},
        {"fetching", 10, false},   {"conns", 8, false},
    };
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};
    const proxy_stats *s = &view->now, *b = &view->before;
    bool is_steady = s->requests >= b->requests && s->hits >= b->hits;

    if (lines % 20 == 0)
        columns_head(&columns);
    columns_cell(&columns, "%.1f", rate(view, s->requests, b->requests));
    columns_cell(&columns, "%.1f", rate(view, s->hits, b->hits));
    columns_cell(&columns, "%.2f",
                 is_steady ? 100 * statistics_ratio(s->hits - b->hits, s->requests - b->requests)
                           : 0);
    columns_cell(&columns, "%.1f", rate(view, s->evictions, b->evictions));
    columns_cell(&columns, "%.1f", rate(view, s->failures, b->failures));
    columns_cell(&columns, "%" PRIu64, (uint64_t)s->pages);
    columns_cell(&columns, "%" PRIu64, (uint64_t)s->fetches_active);
    columns_cell(&columns, "%" PRIu64, (uint64_t)s->connections);
    columns_end(&columns);
}

/* ---- watching -------------------------------------------------------------------------------- */

struct stat_options {
    struct server_options server;
    int64_t watch_us; /* 0: once */
    bool json;
};

static int
show(const struct view *view, const struct stat_options *options, const struct server *server,
     bool redraw, uint64_t lines)
{
    if (options->json)
        return show_json(view);
    if (options->watch_us && !redraw) {
        /* The first look has nothing to compare with; rates begin with the second. */
        if (view->seconds > 0)
            show_line(view, lines);
    } else {
        if (redraw)
            fputs("\033[H\033[2J", stdout);
        show_table(view, server);
    }
    return output_flush();
}

static int
watch(struct rpc_client *client, const struct stat_options *options, const struct server *server)
{
    struct view view = {.seconds = 0};
    int64_t seen_us = 0;
    bool redraw = options->watch_us != 0 && !options->json && output_is_lively(stdout);
    int status;

    for (uint64_t looks = 0;; looks++) {
        struct timespec pause = {.tv_sec = options->watch_us / 1000000,
                                 .tv_nsec = options->watch_us % 1000000 * 1000};
        int64_t now_us;

        status = admin_stat(client, options->server.timeout_us, &view.now);
        if (status != EX_OK)
            break;
        now_us = clock_monotonic_us();
        view.seconds = looks ? (double)(now_us - seen_us) / 1e6 : 0;
        seen_us = now_us;
        status = show(&view, options, server, redraw, looks - 1);
        admin_free_stats(&view.before);
        view.before = view.now;
        if (status != EX_OK || options->watch_us == 0)
            break;
        nanosleep(&pause, NULL);
    }
    admin_free_stats(&view.before);
    return status;
}

static int
take_watch(const struct option_row *row, void *field, const char *text)
{
    int64_t *us = field;

    *us = 1000000;
    if (!text || (units_parse_duration(text, us) && *us > 0))
        return EX_OK;
    return options_wrong(row, "a number of seconds", text);
}

#define AT(field) offsetof(struct stat_options, field)

static const struct option_row rows[] = {
    {"watch", 'w', "[=SECONDS]", take_watch, AT(watch_us), 0, 0, NULL,
     "repeat with rates until Ctrl-C (default: every second): redrawn on a terminal, else a line "
     "each"},
    {"json", 0, NULL, option_flag, AT(json), 0, 0, NULL,
     "print one JSON object, or one a line with --watch"},
    {0},
};

static const struct option_group own = {.rows = rows};

static int
stat_(int argc, char **argv)
{
    struct stat_options options = {.watch_us = 0};
    void *const into[] = {&options, &options.server};
    struct server server;
    struct rpc_client *client;
    int status = command_read(&command_stat, into, argc, argv);

    if (status != COMMAND_GO_ON)
        return status;
    client = server_find(&options.server, SERVER_ADMIN, &server, &status);
    if (!client)
        return status;
    status = watch(client, &options, &server);
    rpc_client_close(client);
    return status;
}

const struct command command_stat = {
    .name = "stat",
    .summary = "show the counters of a running server",
    .about = "usage: sunproxy stat [OPTION...]\n\n"
             "Prints what the server has done since it started or was last set cold.\n",
    .options = {&own, &server_option_group},
    .after = "Exit status: 0 done; 64 wrong usage; 69 no server; 74 output could not be\n"
             "written; 75 no answer in time.\n",
    .run = stat_,
};
