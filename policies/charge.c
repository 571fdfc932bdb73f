#include "policies/charge.h"

#define BLOCK 8u /* the arena's header of a block, and the step of its sizes */

/*
 * A page's costs beside its entry: the object's struct, a zero byte, the header and the rounding of
 * its block; 12 for its slot in a heap and 12 for its bucket, with the slack of both arrays.
 */
#define BESIDE_ENTRY (CHARGE_OBJECT_STRUCT + 1 + BLOCK + BLOCK - 1 + 12 + 12)

uint64_t
charge_page_overhead(const struct policy_ops *ops)
{
    uint64_t node = ops->node_size > CHARGE_LEAST_NODE ? ops->node_size : CHARGE_LEAST_NODE;
    uint64_t entry = CHARGE_ENTRY_STRUCT + node;

    return BESIDE_ENTRY + BLOCK + (entry + BLOCK - 1) / BLOCK * BLOCK;
}

uint64_t
charge_largest_overhead(void)
{
    uint64_t largest = 0;

    for (size_t i = 0; policies[i]; i++)
        if (charge_page_overhead(policies[i]) > largest)
            largest = charge_page_overhead(policies[i]);
    return largest;
}
