/* table: one measurement of the cache's hash table (table_bench.h), as a line of JSON. */
#include <stdio.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/units.h"
#include "tests/bench/program.h"
#include "tests/bench/table_bench.h"

static const char help[] =
    "usage: table [option...]\n"
    "\n"
    "  --layout NAME      as-is, aligned, misaligned, or all-aligned (as-is)\n"
    "  --lock NAME        mutex or rwlock (mutex)\n"
    "  --parts N          tables, each with a lock of its own, 1 to 65536 (1)\n"
    "  --threads N        1 to 256 (1)\n"
    "  --lookups PERCENT  the other operations are updates (90)\n"
    "  --entries N        1 to 10000000 (100000)\n"
    "  --milliseconds N   duration, 1 to 600000 (200)\n";

static bool
set_option(void *context, int which, const char *text)
{
    struct table_bench_config *config = context;
    uint64_t number = 0;
    bool right = false;

    switch (which) {
    case 'y':
        right = units_parse_word(text, "as-is|aligned|misaligned|all-aligned", &number);
        config->layout = (enum table_layout)number;
        return right;
    case 'l':
        right = units_parse_word(text, "mutex|rwlock", &number);
        config->lock = (enum table_lock)number;
        return right;
    case 'p':
        right = units_parse_uint(text, 1, 65536, &number);
        config->parts = (unsigned)number;
        return right;
    case 't':
        right = units_parse_uint(text, 1, 256, &number);
        config->threads = (unsigned)number;
        return right;
    case 'u':
        right = units_parse_uint(text, 0, 100, &number);
        config->lookups = (unsigned)number;
        return right;
    case 'e':
        return units_parse_uint(text, 1, 10000000, &config->entries);
    case 'm':
        right = units_parse_uint(text, 1, 600000, &number);
        config->duration_us = (int64_t)number * 1000;
        return right;
    default:
        return false;
    }
}

static bool
print_result(const struct table_bench_result *result)
{
    double operations = (double)(result->operations ? result->operations : 1);
    struct buf out;
    struct json j;

    buf_init(&out, 1024);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_uint(&j, "operations", result->operations);
    json_uint(&j, "missing", result->missing);
    json_double(&j, "seconds", (double)result->elapsed_us / 1e6, 6);
    json_double(&j, "per_second", operations * 1e6 / (double)result->elapsed_us, 0);
    json_double(&j, "cpu_ns", (double)result->cpu_us * 1e3 / operations, 2);
    json_close_object(&j);
    return program_print(&out);
}

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"layout", required_argument, NULL, 'y'},
                                          {"lock", required_argument, NULL, 'l'},
                                          {"parts", required_argument, NULL, 'p'},
                                          {"threads", required_argument, NULL, 't'},
                                          {"lookups", required_argument, NULL, 'u'},
                                          {"entries", required_argument, NULL, 'e'},
                                          {"milliseconds", required_argument, NULL, 'm'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct table_bench_config config = {
        .parts = 1, .threads = 1, .lookups = 90, .entries = 100000, .duration_us = 200000};
    struct table_bench_result result = {0};
    struct table_bench *bench;
    int status = program_parse(argc, argv, table, help, set_option, &config);
    bool done;

    if (status != PROGRAM_GOES_ON)
        return status;
    bench = table_bench_create(&config);
    done = bench && table_bench_run(bench, &result);
    if (!done)
        fputs("table: no memory or threads\n", stderr);
    done = done && print_result(&result);
    table_bench_destroy(bench);
    return done ? result.missing > 0 : EX_OSERR;
}
