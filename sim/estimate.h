/*
 * What a run over a sample says of the whole trace, and how sure that is. Private to sim/.
 *
 * Of a sample with share p of all pages, misses / p estimates the misses of the whole trace, where
 * p is the share that was drawn, not the one that was meant. That is the number of all pages times
 * the mean of a simple random sample without replacement, whose variance is (1 - p) / p^2 times the
 * sum of the squared deviations of each page's misses from their mean (Cochran, "Sampling
 * Techniques", 1977, section 2.5). The squares are of the deviations: most pages miss once, and
 * what all pages have in common does not vary with the draw. Divided by the requests of the whole
 * trace, not by those that came with the draw: whether a popular page was drawn then hardly
 * matters, for it rarely misses (the adjustment of Waldspurger et al., "Efficient MRC Construction
 * with SHARDS", 2015, section 3.3).
 *
 * Sizes have heavy tails, so that a sample mostly lacks the largest pages and shows less variance
 * than there is: the error of the byte hit ratio is enlarged by ESTIMATE_BYTES. That was measured
 * (`make calibrate-samples`): without it the truth was within one error in 55 to 73 % of the
 * samples, and within 1.96 in 86 to 96 %.
 *
 * That is the error of the draw alone. The small cache also behaves as one a little larger or
 * smaller than its share: between two requests for a page not exactly the share of the other pages
 * was drawn. The standard deviation of that, relative to the capacity, is sqrt((1 - p) / pages),
 * with the number of pages in the small cache (capacity_spread). A second run in a cache larger by
 * it measures the difference in hits, which is added to the error (sim/repeat.h). It matters where
 * the curve of hit ratios is steep.
 *
 * No error is stated at all where
 *
 * - the small cache holds too few pages. Pages of different sizes count as fewer: as (sum of
 *   sizes)^2 / (sum of squares), the number of equal ones of which a share drawn at random varies
 *   as much. That goes by the sizes of the whole trace, so it does not depend on the draw. For the
 *   byte hit ratio the whole sample must have as many in this sense, too;
 * - the victim is often one of the last few pages that entered. How long such a page stays does not
 *   grow with the cache, so in a small one it stays too long and hits too much;
 * - no calibration supports it for this policy (sim/calibrated.h).
 */
#ifndef SUNPROXY_SIM_ESTIMATE_H
#define SUNPROXY_SIM_ESTIMATE_H

#include "sim/sim.h"

#define ESTIMATE_LEAST_PAGES 200u /* that the small cache must hold */
#define ESTIMATE_BYTES 1.15
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
void estimate_reset(struct estimate *estimate, size_t page_count);

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
void estimate_compute(const struct estimate *estimate, const struct sim_trace *trace,
                      const struct sim_config *config, struct sim_result *result);

#endif
