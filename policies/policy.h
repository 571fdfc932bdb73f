/*
 * The interface of replacement policies. A cache calls a policy for each page that is inserted,
 * requested or removed, and asks it for the next victim. A policy does no I/O, takes no lock and
 * knows no URL. It may use any structure; an order on pages is written with four hooks over the
 * shared heap (heap_policy.h). docs/POLICIES.md describes the policies and how to add one.
 *
 * For each page the cache keeps a node of the size that the policy states, zeroed and aligned to 8
 * bytes, and hands its address to each call. The node belongs to the policy from insert to remove
 * and stays at its address for that time; what a policy needs beyond nodes (a heap's array, say) it
 * allocates itself.
 *
 * Threads: an instance is used under one lock, that of the cache's shard. Instances are
 * independent.
 */
#ifndef SUNPROXY_POLICIES_POLICY_H
#define SUNPROXY_POLICIES_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_MAX_PARAMS 4
#define POLICY_MAX_TEXT 128     /* bytes of a policy with its parameters as text, and a zero byte */
#define POLICY_NEVER UINT64_MAX /* as the number of the next request: there is none */

struct policy; /* one instance; each policy defines its own */

struct policy_config {
    uint64_t capacity_pages; /* 0: not bounded in pages */
    uint64_t capacity_bytes; /* 0: not bounded in bytes */
    uint64_t seed; /* of the generator, for policies that draw; the same seed repeats a run */
    const double
        *params; /* one value for each of ops->params, read by create only; NULL: defaults */
};

/* What a policy may know of a page, as of one request for it. */
struct policy_page {
    uint64_t bytes;   /* as the cache counts them; 1 where every page counts the same */
    uint64_t key;     /* identifies it also after its eviction: a hash (base/hash.h) of the URL */
    uint64_t cost_us; /* what fetching it took; 0: unknown, as in every simulation */
    uint64_t next;    /* number of the next request for it, POLICY_NEVER if there is none or it is
                         unknown; for policies that need the future */
    void *old;        /* for admit() alone: the node of an older page of the same URL, which is
                         removed before this one is inserted; NULL: none */
};

/* A parameter of a policy, as in "lru-k:k=3". */
struct policy_param {
    const char *name; /* in lower case */
    double start;     /* the default */
    double low, high; /* the range, both ends included */
    bool whole;       /* only whole numbers */
    const char *const
        *words;          /* ended by NULL: a choice, its value the word's place; NULL: a number */
    const char *meaning; /* a phrase for listings, without a period */
};

struct policy_ops {
    const char *name;           /* as it is typed after --policy, in lower case */
    const char *const *aliases; /* other names that it is known by, ended by NULL; or NULL: none */
    const char *summary; /* one sentence for listings: which page is evicted. At most 67 characters,
                            48 if needs_future, so that a listing has 80 columns */
    const char *source;  /* paper and section of the rule */
    const char *sizes;   /* one sentence: how it treats sizes */
    const char *cost;    /* one sentence: what a request costs */
    const struct policy_param
        *params;       /* ended by a name of NULL, at most POLICY_MAX_PARAMS; or NULL */
    size_t node_size;  /* bytes of a node */
    const void *hooks; /* what a shared implementation needs, e.g. struct heap_policy_ops */

    /* It needs policy_page.next, which only a simulation knows; no daemon can run it. */
    bool needs_future;

    /* It draws random numbers from the seed of its config: two seeds give two results. */
    bool draws;

    /* Studies compare it where no policies are chosen (simulate, advise and report). */
    bool usual;

    /* It has admit(), which is true for each page that fits without an eviction. */
    bool admits_what_fits;

    /* Does it, with these parameters, look at policy_page.cost_us? No trace has it. NULL: no. */
    bool (*looks_at_cost)(const double *params);

    /*
     * A new page is inserted first, and then victims are evicted until it fits; it may be one of
     * them. Where this is false victims are evicted first, and the new page is never among them.
     */
    bool enters_first;

    /* A new instance, or NULL when there is no memory. */
    struct policy *(*create)(const struct policy_ops *ops, const struct policy_config *config);

    /* Frees what create() returned; nodes of cached pages are not touched. */
    void (*destroy)(struct policy *policy);

