/*
 * Admission by rank: a new page is admitted only if it would be no victim of its own insertion. The
 * victims are the pages of the lowest ranks, and no more of them than free the capacity that it
 * needs. It is one of them exactly if all pages that are ranked below it together free too little.
 */
#ifndef SUNPROXY_POLICIES_ADMISSION_H
#define SUNPROXY_POLICIES_ADMISSION_H

#include "policies/policy.h"
#include "policies/rank.h"

/* What a policy's cache has. */
struct admission {
    uint64_t capacity_pages; /* 0: not bounded in pages */
    uint64_t capacity_bytes; /* 0: not bounded in bytes */
    uint64_t bytes;          /* of the cached pages; their number is the heap's */
};

/* Sets the capacity to that of `config`. */
void admission_resize(struct admission *admission, const struct policy_config *config);

/*
 * Would a page of that rank be kept? `rank` is in no heap. `bytes_of` gives the bytes of a node of
 * the heap. page->old, if set, is such a node; it is removed in any case. Reads the pages that are
 * ranked below the new one until they suffice.
 */
bool admission_is_won(const struct admission *admission, struct rank_heap *heap,
                      const struct rank_node *rank, const struct policy_page *page,
                      uint64_t (*bytes_of)(const struct rank_node *node));

#endif
