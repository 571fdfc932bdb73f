/*
 * S3-FIFO: new pages are inserted into a small FIFO queue with a tenth of the capacity. At its end
 * a page with two hits or more is moved to the main queue; one with fewer is evicted, and its key
 * is remembered in a ghost queue of nine tenths of the capacity. A page that is requested while it
 * is remembered is inserted into the main queue. The main queue is a FIFO in which a page is
 * reinserted once for each of its hits, three at most.
 *
 * Until the first eviction, pages that come while the small queue is full are inserted into the
 * main queue, as in libCacheSim 0.3.5. By algorithm 1 of the paper every page that is not
 * remembered is inserted into the small queue (fill=small), which then has most of a cache that is
 * being filled.
 *
 * The paper does not treat sizes. A page as large as the small queue is admitted; libCacheSim
 * refuses it, and with it every page of a cache of ten, whose small queue has one page.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

#define MAX_HITS 3u
#define S3_FIFO_BYTES ((UINT64_C(1) << 61) - 1)

struct s3_fifo_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes : 61;
    uint64_t hits : 2; /* stays at MAX_HITS */
    uint64_t is_main : 1;
};

struct policy {
    struct list small, main; /* the oldest first */
    struct share small_share, main_share;
    struct ghost ghost;
    struct s3_fifo_node *victim; /* found, and nothing has changed since; or NULL */
    bool was_ghost;              /* the page of the last admit() was remembered */
    bool has_evicted;
    bool fills_main;    /* fill=main */
    unsigned threshold; /* hits in small for which a page is moved to main */
    double small_fraction, ghost_fraction;
};

enum { PARAM_SMALL, PARAM_GHOST, PARAM_THRESHOLD, PARAM_FILL };

enum s3_fifo_fill { FILL_MAIN, FILL_SMALL };

static uint64_t
s3_fifo_bytes(const void *node)
{
    return ((const struct s3_fifo_node *)node)->bytes;
}

static void
s3_fifo_resize(struct policy *policy, const struct policy_config *config)
{
    struct share ghost = share_of(config, policy->ghost_fraction);

    policy->small_share = share_of(config, policy->small_fraction);
    policy->main_share = share_rest(config, policy->small_share);
    policy->victim = NULL;
    ghost_limit(&policy->ghost, ghost.pages, ghost.bytes);
}

static struct policy *
s3_fifo_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->small);
    list_init(&policy->main);
    ghost_init(&policy->ghost, 0, 0);
    policy->was_ghost = false;
    policy->has_evicted = false;
    policy->small_fraction = policy_param_value(ops, config, PARAM_SMALL);
    policy->ghost_fraction = policy_param_value(ops, config, PARAM_GHOST);
    policy->threshold = (unsigned)policy_param_value(ops, config, PARAM_THRESHOLD);
    policy->fills_main =
        (enum s3_fifo_fill)policy_param_value(ops, config, PARAM_FILL) == FILL_MAIN;
    s3_fifo_resize(policy, config);
    return policy;
}

static void
s3_fifo_destroy(struct policy *policy)
{
    ghost_free(&policy->ghost);
    free(policy);
}

static bool
s3_fifo_admit(struct policy *policy, const struct policy_page *page)
{
    policy->was_ghost = ghost_take(&policy->ghost, page->key);
    return share_can_hold(&policy->small_share, page->bytes);
}

static int
s3_fifo_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct s3_fifo_node *inserted = node;

    inserted->key = page->key;
    inserted->bytes = page->bytes & S3_FIFO_BYTES;
    inserted->hits = 0;
    inserted->is_main = policy->was_ghost || (policy->fills_main && !policy->has_evicted &&
                                              share_is_full(&policy->small_share, &policy->small));
    list_add_last(inserted->is_main ? &policy->main : &policy->small, inserted, inserted->bytes);
    policy->was_ghost = false;
    policy->victim = NULL;
    return 0;
}

static void
s3_fifo_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct s3_fifo_node *requested = node;

    (void)page;
    if (requested->hits < MAX_HITS)
        requested->hits = (requested->hits + 1u) & MAX_HITS;
    policy->victim = NULL;
}

/* The first page without hits; those before it lose a hit and are reinserted. */
static struct s3_fifo_node *
s3_fifo_victim_of_main(struct policy *policy)
{
    struct s3_fifo_node *node;

    while ((node = list_first(&policy->main)) && node->hits) {
        node->hits = (node->hits - 1u) & MAX_HITS;
        list_move_last(&policy->main, node);
    }
    return node;
}

