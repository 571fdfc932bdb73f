#include "base/memory_account.h"

#include <errno.h>
#include <stdlib.h>

#include "base/arena.h"

#define EIGHTHS 8

static const enum memory_group group_of[MEMORY_KINDS] = {
    [MEMORY_PAGES] = MEMORY_GROUP_FETCHING,  [MEMORY_FETCHES] = MEMORY_GROUP_FETCHING,
    [MEMORY_RECORDS] = MEMORY_GROUP_CALLS,   [MEMORY_REQUESTS] = MEMORY_GROUP_WAITING,
    [MEMORY_REPLIES] = MEMORY_GROUP_WAITING, [MEMORY_FAILED] = MEMORY_GROUP_FAILED,
};

void
memory_account_set_limit(struct memory_account *account, uint64_t limit)
{
    int64_t eighth;

    if (limit > INT64_MAX)
        limit = INT64_MAX;
    eighth = (int64_t)(limit / EIGHTHS);
    atomic_store(&account->limit, limit);
    atomic_store(&account->groups[MEMORY_GROUP_FETCHING].share, (int64_t)limit - 3 * eighth);
    atomic_store(&account->groups[MEMORY_GROUP_CALLS].share, eighth);
    atomic_store(&account->groups[MEMORY_GROUP_WAITING].share, eighth);
    atomic_store(&account->groups[MEMORY_GROUP_FAILED].share, eighth);
}

void
memory_account_init(struct memory_account *account, uint64_t limit,
                    const struct memory_hooks *hooks)
{
    account->hooks = hooks ? *hooks : (struct memory_hooks){0};
    memory_account_set_limit(account, limit);
    for (unsigned group = 0; group < MEMORY_GROUPS; group++)
        atomic_init(&account->groups[group].used, 0);
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        atomic_init(&account->kinds[kind], 0);
    atomic_init(&account->refusals, 0);
}

static bool
try_charge(struct memory_account *account, enum memory_kind kind, int64_t bytes)
{
    enum memory_group group = group_of[kind];
    _Atomic int64_t *used = &account->groups[group].used;
    int64_t share = account->groups[group].share;
    int64_t before = atomic_load_explicit(used, memory_order_relaxed);

    do {
        /* What is used may be more than the share. */
        if (before > share || bytes > share - before)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(used, &before, before + bytes,
                                                    memory_order_relaxed, memory_order_relaxed));
    atomic_fetch_add_explicit(&account->kinds[kind], bytes, memory_order_relaxed);
    return true;
}

static _Thread_local bool relieved = true;

void
memory_set_relief(bool is_relieved)
{
    relieved = is_relieved;
}

bool
memory_charge(struct memory_account *account, enum memory_kind kind, size_t bytes)
{
    const struct memory_hooks *hooks;

    if (!account)
        return true;
    if (bytes <= INT64_MAX && try_charge(account, kind, (int64_t)bytes))
        return true;
    hooks = &account->hooks;
    if (bytes <= INT64_MAX && hooks->relieve && relieved && hooks->relieve(hooks->context, kind, bytes) &&
        try_charge(account, kind, (int64_t)bytes))
        return true;
    atomic_fetch_add_explicit(&account->refusals, 1, memory_order_relaxed);
    return false;
}

static void
add(struct memory_account *account, enum memory_kind kind, int64_t bytes)
{
    if (!account)
        return;
    atomic_fetch_add_explicit(&account->groups[group_of[kind]].used, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&account->kinds[kind], bytes, memory_order_relaxed);
}

void
memory_charge_anyway(struct memory_account *account, enum memory_kind kind, size_t bytes)
{
    add(account, kind, (int64_t)bytes);
}

void
memory_uncharge(struct memory_account *account, enum memory_kind kind, size_t bytes)
{
    add(account, kind, -(int64_t)bytes);
}

bool
memory_is_full(struct memory_account *account, enum memory_kind kind)
{
    enum memory_group group = group_of[kind];

    return account && atomic_load_explicit(&account->groups[group].used, memory_order_relaxed) >=
                          account->groups[group].share;
}

uint64_t
memory_left(struct memory_account *account, enum memory_kind kind)
{
    enum memory_group group = group_of[kind];
    int64_t left;

    if (!account)
        return UINT64_MAX;
    left = account->groups[group].share -
           atomic_load_explicit(&account->groups[group].used, memory_order_relaxed);
    return left > 0 ? (uint64_t)left : 0;
}

uint64_t
memory_used(struct memory_account *account, enum memory_kind kind)
{
    int64_t used = account ? atomic_load_explicit(&account->kinds[kind], memory_order_relaxed) : 0;

    return used > 0 ? (uint64_t)used : 0;
}

uint64_t
memory_refusals(struct memory_account *account)
{
    return account ? atomic_load_explicit(&account->refusals, memory_order_relaxed) : 0;
}

bool
memory_reclaim(struct memory_account *account, size_t bytes)
{
    return account && account->hooks.reclaim &&
           account->hooks.reclaim(account->hooks.context, bytes);
}

void *
memory_realloc(struct memory_account *account, void *old, size_t bytes)
{
    void *memory = realloc(old, bytes);

    if (!memory && memory_reclaim(account, bytes))
        memory = realloc(old, bytes);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

void *
memory_calloc(struct memory_account *account, size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (!memory && memory_reclaim(account, bytes))
        memory = calloc(1, bytes);
    if (!memory)
        errno = ENOMEM;
    return memory;
}

void *
memory_arena_alloc(struct memory_account *account, size_t bytes)
{
    void *memory = arena_alloc(bytes);

    if (!memory && memory_reclaim(account, bytes))
        memory = arena_alloc(bytes);
    return memory;
}
