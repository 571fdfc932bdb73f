#include "base/client_tally.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/tree.h"

/* A client has one of this many parts of what the others leave. */
#define PARTS 4u

/* A client that holds something. */
struct holder {
    RB_ENTRY(holder) node;
    struct client_key key;
    size_t bytes;
};

RB_HEAD(holder_tree, holder);

struct client_tally {
    struct memory_account *account; /* NULL: of slots */
    enum memory_kind kind;
    size_t slots;
    bool shares; /* of the slots */
    pthread_mutex_t lock;
    /* protected by lock */
    size_t total;
    struct holder_tree holders;
    size_t count;
};

static int
compare_holders(const struct holder *a, const struct holder *b)
{
    return client_key_compare(&a->key, &b->key);
}

TREE_GENERATE(holder_tree, holder, node, compare_holders)

static struct client_tally *
create(void)
{
    struct client_tally *tally = calloc(1, sizeof(*tally));

    if (!tally)
        return NULL;
    pthread_mutex_init(&tally->lock, NULL);
    RB_INIT(&tally->holders);
    return tally;
}

struct client_tally *
client_tally_create(struct memory_account *account, enum memory_kind kind)
{
    struct client_tally *tally = create();

    if (!tally)
        return NULL;
    tally->account = account;
    tally->kind = kind;
    return tally;
}

struct client_tally *
client_tally_create_slots(size_t slots, bool shares)
{
    struct client_tally *tally = create();

    if (!tally)
        return NULL;
    tally->slots = slots;
    tally->shares = shares;
    return tally;
}

static struct holder *
find(struct client_tally *tally, const struct client_key *client)
{
    struct holder sought = {.key = *client};

    return RB_FIND(holder_tree, &tally->holders, &sought);
}

static struct holder *
add(struct client_tally *tally, const struct client_key *client)
{
    struct holder *holder = calloc(1, sizeof(*holder));

    if (!holder)
        return NULL;
    holder->key = *client;
    RB_INSERT(holder_tree, &tally->holders, holder);
    tally->count++;
    return holder;
}

static void
drop(struct client_tally *tally, struct holder *holder)
{
    RB_REMOVE(holder_tree, &tally->holders, holder);
    tally->count--;
    free(holder);
}

void
client_tally_destroy(struct client_tally *tally)
{
    struct holder *holder;

    if (!tally)
        return;
    while ((holder = RB_ROOT(&tally->holders)))
        drop(tally, holder);
    pthread_mutex_destroy(&tally->lock);
    free(tally);
}

/* 0, or why a client that holds `own` may not take so much more. What the others leave is what is
 * free, and what the client holds. */
static int
check_bytes(const struct client_tally *tally, size_t own, size_t bytes)
{
    uint64_t free_bytes = memory_left(tally->account, tally->kind);

    /* own + bytes <= left / 4 */
    return bytes > free_bytes / PARTS || own > (free_bytes - PARTS * bytes) / (PARTS - 1) ? EDQUOT
                                                                                          : 0;
}

static int
check_slots(const struct client_tally *tally, size_t own, size_t slots)
{
    size_t left = tally->slots - (tally->total - own);

    if (slots > tally->slots - tally->total)
        return ENOBUFS;
    /* Rounded up: a single slot is for any client. */
    return tally->shares && own + slots > (left + PARTS - 1) / PARTS ? EDQUOT : 0;
}

bool
client_tally_take(struct client_tally *tally, const struct client_key *client, size_t bytes)
{
    struct holder *holder;
    size_t own;
    int error;

    pthread_mutex_lock(&tally->lock);
    holder = find(tally, client);
    own = holder ? holder->bytes : 0;
    error = tally->account ? check_bytes(tally, own, bytes) : check_slots(tally, own, bytes);
    if (!error && !holder && !(holder = add(tally, client)))
        error = ENOMEM;
    if (!error) {
        holder->bytes += bytes;
        tally->total += bytes;
    }
    pthread_mutex_unlock(&tally->lock);
    if (error)
        errno = error;
    return !error;
}

void
client_tally_give_back(struct client_tally *tally, const struct client_key *client, size_t bytes)
{
    struct holder *holder;

    pthread_mutex_lock(&tally->lock);
    holder = find(tally, client);
    assert(holder && holder->bytes >= bytes);
    holder->bytes -= bytes;
    tally->total -= bytes;
    if (holder->bytes == 0)
        drop(tally, holder);
    pthread_mutex_unlock(&tally->lock);
}

size_t
client_tally_total(struct client_tally *tally)
{
    size_t total;

    pthread_mutex_lock(&tally->lock);
    total = tally->total;
    pthread_mutex_unlock(&tally->lock);
    return total;
}

size_t
client_tally_held(struct client_tally *tally, const struct client_key *client)
{
    const struct holder *holder;
    size_t bytes;

    pthread_mutex_lock(&tally->lock);
    holder = find(tally, client);
    bytes = holder ? holder->bytes : 0;
    pthread_mutex_unlock(&tally->lock);
    return bytes;
}

size_t
client_tally_clients(struct client_tally *tally)
{
    size_t count;

    pthread_mutex_lock(&tally->lock);
    count = tally->count;
    pthread_mutex_unlock(&tally->lock);
    return count;
}
