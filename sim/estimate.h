/*
 * What a run over a sample says of the whole trace, and how sure that is. Private to sim/.
 *
 * Of a sample with share p of all pages, misses / p estimates the misses of the whole trace, and
 * with pages drawn one by one the variance of that is (1 - p) / p^2 times the sum of the squares of
 * each page's misses (Horvitz and Thompson, 1952). Divided by the requests of the whole trace, not
 * by those that came with the draw: whether a page that everybody asks for was drawn then hardly
 * matters, for it hardly ever misses (the adjustment of Waldspurger et al., "Efficient MRC
 * Construction with SHARDS", 2015, section 3.3).
 *
 * That is the error of the draw alone. It is the whole error only where the small cache behaves as
 * the large one does. Two things tell that it does not, and then no error is told at all:
 *
 * - It has room for too few pages. Pages of different sizes count as fewer: as (sum of sizes)^2 /
 *   (sum of squares), the number of equal ones of which a share drawn at random varies as much.
 *   That goes by the sizes of the whole trace, so it does not depend on the draw. Of the byte hit
 *   ratio the whole sample must have as many in this sense, too.
 * - The page that leaves is often one of the last few that entered. How long such a page stays does
 *   not grow with the cache, so in a small one it stays too long and hits too much.
 *
 * Measured with 20 to 40 samples of 1 to 30 % of five traces, eight policies, in URLs and in bytes:
 * where an error is told, the truth is within 1.96 of it in 98 of 100 samples of caches in URLs and
 * in 92 of caches in bytes; what is left is W-TinyLFU on a trace on which it is unsteady. Spreads
 * over disjoint parts of the sample cost as much time again and put that up by 1 in 100.
 */
#ifndef SUNPROXY_SIM_ESTIMATE_H
#define SUNPROXY_SIM_ESTIMATE_H

#include "sim/sim.h"

#define ESTIMATE_LEAST_PAGES 200u /* that the small cache must have room for */
#define ESTIMATE_NEWEST 4u        /* pages that entered last */
#define ESTIMATE_MOST_NEWEST 0.25 /* of the victims, that may be among those */

/* Of one run over a sample. */
struct estimate {
    uint32_t *misses;                 /* owned; by page */
    double *bytes_missed;             /* owned; by page */
    uint32_t newest[ESTIMATE_NEWEST]; /* pages that entered last, plus 1; a ring */
    unsigned at;
    uint64_t victims;
    uint64_t victims_newest; /* of them, those that had just entered */
};

/* False without memory; to be ended all the same. */
bool estimate_begin(struct estimate *estimate, size_t page_count);
void estimate_end(struct estimate *estimate);

/* The warm-up is over, and its misses do not count. */
void estimate_forget(struct estimate *estimate, size_t page_count);

static inline void
estimate_missed(struct estimate *estimate, uint32_t id, uint32_t bytes)
{
    estimate->misses[id]++;
    estimate->bytes_missed[id] += bytes;
}

static inline void
estimate_entered(struct estimate *estimate, uint32_t id)
{
    estimate->newest[estimate->at++ % ESTIMATE_NEWEST] = id + 1;
}

static inline void
estimate_left(struct estimate *estimate, uint32_t id)
{
    estimate->victims++;
    for (unsigned i = 0; i < ESTIMATE_NEWEST; i++)
        if (estimate->newest[i] == id + 1) {
            estimate->victims_newest++;
            return;
        }
}

/* Fills in the ratios and their errors, from the counts in the result. */
void estimate_reckon(const struct estimate *estimate, const struct sim_trace *trace,
                     const struct sim_config *config, struct sim_result *result);

#endif
