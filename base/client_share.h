/*
 * What clients share, and how much of it one client may have: at most a quarter of what the others
 * do not use. One client cannot use it up, and sixteen that take all they can get leave a
 * hundredth, which is then bounded in the same way.
 *
 * What is shared are the bytes of a share of memory, or slots. For memory this is accounting only,
 * beside an account (memory_account.h) that is charged as well and bounds the share exactly. Slots
 * are counted here alone. What a client has is counted in the client (clients.h).
 *
 * Every function is safe on any thread, and takes no lock.
 */
#ifndef SUNPROXY_BASE_CLIENT_SHARE_H
#define SUNPROXY_BASE_CLIENT_SHARE_H

#include "base/clients.h"
#include "base/memory_account.h"

struct client_share {
    /* constant */
    enum client_shared what;
    struct memory_account *account; /* NULL: slots */
    enum memory_kind kind;          /* of the account */

    /* shared */
    _Atomic size_t slots;
    atomic_bool parted;   /* among clients; otherwise one may have all slots */
    _Atomic size_t total; /* what all clients have */
};

/* The share that `kind` belongs to, of an account that stays. */
void client_share_init_memory(struct client_share *share, enum client_shared what,
                              struct memory_account *account, enum memory_kind kind);

void client_share_init_slots(struct client_share *share, enum client_shared what, size_t slots,
                             bool parted);

/* Other slots: those that are taken stay. */
void client_share_set_slots(struct client_share *share, size_t slots, bool parted);

/*
 * Counts `amount` for a client; bytes before the account is charged. False, and nothing is counted,
 * with errno EDQUOT if the client would have more than its part, or ENOBUFS if no slot is left.
 */
bool client_share_take(struct client_share *share, struct client *client, size_t amount);

/* The client has `amount` less, which it has taken before. */
void client_share_give_back(struct client_share *share, struct client *client, size_t amount);

static inline size_t
client_share_total(const struct client_share *share)
{
    return atomic_load(&share->total);
}

#endif
