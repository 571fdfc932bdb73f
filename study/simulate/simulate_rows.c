/* What all outputs of simulate ask of its rows: figures, order by size, numbers of seeds. */
#include "cli/statistics.h"
#include "study/simulate/simulate.h"

static uint64_t
scale(uint64_t count, double rate)
{
    return rate < 1 ? (uint64_t)((double)count / rate + 0.5) : count;
}

void
simulate_figures_of(const struct simulate_row *row, struct simulate_figures *f)
{
    const struct sim_result *r = &row->job.result;
    const struct sim_sampling *sampling = row->job.config.sampling;
    double rate = sampling ? sampling->rate : 1;
    uint64_t misses = r->requests - r->hits;

    *f = (struct simulate_figures){
        .requests = r->requests,
        .hits = r->hits,
        .bytes = r->bytes,
        .bytes_hit = r->bytes_hit,
        .evictions = scale(r->evictions, rate),
        .insertions = scale(r->insertions, rate),
        .expired = scale(r->expired, rate),
        .not_admitted = scale(r->not_admitted, rate),
        .too_large = scale(r->too_large, rate),
        .admitted = statistics_ratio(r->insertions, misses),
    };
    if (sampling) {
        f->requests = sampling->requests;
        f->bytes = sampling->bytes;
        f->hits = (uint64_t)((double)f->requests * r->hit_ratio + 0.5);
        f->bytes_hit = (uint64_t)((double)f->bytes * r->byte_hit_ratio + 0.5);
    }
}

int
simulate_compare_sizes(const struct simulate_row *a, const struct simulate_row *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    return a->urls < b->urls ? -1 : a->urls > b->urls;
}

size_t
simulate_rows_of_a_size(const struct simulate_row *rows, size_t count)
{
    size_t same = 0;

    while (same < count && simulate_compare_sizes(&rows[same], rows) == 0)
        same++;
    return same;
}

unsigned
simulate_most_seeds(const struct simulate_row *rows, size_t count)
{
    unsigned most = 1;

    for (size_t i = 0; i < count; i++)
        if (rows[i].job.spread.runs > most)
            most = rows[i].job.spread.runs;
    return most;
}