    /*
     * Inserts a page. 0, or -1 without memory, in which case nothing has changed. Right after a
     * remove it cannot fail: the memory of the removed page is enough, so that a cache never evicts
     * for a page that it then cannot insert. Where memory for anything else (ghosts, history) is
     * not available the policy works without it.
     */
    int (*insert)(struct policy *policy, void *node, const struct policy_page *page);

    /*
     * Is this page admitted? Called once for each page that was missed and is to be stored, before
     * victims are chosen for it; a policy may adapt itself here. False: it is not inserted, and
     * nothing is evicted. After true insert() follows with the same page, with only removes (of an
     * older page of the same URL, and of victims) between, unless memory runs out or the page
     * proves to be too large: the next admit() is then for another page. NULL: always.
     */
    bool (*admit)(struct policy *policy, const struct policy_page *page);

    /* A hit; `page` has the bytes that the page was inserted with. Cannot fail. */
    void (*access)(struct policy *policy, void *node, const struct policy_page *page);

    /*
     * Asked after access(), and after insert(): must pages be evicted although the cache is within
     * its capacity, because a part of it is over its share? Victims are evicted until this is
     * false; the page that was requested is not among them. NULL: never. SLRU has the first, 2Q
     * the second.
     */
    bool (*hit_has_surplus)(const struct policy *policy);
    bool (*insertion_has_surplus)(const struct policy *policy);

    /*
     * The next victim, or NULL if no page is cached. Does not remove it: the cache calls remove. It
     * may change the order (a hand moves on), but a second call without a change between gives the
     * same node.
     */
    void *(*victim)(struct policy *policy);

    /*
     * Removes a page: `evicted` as a victim, which a policy with ghosts remembers; otherwise
     * because it was purged, replaced, or is too large for a new capacity. Cannot fail.
     */
    void (*remove)(struct policy *policy, void *node, bool evicted);

    /*
     * Sets the capacity to that of `config`; cached pages beyond it are evicted after this call.
     * Parameters stay as they are. Cannot fail. NULL for a policy that ignores the capacity.
     */
    void (*resize)(struct policy *policy, const struct policy_config *config);

    /*
     * True if exactly `count` pages are cached, with a sum of `bytes` if the policy keeps one, and
     * all structures agree. For tests; O(n).
     */
    bool (*is_valid)(const struct policy *policy, uint64_t count, uint64_t bytes);
};

/* The registry: every policy, in the order of listings, ended by NULL. */
extern const struct policy_ops *const policies[];

/* The policy of that name or alias, in any case and with or without hyphens ("S3FIFO", "s3-fifo"),
 * or NULL.
 */
const struct policy_ops *policy_find(const char *name);

/* A policy with its parameters. */
struct policy_spec {
    const struct policy_ops *ops;     /* NULL: no cache at all */
    double params[POLICY_MAX_PARAMS]; /* those beyond the policy's own are 0 */
};

/* That policy with its defaults; of NULL, no cache. */
struct policy_spec policy_spec_of(const struct policy_ops *ops);

/*
 * Reads "lru", "lru-k:k=3" or "none", names in any case. False if that is no policy, or a parameter
 * or a value that it does not have, with a sentence in `why` that names the nearest right one.
 */
bool policy_parse(const char *text, struct policy_spec *spec, char *why, size_t why_size);

/*
 * The same as text that reads back equal, with only the parameters that are off their defaults.
 * POLICY_MAX_TEXT is enough. Returns text.
 */
const char *policy_format(const struct policy_spec *spec, char *text, size_t size);

/* The same policy with the same parameters? */
bool policy_spec_equal(const struct policy_spec *a, const struct policy_spec *b);

/* Does it look at policy_page.cost_us, so that a simulation does not do what a daemon does? */
bool policy_looks_at_cost(const struct policy_spec *spec);

/* The policy that has the name or alias nearest to a wrong one; NULL if none is near. */
const struct policy_ops *policy_nearest(const char *name);

/* How many parameters a policy has. */
size_t policy_param_count(const struct policy_ops *ops);

/* For a policy's create: the value of its i-th parameter. */
double policy_param_value(const struct policy_ops *ops, const struct policy_config *config,
                          size_t i);

#endif
