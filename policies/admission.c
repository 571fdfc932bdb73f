#include "policies/admission.h"

void
admission_resize(struct admission *admission, const struct policy_config *config)
{
    admission->capacity_pages = config->capacity_pages;
    admission->capacity_bytes = config->capacity_bytes;
}

struct contest {
    const struct admission *admission;
    const struct policy_page *page;
    uint64_t (*bytes_of)(const struct rank_node *node);
    uint64_t pages, bytes; /* with the new page, without those that would be evicted */
};

static bool
contest_fits(const struct contest *contest)
{
    const struct admission *admission = contest->admission;

    return (!admission->capacity_pages || contest->pages <= admission->capacity_pages) &&
           (!admission->capacity_bytes || contest->bytes <= admission->capacity_bytes);
}

/* For rank_walk_below(): goes on until the new page fits. */
static bool
contest_evict(void *context, const struct rank_node *node)
{
    struct contest *contest = context;

    if (node != contest->page->old) {
        contest->pages--;
        contest->bytes -= contest->bytes_of(node);
    }
    return !contest_fits(contest);
}

bool
admission_is_won(const struct admission *admission, struct rank_heap *heap,
                 const struct rank_node *rank, const struct policy_page *page,
                 uint64_t (*bytes_of)(const struct rank_node *node))
{
    struct contest contest = {.admission = admission,
                              .page = page,
                              .bytes_of = bytes_of,
                              .pages = (uint64_t)heap->count + (page->old ? 0 : 1),
                              .bytes = admission->bytes + page->bytes -
                                       (page->old ? bytes_of(page->old) : 0)};

    return contest_fits(&contest) || !rank_walk_below(heap, rank, contest_evict, &contest);
}
