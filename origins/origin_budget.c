#include "origins/origin_budget.h"

/* Begins a new slot if its time has come. Returns which counts are those of now. */
static unsigned
find_slot(struct origin_budget *budget, int64_t now_us)
{
    const int64_t now = now_us / ORIGIN_BUDGET_SLOT_US;
    const unsigned i = now & 1;
    int64_t last = atomic_load_explicit(&budget->slot, memory_order_relaxed);

    if (now <= last || !atomic_compare_exchange_strong(&budget->slot, &last, now))
        return i;
    atomic_store(&budget->requests[i], 0);
    atomic_store(&budget->retries[i], 0);
    if (now > last + 1) {
        atomic_store(&budget->requests[!i], 0);
        atomic_store(&budget->retries[!i], 0);
    }
    return i;
}

static uint64_t
sum(const _Atomic unsigned counts[2])
{
    return (uint64_t)atomic_load(&counts[0]) + atomic_load(&counts[1]);
}

void
origin_budget_add(struct origin_budget *budget, int64_t now_us)
{
    atomic_fetch_add_explicit(&budget->requests[find_slot(budget, now_us)], 1,
                              memory_order_relaxed);
}

bool
origin_budget_take(struct origin_budget *budget, int64_t now_us)
{
    const unsigned i = find_slot(budget, now_us);

    if (sum(budget->retries) >=
        ORIGIN_BUDGET_LEAST + sum(budget->requests) * budget->percent / 100)
        return false;
    atomic_fetch_add(&budget->retries[i], 1);
    return true;
}

void
origin_budget_inherit(struct origin_budget *to, const struct origin_budget *from)
{
    atomic_store(&to->slot, atomic_load(&from->slot));
    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&to->requests[i], atomic_load(&from->requests[i]));
        atomic_store(&to->retries[i], atomic_load(&from->retries[i]));
    }
}
