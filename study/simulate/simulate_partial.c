/*
 * Runs of simulate that a signal ended: what they came to, apart from the results of whole runs,
 * since hit ratios of a part of a trace compare with none of the whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/capacity.h"
#include "cli/output.h"
#include "study/simulate/simulate.h"

/* Did this run begin and not end? Part of a sample estimates nothing. */
static bool
is_partial(const struct simulate_row *row)
{
    return row->job.error == SIM_STOPPED && row->job.result.requests != 0 &&
           !row->job.config.sampling;
}

/* The request that was reached, from 1; all where only later seeds are missing. */
static uint64_t
reached(const struct simulate_row *row)
{
    return row->job.config.warmup + row->job.result.requests;
}

static unsigned
seeds_finished(const struct simulate_row *row)
{
    return reached(row) == row->job.trace->request_count ? row->job.spread.runs : 0;
}

/* "lru with 7 URLs: hit ratio 41.20 % up to request 65536 of 200000". */
static void
put_line(const struct simulate_subject *subject, const struct simulate_row *row, struct buf *out)
{
    const struct sim_result *r = &row->job.result;
    char name[POLICY_MAX_TEXT], size[64];

    buf_reset(out);
    buf_printf(out, "%s with %s: hit ratio %.2f %%", policy_format(&row->spec, name, sizeof(name)),
               capacity_format(row->urls, row->bytes, size, sizeof(size)), 100 * r->hit_ratio);
    if (subject->sized)
        buf_printf(out, ", byte hit ratio %.2f %%", 100 * r->byte_hit_ratio);
    if (seeds_finished(row))
        buf_printf(out, " with %u of %u seeds", seeds_finished(row), row->job.runs);
    else
        buf_printf(out, " up to request %" PRIu64 " of %zu", reached(row),
                   row->job.trace->request_count);
}

void
simulate_partial_print(const struct simulate_subject *subject, const struct simulate_row *rows,
                       size_t count, bool to_stdout)
{
    struct buf line;
    bool any = false;

    buf_init(&line, 4096);
    for (size_t i = 0; i < count; i++) {
        if (!is_partial(&rows[i]))
            continue;
        put_line(subject, &rows[i], &line);
        if (!to_stdout) {
            output_note("not finished: %s", buf_str(&line));
            continue;
        }
        printf("%s  %s\n", any ? "" : "\nnot finished:\n", buf_str(&line));
        any = true;
    }
    buf_free(&line);
}

void
simulate_partial_json(struct json *j, const struct simulate_subject *subject,
                      const struct simulate_row *rows, size_t count)
{
    bool open = false;

    for (size_t i = 0; i < count; i++) {
        const struct simulate_row *row = &rows[i];
        char name[POLICY_MAX_TEXT];

        if (!is_partial(row))
            continue;
        if (!open)
            json_open_array(j, "unfinished");
        open = true;
        json_open_object(j, NULL);
        json_cstring(j, "policy", policy_format(&row->spec, name, sizeof(name)));
        json_uint(j, "capacity_urls", row->urls);
        json_uint(j, "capacity_bytes", row->bytes);
        json_uint(j, "seeds", seeds_finished(row));
        json_uint(j, "up_to_request", reached(row));
        json_double(j, "hit_ratio", row->job.result.hit_ratio, 6);
        if (subject->sized)
            json_double(j, "byte_hit_ratio", row->job.result.byte_hit_ratio, 6);
        else
            json_null(j, "byte_hit_ratio");
        json_close_object(j);
    }
    if (open)
        json_close_array(j);
}
