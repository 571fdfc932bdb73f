/*
 * An evictor: an instance of a policy under a capacity, and the one loop of admission and eviction
 * that cache and simulator run. It takes one request at a time and knows neither URLs nor traces,
 * so that any owner that finds cached pages and their nodes can use it, beside a live cache too.
 *
 * The owner finds pages and allocates their nodes. The evictor decides which pages are inserted and
 * which are evicted, counts the cached ones, and calls the owner's hooks for each insertion and
 * removal. On a hit the owner calls evictor_hit(), on a miss evictor_enter().
 *
 * The functions that call hooks are inlined wherever they are used: with a constant struct of hooks
 * no indirect call is left for them. As calls they cost a simulation of LRU 12 % more instructions
 * and some 15 % more CPU time.
 *
 * Threads: one at a time, as for a policy.
 */
#ifndef SUNPROXY_POLICIES_EVICTOR_H
#define SUNPROXY_POLICIES_EVICTOR_H

#ifdef SUNPROXY_CHECK_EACH_STEP
#include <assert.h>
#endif

#include "policies/policy.h"

struct evictor {
    const struct policy_ops *ops; /* NULL: no policy, and only the counts may be used */
    struct policy *policy;        /* owned */
    uint64_t max_pages;           /* UINT64_MAX: not bounded */
    uint64_t max_bytes;           /* likewise */
    uint64_t pages;               /* cached */
    uint64_t bytes;               /* of those, each as it was inserted */
    uint64_t insertions;          /* pages that were inserted and not evicted at once */
    uint64_t evictions;           /* pages evicted because of the capacity, other than new ones */
};

/* The outcome of evictor_enter(). */
enum evictor_outcome {
    EVICTOR_ENTERED,
    EVICTOR_TOO_LARGE,    /* larger than the capacity */
    EVICTOR_NOT_ADMITTED, /* the policy did not admit it */
    EVICTOR_PASSED_ON,    /* inserted, and evicted at once; others may have been evicted too */
    EVICTOR_NO_MEMORY,    /* in the policy */
};

/* Why a page is removed. */
enum evictor_departure {
    EVICTOR_EVICTED,  /* as a victim */
    EVICTOR_SURPLUS,  /* as a victim of a hit: see hit_has_surplus in policy.h */
    EVICTOR_REPLACED, /* by a newer page of the same URL */
    EVICTOR_REJECTED, /* it is the new page, and the victim */
};

/* The owner's side. `owner` is what the evictor's function was called with. */
struct evictor_hooks {
    /*
     * A zeroed node for a new page. Called after its admission, when the victims that are evicted
     * before it have been unlinked, so that their memory can be used again. Cannot fail.
     */
    void *(*node)(void *owner);

    /* The new page is cached from now on. */
    void (*link)(void *owner, void *node);

    /*
     * A page was removed; its node is the owner's again. Returns the bytes that it was inserted
     * with.
     */
    uint64_t (*unlink)(void *owner, void *node, enum evictor_departure why);
};

/* An empty evictor; false without memory. The params of `config` are those of `spec`. */
bool evictor_init(struct evictor *evictor, const struct policy_spec *spec,
                  const struct policy_config *config);

/* Frees the policy. Nodes are not touched, and no hook is called. Harmless on a zeroed evictor. */
void evictor_free(struct evictor *evictor);

/* Sets another capacity, also of the policy; evictor_shrink() then evicts what is beyond it. */
void evictor_resize(struct evictor *evictor, const struct policy_config *config);

/* For tests: the policy agrees with the counts, and they are within the capacity; O(n). */
bool evictor_is_valid(const struct evictor *evictor);

/*
 * After each step: a build with VARIANT=debug checks that policy and counts agree, at O(n); others
 * do nothing.
 */
static inline void
evictor_check(const struct evictor *evictor)
{
#ifdef SUNPROXY_CHECK_EACH_STEP
    assert(evictor->ops->is_valid(evictor->policy, evictor->pages, evictor->bytes));
#else
    (void)evictor;
#endif
}

/* Can a page of that size be cached at all? */
static inline bool
evictor_can_hold(const struct evictor *evictor, uint64_t bytes)
{
    return bytes <= evictor->max_bytes;
}

static inline bool
evictor_is_full(const struct evictor *evictor)
{
    return evictor->pages > evictor->max_pages || evictor->bytes > evictor->max_bytes;
}

/* Removes a page that is no victim (a purge); calls no hook. `bytes`: as it was inserted. */
static inline void
evictor_remove(struct evictor *evictor, void *node, uint64_t bytes)
{
    evictor->ops->remove(evictor->policy, node, false);
    evictor->pages--;
    evictor->bytes -= bytes;
    evictor_check(evictor);
}

