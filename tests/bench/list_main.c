/* list: one measurement of locks of a linked list (list_bench.h), as a line of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/units.h"
#include "tests/bench/list_bench.h"
#include "tests/bench/program.h"

static const char help[] =
    "usage: list [option...]\n"
    "\n"
    "  --lock NAME        rwlock, mutex, or node-mutex (rwlock)\n"
    "  --threads N        1 to 256 (1)\n"
    "  --keys N           in the list at the beginning, 0 to 1000000 (1000)\n"
    "  --operations N     of all threads, 1 to 1000000000 (100000)\n"
    "  --members PERCENT  lookups (80)\n"
    "  --inserts PERCENT  insertions (10); the other operations are deletions\n"
    "  --seed N           of keys and operations (1)\n";

/* That of Pacheco's programs. */
#define RANGE 100000000u

static bool
set_option(void *context, int which, const char *text)
{
    struct list_bench_config *config = context;
    uint64_t number = 0;
    bool right = false;

    switch (which) {
    case 'l':
        right = units_parse_word(text, "rwlock|mutex|node-mutex", &number);
        config->lock = (enum list_lock)number;
        return right;
    case 't':
        right = units_parse_uint(text, 1, 256, &number);
        config->threads = (unsigned)number;
        return right;
    case 'k':
        return units_parse_uint(text, 0, 1000000, &config->keys);
    case 'o':
        return units_parse_uint(text, 1, 1000000000, &config->operations);
    case 'm':
        right = units_parse_uint(text, 0, 100, &number);
        config->members = (unsigned)number;
        return right;
    case 'i':
        right = units_parse_uint(text, 0, 100, &number);
        config->inserts = (unsigned)number;
        return right;
    case 's':
        return units_parse_uint(text, 0, UINT32_MAX, &config->seed);
    default:
        return false;
    }
}

static bool
print_result(const struct list_bench_result *result, uint64_t keys)
{
    struct buf out;
    struct json j;

    buf_init(&out, 1024);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_uint(&j, "found", result->found);
    json_uint(&j, "inserted", result->inserted);
    json_uint(&j, "deleted", result->deleted);
    json_uint(&j, "keys", keys);
    json_double(&j, "seconds", (double)result->elapsed_us / 1e6, 6);
    json_double(&j, "cpu_seconds", (double)result->cpu_us / 1e6, 6);
    json_close_object(&j);
    return program_print(&out);
}

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"lock", required_argument, NULL, 'l'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"keys", required_argument, NULL, 'k'},
                                          {"operations", required_argument, NULL, 'o'},
                                          {"members", required_argument, NULL, 'm'},
                                          {"inserts", required_argument, NULL, 'i'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct list_bench_config config = {.threads = 1,
                                       .keys = 1000,
                                       .operations = 100000,
                                       .members = 80,
                                       .inserts = 10,
                                       .range = RANGE,
                                       .seed = 1};
    struct list_bench_result result = {0};
    struct list_bench *bench;
    int status = program_parse(argc, argv, table, help, set_option, &config);
    bool done;

    if (status != PROGRAM_GOES_ON)
        return status;
    if (config.members + config.inserts > 100) {
        fputs(help, stderr);
        return EX_USAGE;
    }
    bench = list_bench_create(&config);
    done = bench && list_bench_run(bench, &result);
    if (!done)
        fputs("list: no memory or threads\n", stderr);
    done = done && print_result(&result, list_bench_count(bench));
    list_bench_destroy(bench);
    return done ? EXIT_SUCCESS : EX_OSERR;
}
