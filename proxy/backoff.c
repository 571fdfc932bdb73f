#include "proxy/backoff.h"

bool
backoff_holds(const struct backoff *backoff, uint64_t key, int64_t now_us)
{
    const unsigned i = key % BACKOFF_SLOTS;

    return atomic_load(&backoff->slots[i].delay_us) != 0 &&
           atomic_load(&backoff->slots[i].key) == key &&
           now_us < atomic_load(&backoff->slots[i].until_us);
}

void
backoff_add(struct backoff *backoff, uint64_t key, int64_t now_us)
{
    const unsigned i = key % BACKOFF_SLOTS;
    int64_t delay_us = BACKOFF_FIRST_US;

    if (atomic_load(&backoff->slots[i].key) == key)
        delay_us = 2 * atomic_load(&backoff->slots[i].delay_us);
    if (delay_us < BACKOFF_FIRST_US)
        delay_us = BACKOFF_FIRST_US;
    if (delay_us > BACKOFF_LONGEST_US)
        delay_us = BACKOFF_LONGEST_US;
    atomic_store(&backoff->slots[i].key, key);
    atomic_store(&backoff->slots[i].until_us, now_us + delay_us);
    atomic_store(&backoff->slots[i].delay_us, delay_us);
}

void
backoff_clear(struct backoff *backoff, uint64_t key)
{
    const unsigned i = key % BACKOFF_SLOTS;

    if (atomic_load(&backoff->slots[i].key) == key)
        atomic_store(&backoff->slots[i].delay_us, 0);
}