#define EVICTOR_INLINE static inline __attribute__((always_inline))

EVICTOR_INLINE void
evictor_take_out_(struct evictor *evictor, void *node, bool evicted, enum evictor_departure why,
                  const struct evictor_hooks *hooks, void *owner)
{
    evictor->ops->remove(evictor->policy, node, evicted);
    evictor->pages--;
    evictor->bytes -= hooks->unlink(owner, node, why);
    evictor_check(evictor);
}

EVICTOR_INLINE void *
evictor_victim_(struct evictor *evictor)
{
    void *victim = evictor->ops->victim(evictor->policy);

    evictor_check(evictor);
    return victim;
}

/* Evicts one page; at least one is cached. */
EVICTOR_INLINE void
evictor_evict(struct evictor *evictor, enum evictor_departure why,
              const struct evictor_hooks *hooks, void *owner)
{
    evictor_take_out_(evictor, evictor_victim_(evictor), true, why, hooks, owner);
    evictor->evictions++;
}

/* Evicts until the cached pages are within the capacity. */
EVICTOR_INLINE void
evictor_shrink(struct evictor *evictor, const struct evictor_hooks *hooks, void *owner)
{
    while (evictor_is_full(evictor))
        evictor_evict(evictor, EVICTOR_EVICTED, hooks, owner);
}

/*
 * A hit; page->bytes are those that the page was inserted with. True if others were evicted
 * for it.
 */
EVICTOR_INLINE bool
evictor_hit(struct evictor *evictor, void *node, const struct policy_page *page,
            const struct evictor_hooks *hooks, void *owner)
{
    const struct policy_ops *ops = evictor->ops;
    bool evicted = false;

    ops->access(evictor->policy, node, page);
    evictor_check(evictor);
    if (ops->hit_has_surplus) {
        while (ops->hit_has_surplus(evictor->policy)) {
            evictor_evict(evictor, EVICTOR_SURPLUS, hooks, owner);
            evicted = true;
        }
    }
    return evicted;
}

/*
 * A miss whose page is to be inserted. If page->old is set, that page is removed once the new one
 * is admitted. Then victims are evicted until the page fits, and it is inserted; under a policy
 * whose new pages compete (enters_first) it is inserted before they are evicted. A surplus (see
 * insertion_has_surplus in policy.h) is evicted last. After EVICTOR_TOO_LARGE, EVICTOR_NOT_ADMITTED
 * and EVICTOR_NO_MEMORY no page has been removed, and a node that was given is the owner's again.
 */
EVICTOR_INLINE enum evictor_outcome
evictor_enter(struct evictor *evictor, const struct policy_page *page,
              const struct evictor_hooks *hooks, void *owner)
{
    const struct policy_ops *ops = evictor->ops;
    const uint64_t bytes = page->bytes;
    void *node;

    if (!evictor_can_hold(evictor, bytes))
        return EVICTOR_TOO_LARGE;
    if (ops->admit) {
        bool admitted = ops->admit(evictor->policy, page);

        evictor_check(evictor);
        if (!admitted)
            return EVICTOR_NOT_ADMITTED;
    }
    if (page->old)
        evictor_take_out_(evictor, page->old, false, EVICTOR_REPLACED, hooks, owner);
    if (!ops->enters_first)
        while (evictor->pages >= evictor->max_pages || evictor->bytes > evictor->max_bytes - bytes)
            evictor_evict(evictor, EVICTOR_EVICTED, hooks, owner);
    node = hooks->node(owner);
    /* Fails only if no page was removed: see policy.h. */
    if (ops->insert(evictor->policy, node, page) < 0)
        return EVICTOR_NO_MEMORY;
    hooks->link(owner, node);
    evictor->pages++;
    evictor->bytes += bytes;
    evictor_check(evictor);
    if (ops->enters_first)
        while (evictor_is_full(evictor)) {
            void *victim = evictor_victim_(evictor);

            if (victim == node) {
                evictor_take_out_(evictor, node, true, EVICTOR_REJECTED, hooks, owner);
                return EVICTOR_PASSED_ON;
            }
            evictor_take_out_(evictor, victim, true, EVICTOR_EVICTED, hooks, owner);
            evictor->evictions++;
        }
    if (ops->insertion_has_surplus)
        while (ops->insertion_has_surplus(evictor->policy))
            evictor_evict(evictor, EVICTOR_EVICTED, hooks, owner);
    evictor->insertions++;
    return EVICTOR_ENTERED;
}

#endif
