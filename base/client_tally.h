/*
 * How much each client holds of what clients share, and how much it may: at most a quarter of what
 * the others do not use. One client cannot use it up, and sixteen that take all they can get leave
 * a hundredth, which is then bounded in the same way.
 *
 * What is shared are the bytes of a share of memory, or slots. For memory this is accounting only,
 * beside an account (memory_account.h) that is charged as well and bounds the share exactly. Slots
 * are counted here alone. A client is counted while it holds something, whether it has a connection
 * or not.
 *
 * Every function is safe on any thread.
 */
#ifndef SUNPROXY_BASE_CLIENT_TALLY_H
#define SUNPROXY_BASE_CLIENT_TALLY_H

#include <stdbool.h>

#include "base/client_key.h"
#include "base/memory_account.h"

struct client_tally;

/* For the share that `kind` belongs to. The account outlives the tally. NULL without memory. */
struct client_tally *client_tally_create(struct memory_account *account, enum memory_kind kind);

/* For `slots`; without shares clients may use all of them. NULL without memory. */
struct client_tally *client_tally_create_slots(size_t slots, bool shares);

/* NULL is harmless. */
void client_tally_destroy(struct client_tally *tally);

/*
 * Counts `bytes`, or slots, for a client; bytes before the account is charged. False, and nothing
 * is counted, with errno EDQUOT if the client would hold more than its part, ENOBUFS if no slot is
 * left, or ENOMEM.
 */
bool client_tally_take(struct client_tally *tally, const struct client_key *client, size_t bytes);

/* The client holds `bytes` less, which it has taken before. */
void client_tally_give_back(struct client_tally *tally, const struct client_key *client,
                            size_t bytes);

/* What all clients hold. */
size_t client_tally_total(struct client_tally *tally);

/* What a client holds, and the number of clients that hold any; for tests. */
size_t client_tally_held(struct client_tally *tally, const struct client_key *client);
size_t client_tally_clients(struct client_tally *tally);

#endif
