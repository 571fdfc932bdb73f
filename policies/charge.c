#include "policies/charge.h"

/*
 * A page's costs beside its entry: the object's struct, a zero byte, malloc's header and the
 * rounding of its allocation; 12 for its slot in a heap and 12 for its bucket, with the slack of
 * both arrays.
 */
#define BESIDE_ENTRY (CHARGE_OBJECT_STRUCT + 1 + 8 + 15 + 12 + 12)

uint64_t
charge_page_overhead(const struct policy_ops *ops)
{
    uint64_t node = ops->node_size > CHARGE_LEAST_NODE ? ops->node_size : CHARGE_LEAST_NODE;
    uint64_t entry = CHARGE_ENTRY_STRUCT + node;

    /* malloc's header, and the sum in steps of 16 */
    return BESIDE_ENTRY + (entry + 8 + 15) / 16 * 16;
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
