#include "base/client_share.h"

#include <assert.h>
#include <errno.h>

/* A client may have one of this many parts of what the others leave. */
#define PARTS 4u

void
client_share_init_memory(struct client_share *share, enum client_shared what,
                         struct memory_account *account, enum memory_kind kind)
{
    *share = (struct client_share){
        .what = what, .account = account, .kind = kind, .slots = SIZE_MAX, .parted = true};
}

void
client_share_init_slots(struct client_share *share, enum client_shared what, size_t slots,
                        bool parted)
{
    *share = (struct client_share){.what = what, .slots = slots, .parted = parted};
}

void
client_share_set_slots(struct client_share *share, size_t slots, bool parted)
{
    atomic_store(&share->parted, parted);
    atomic_store(&share->slots, slots);
}

/*
 * May a client that has `own` have `amount` more, which is in the total already? What the others
 * leave is what is free, and what the client has.
 */
static bool
may_have(const struct client_share *share, size_t own, size_t amount)
{
    uint64_t left;

    if (share->account) {
        left = memory_left(share->account, share->kind);
        /* own + amount <= (left + own) / PARTS */
        return amount <= left / PARTS && own <= (left - PARTS * amount) / (PARTS - 1);
    }
    left = atomic_load(&share->slots) + own + amount;
    left = left > client_share_total(share) ? left - client_share_total(share) : 0;
    /* Rounded up: a single slot is for any client. */
    return !share->parted || own + amount <= (left + PARTS - 1) / PARTS;
}

bool
client_share_take(struct client_share *share, struct client *client, size_t amount)
{
    _Atomic size_t *has = &client->has[share->what];
    const size_t slots = atomic_load(&share->slots);
    size_t total = atomic_load(&share->total), own;

    do {
        if (total > slots || amount > slots - total) {
            errno = ENOBUFS;
            return false;
        }
    } while (!atomic_compare_exchange_weak(&share->total, &total, total + amount));
    own = atomic_load(has);
    do {
        if (!may_have(share, own, amount)) {
            atomic_fetch_sub(&share->total, amount);
            errno = EDQUOT;
            return false;
        }
    } while (!atomic_compare_exchange_weak(has, &own, own + amount));
    return true;
}

void
client_share_give_back(struct client_share *share, struct client *client, size_t amount)
{
    size_t had = atomic_fetch_sub(&client->has[share->what], amount);

    assert(had >= amount);
    (void)had;
    atomic_fetch_sub(&share->total, amount);
}