/* The first page with too few hits; those before it are moved to main. NULL: there is none. */
static struct s3_fifo_node *
s3_fifo_victim_of_small(struct policy *policy)
{
    struct s3_fifo_node *node;

    while ((node = list_first(&policy->small)) && node->hits >= policy->threshold) {
        list_remove(&policy->small, node, node->bytes);
        list_add_last(&policy->main, node, node->bytes);
        node->is_main = 1;
        node->hits = 0;
    }
    return node;
}

static void *
s3_fifo_victim(struct policy *policy)
{
    /* Moving pages to main may make it exceed its share, which would give another victim. */
    if (policy->victim)
        return policy->victim;
    if (!share_is_exceeded(&policy->main_share, &policy->main))
        policy->victim = s3_fifo_victim_of_small(policy);
    if (!policy->victim)
        policy->victim = s3_fifo_victim_of_main(policy);
    if (!policy->victim) /* main is empty, with a share of 0 */
        policy->victim = s3_fifo_victim_of_small(policy);
    return policy->victim;
}

static void
s3_fifo_remove(struct policy *policy, void *node, bool evicted)
{
    struct s3_fifo_node *removed = node;

    list_remove(removed->is_main ? &policy->main : &policy->small, removed, removed->bytes);
    policy->victim = NULL;
    if (!evicted)
        return;
    policy->has_evicted = true;
    if (!removed->is_main)
        ghost_add(&policy->ghost, removed->key, removed->bytes);
}

/* No cached page has a ghost. */
static bool
s3_fifo_list_is_valid(const struct policy *policy, const struct list *list, bool is_main)
{
    for (const struct s3_fifo_node *node = list_first(list); node; node = list_next(list, node)) {
        if (node->is_main != is_main || ghost_has(&policy->ghost, node->key))
            return false;
    }
    return list_is_valid(list, s3_fifo_bytes);
}

static bool
s3_fifo_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->small.pages + policy->main.pages == count &&
           policy->small.bytes + policy->main.bytes == bytes &&
           s3_fifo_list_is_valid(policy, &policy->small, false) &&
           s3_fifo_list_is_valid(policy, &policy->main, true) && ghost_is_valid(&policy->ghost);
}

static const char *const fills[] = {[FILL_MAIN] = "main", [FILL_SMALL] = "small", NULL};

static const struct policy_param params[] = {
    [PARAM_SMALL] = {.name = "small",
                     .start = 0.1,
                     .low = 0.0001,
                     .high = 1,
                     .meaning = "share of the capacity of the small queue"},
    [PARAM_GHOST] =
        {.name = "ghost",
         .start = 0.9,
         .low = 0,
         .high = 16,
         .meaning = "pages evicted from the small queue that are remembered, as a multiple of the "
                    "capacity"},
    [PARAM_THRESHOLD] = {.name = "threshold",
                         .start = 2,
                         .low = 1,
                         .high = MAX_HITS,
                         .whole = true,
                         .meaning =
                             "hits in the small queue for which a page moves to the main queue"},
    [PARAM_FILL] = {.name = "fill",
                    .start = FILL_MAIN,
                    .low = FILL_MAIN,
                    .high = FILL_SMALL,
                    .whole = true,
                    .words = fills,
                    .meaning = "where new pages go before the first eviction once the small queue "
                               "is full: main, as in libCacheSim, or small, as in the paper"},
    {.name = NULL},
};

const struct policy_ops policy_s3_fifo = {
    .name = "s3-fifo",
    .summary = "Evicts by FIFO from a small queue of new pages and a main queue.",
    .source =
        "J. Yang et al., FIFO Queues are All You Need for Cache Eviction, SOSP 2023, algorithm 1",
    .sizes = "The small queue has its share of the bytes; a larger page is not admitted.",
    .cost = "A hit counts; an eviction costs O(1), amortised over hits.",
    .params = params,
    .usual = true,
    .node_size = sizeof(struct s3_fifo_node),
    .create = s3_fifo_create,
    .destroy = s3_fifo_destroy,
    .admit = s3_fifo_admit,
    .insert = s3_fifo_insert,
    .access = s3_fifo_access,
    .victim = s3_fifo_victim,
    .remove = s3_fifo_remove,
    .resize = s3_fifo_resize,
    .is_valid = s3_fifo_is_valid,
};
