/*
 * The table of a bound that holds with variable sizes: sim/bound.h.
 */
#include "study/report/report.h"

#include <stdlib.h>

#include "sim/bound.h"

static void
add_rows(struct json *j, const struct simulate_subject *subject, const struct size_scale *sizes,
         const struct sim_bound *bound)
{
    for (size_t i = 0; i < sizes->count; i++) {
        uint64_t size = sizes->sizes[i];

        json_open_array(j, NULL);
        json_uint(j, NULL, size);
        json_double(j, NULL, subject->all_bytes ? (double)size / (double)subject->all_bytes : 0, 6);
        json_double(j, NULL, 1 - sim_bound_hit_ratio(bound, size), 6);
        json_double(j, NULL, 1 - sim_bound_byte_hit_ratio(bound, size), 6);
        json_close_array(j);
    }
}

bool
report_bound_table(struct json *j, const struct simulate_subject *subject,
                   const struct size_scale *sizes)
{
    struct sim_trace trace = subject->sim;
    struct sim_bound bound;
    uint32_t *next = NULL;

    if (!trace.next)
        trace.next = next = sim_next(&trace);
    /* Policies differ in their overhead of a page; without any the bound holds for all. */
    if (!trace.next || !sim_bound_make(&trace, subject->warmup, 0, &bound)) {
        free(next);
        return false;
    }
    report_table_open(j, "bound_bytes", "capacity_bytes", "share_of_bytes", "miss_ratio",
                      "byte_miss_ratio", NULL);
    add_rows(j, subject, sizes, &bound);
    report_table_close(j);
    sim_bound_free(&bound);
    free(next);
    return true;
}
