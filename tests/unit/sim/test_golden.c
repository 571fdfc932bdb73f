/*
 * Parity: what libCacheSim misses on a real trace, for every policy that is registered, and the
 * paper's dataset1.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/policies/golden.h"
#include "tests/unit/sim/traces.h"

enum { MAX_REQUESTS = 2000, LINE = 512 };

static void
check_row(const struct golden_trace *t, const struct sim_trace *sized,
          const struct policy_spec *spec, bool in_bytes, uint64_t capacity, uint64_t misses,
          uint64_t miss_bytes)
{
    struct sim_trace trace = *sized;
    struct sim_config config = {.spec = *spec,
                                .capacity_pages = in_bytes ? 0 : capacity,
                                .capacity_bytes = in_bytes ? capacity : 0,
                                .seed = 1};
    struct sim_result result;

    if (!in_bytes)
        trace.sizes = NULL;
    ck_assert_int_eq(sim_run(&trace, &config, NULL, &result), SIM_OK);
    ck_assert_uint_eq(result.requests, t->count);
    ck_assert_msg(
        result.requests - result.hits == misses && result.bytes - result.bytes_hit == miss_bytes,
        "%s at %" PRIu64 " %s: %" PRIu64 " misses and %" PRIu64 " bytes, not %" PRIu64
        " and %" PRIu64,
        spec->ops->name, capacity, in_bytes ? "bytes" : "objects", result.requests - result.hits,
        result.bytes - result.bytes_hit, misses, miss_bytes);
}

/* The table's names that are not ours. */
static const char *
our_name(const char *theirs)
{
    return strcmp(theirs, "belady") == 0 ? "opt" : theirs;
}

START_TEST(every_row_of_the_golden_table)
{
    struct golden_trace t = golden_read(unit_dataset("traces/cloudPhysicsIO.oracleGeneral.bin"));
    struct sim_trace trace = {
        .request_count = t.count, .ids = t.ids, .sizes = t.sizes, .page_count = t.distinct};
    FILE *table = fopen(unit_dataset("golden/cloudphysics.tsv"), "r");
    char line[LINE], unit[20], policy[20], skipped[LINE] = "";
    uint64_t capacity, requests, misses, miss_bytes;
    unsigned rows = 0, checked = 0;
    uint32_t *next = sim_next(&trace);

    ck_assert(table && next);
    trace.next = next;
    while (fgets(line, sizeof(line), table)) {
        struct policy_spec spec;

        if (sscanf(line, "%19s %19s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, unit, policy,
                   &capacity, &requests, &misses, &miss_bytes) != 6)
            continue;
        rows++;
        spec = policy_spec_of(policy_find(our_name(policy)));
        if (!spec.ops) {
            if (!strstr(skipped, policy))
                snprintf(skipped + strlen(skipped), sizeof(skipped) - strlen(skipped), " %s",
                         policy);
            continue;
        }
        ck_assert_uint_eq(requests, t.count);
        check_row(&t, &trace, &spec, strcmp(unit, "bytes") == 0, capacity, misses, miss_bytes);
        checked++;
    }
    ck_assert_uint_eq(rows, 46);
    ck_assert_uint_ge(checked, 12);
    printf("golden rows checked: %u of %u%s%s\n", checked, rows,
           *skipped ? "; not registered:" : "", skipped);
    fclose(table);
    free(next);
    golden_free(&t);
}
END_TEST

/* ---- the paper's first data set -------------------------------------------------------------- */

static char urls[MAX_REQUESTS][LINE];
static uint32_t ids[MAX_REQUESTS];

static struct sim_trace
read_urls(const char *path)
{
    struct sim_trace trace = {.ids = ids};
    FILE *file = fopen(path, "r");
    char line[LINE];

    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) {
        uint32_t id = 0;

        ck_assert_uint_lt(trace.request_count, MAX_REQUESTS);
        while (id < trace.page_count && strcmp(urls[id], line) != 0)
            id++;
        if (id == trace.page_count)
            strcpy(urls[trace.page_count++], line);
        ids[trace.request_count++] = id;
    }
    fclose(file);
    return trace;
}

START_TEST(the_papers_first_data_set)
{
    static const char *const names[] = {"lru", "fifo", "lfu", "opt"};
    static const uint64_t known[][5] = {{7, 853, 832, 810, 898},  {14, 902, 885, 862, 924},
                                        {21, 917, 904, 895, 929}, {28, 923, 913, 913, 929},
                                        {35, 926, 919, 920, 929}, {56, 929, 927, 929, 929}};
    struct sim_trace trace = read_urls(unit_dataset("sunrpc-paper/dataset1-urls.txt"));
    uint32_t *next = sim_next(&trace);

    ck_assert_ptr_nonnull(next);
    trace.next = next;
    ck_assert_uint_eq(trace.request_count, 997);
    ck_assert_uint_eq(trace.page_count, 68);
    for (size_t size = 0; size < sizeof(known) / sizeof(known[0]); size++)
        for (size_t policy = 0; policy < 4; policy++) {
            struct sim_config config = {.spec = made_spec(names[policy]),
                                        .capacity_pages = known[size][0]};
            struct sim_result result;

            ck_assert_int_eq(sim_run(&trace, &config, NULL, &result), SIM_OK);
            ck_assert_msg(result.hits == known[size][policy + 1], "%s at %" PRIu64 ": %" PRIu64,
                          names[policy], known[size][0], result.hits);
        }
    free(next);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("simulator's parity");
    TCase *tcase = tcase_create("parity");

    tcase_set_timeout(tcase, 170);
    tcase_add_test(tcase, every_row_of_the_golden_table);
    tcase_add_test(tcase, the_papers_first_data_set);
    suite_add_tcase(suite, tcase);
    return suite;
}
