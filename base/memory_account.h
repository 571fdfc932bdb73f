/*
 * An account of memory with a limit: what a process takes beside its cache, by kind. Each group of
 * kinds has a share of the limit of its own and the shares add up to the limit, so that kinds of
 * different groups cannot use up each other's memory.
 *
 * Accounting only: nothing is allocated for a charge. Its owner decides by two hooks
 * what happens when a charge does not fit and when malloc() fails.
 *
 * Every function is safe on any thread and takes no lock. A charge is two atomic additions, so it
 * belongs to allocations and not to single pieces of a stream. An account of NULL counts nothing
 * and has no limit.
 */
#ifndef SUNPROXY_BASE_MEMORY_ACCOUNT_H
#define SUNPROXY_BASE_MEMORY_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum memory_kind {
    MEMORY_PAGES,    /* pages that are in no cache: under construction, or held by replies */
    MEMORY_FETCHES,  /* transfers from origins, without the pages that they build */
    MEMORY_RECORDS,  /* calls of which only a part has come */
    MEMORY_REQUESTS, /* requests that wait for a fetch or for the peer to read the reply */
    MEMORY_REPLIES,  /* what is copied into or decoded for replies that are not written yet */
    MEMORY_FAILED,   /* pages whose filling has failed, held by replies */
    MEMORY_KINDS
};

enum memory_group {
    MEMORY_GROUP_FETCHING, /* pages and fetches: five eighths of the limit */
    MEMORY_GROUP_CALLS,    /* records: one eighth */
    MEMORY_GROUP_WAITING,  /* requests and replies: one eighth */
    MEMORY_GROUP_FAILED,   /* failed pages: one eighth */
    MEMORY_GROUPS
};

struct memory_hooks {
    /*
     * A charge of `bytes` does not fit. Frees what it can on the calling thread; true: the charge
     * is tried once more. NULL: nothing can be done.
     */
    bool (*relieve)(void *context, enum memory_kind kind, size_t bytes);
    /*
     * malloc() has failed to give `bytes`. True: memory has been freed and the allocation is tried
     * once more. NULL: nothing can be done.
     */
    bool (*reclaim)(void *context, size_t bytes);
    void *context;
};

/* The numbers are read by memory_account's functions; each group has a cache line of its own. */
struct memory_account {
    struct memory_hooks hooks; /* constant */
    _Atomic uint64_t limit;
    struct {
        _Alignas(64) _Atomic int64_t used;
        _Atomic int64_t share;
    } groups[MEMORY_GROUPS];
    /* Below zero for a moment where a page is counted by two caches while one replaces another. */
    _Alignas(64) _Atomic int64_t kinds[MEMORY_KINDS];
    _Atomic uint64_t refusals;
};

/* An account at zero with `limit` bytes. `hooks` is copied; NULL: none. */
void memory_account_init(struct memory_account *account, uint64_t limit,
                         const struct memory_hooks *hooks);

/*
 * Are the charges of the calling thread that do not fit to be relieved by the hook? They are unless
 * this says that they are not: then they are refused at once.
 */
void memory_set_relief(bool relieved);

/* Another limit: what is charged stays charged, also beyond it. */
void memory_account_set_limit(struct memory_account *account, uint64_t limit);

/* Charges `bytes` if the group's share allows; false, and nothing is charged, otherwise. */
bool memory_charge(struct memory_account *account, enum memory_kind kind, size_t bytes);

/* Charges beyond the share, too: for memory that exists already and only changes hands. */
void memory_charge_anyway(struct memory_account *account, enum memory_kind kind, size_t bytes);

void memory_uncharge(struct memory_account *account, enum memory_kind kind, size_t bytes);

/* Is the share of this kind's group used up? */
bool memory_is_full(struct memory_account *account, enum memory_kind kind);

/* Bytes of the share of this kind's group that are not used; UINT64_MAX without an account. */
uint64_t memory_left(struct memory_account *account, enum memory_kind kind);

/* Bytes charged now. */
uint64_t memory_used(struct memory_account *account, enum memory_kind kind);

/* Charges that were refused. */
uint64_t memory_refusals(struct memory_account *account);

/* Asks the owner to free memory after malloc() has failed; true: it is worth another try. */
bool memory_reclaim(struct memory_account *account, size_t bytes);

/*
 * realloc(), malloc() where `old` is NULL, calloc() of one element, and arena_alloc(), that after a
 * failure let the owner reclaim memory and then try once more. NULL with ENOMEM if that fails as
 * well.
 */
void *memory_realloc(struct memory_account *account, void *old, size_t bytes)
    __attribute__((warn_unused_result));
void *memory_calloc(struct memory_account *account, size_t bytes)
    __attribute__((warn_unused_result));
void *memory_arena_alloc(struct memory_account *account, size_t bytes)
    __attribute__((warn_unused_result));

#endif
