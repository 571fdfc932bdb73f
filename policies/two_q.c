/*
 * 2Q, the full version. A new page enters a FIFO queue (Ain) with a share of the capacity (Kin, a
 * quarter); a hit there changes nothing. The key of a page that is evicted from Ain is remembered
 * in a ghost queue (Aout) of another share (Kout, a half). A page that is requested while its key
 * is in Aout enters an LRU list (Am).
 *
 * Am is capped at the capacity less Kin, as in libCacheSim: a page that enters Am evicts from Am
 * until Am fits, even where Ain is below its share. With pages of one size the cap is never met,
 * because Ain is never below its share once the cache is full; with sizes in bytes it is. A page
 * that is larger than Am's share (possible where Kin is over a half) enters Ain again.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

#define TWO_Q_BYTES ((UINT64_C(1) << 63) - 1)

struct two_q_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes : 63;
    uint64_t is_main : 1; /* in Am */
};

struct policy {
    struct list in;   /* Ain, the oldest first */
    struct list main; /* Am, the least recently requested first */
    struct share in_share, main_share;
    struct ghost out;                 /* Aout */
    bool enters_main;                 /* the page of the last admit() was in Aout, and fits Am */
    double in_fraction, out_fraction; /* Kin and Kout, of the capacity */
};

enum { PARAM_KIN, PARAM_KOUT };

static uint64_t
two_q_bytes(const void *node)
{
    return ((const struct two_q_node *)node)->bytes;
}

static void
two_q_resize(struct policy *policy, const struct policy_config *config)
{
    struct share out = share_of(config, policy->out_fraction);

    policy->in_share = share_of(config, policy->in_fraction);
    policy->main_share = share_rest(config, policy->in_share);
    ghost_limit(&policy->out, out.pages, out.bytes);
}

static struct policy *
two_q_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->in);
    list_init(&policy->main);
    ghost_init(&policy->out, 0, 0);
    policy->enters_main = false;
    policy->in_fraction = policy_param_value(ops, config, PARAM_KIN);
    policy->out_fraction = policy_param_value(ops, config, PARAM_KOUT);
    two_q_resize(policy, config);
    return policy;
}

static void
two_q_destroy(struct policy *policy)
{
    ghost_free(&policy->out);
    free(policy);
}

static bool
two_q_admit(struct policy *policy, const struct policy_page *page)
{
    policy->enters_main = ghost_take(&policy->out, page->key) && policy->main_share.pages > 0 &&
                          share_can_hold(&policy->main_share, page->bytes);
    return share_can_hold(&policy->in_share, page->bytes);
}

static int
two_q_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct two_q_node *inserted = node;

    inserted->key = page->key;
    inserted->bytes = page->bytes & TWO_Q_BYTES;
    inserted->is_main = policy->enters_main;
    list_add_last(policy->enters_main ? &policy->main : &policy->in, inserted, inserted->bytes);
    policy->enters_main = false;
    return 0;
}

static void
two_q_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct two_q_node *requested = node;

    (void)page;
    if (requested->is_main)
        list_move_last(&policy->main, requested);
}

/* The page that has just entered Am is the last of it, and fits by itself: it is not evicted. */
static bool
two_q_has_surplus(const struct policy *policy)
{
    return share_is_exceeded(&policy->main_share, &policy->main);
}

static void *
two_q_victim(struct policy *policy)
{
    void *oldest = list_first(&policy->main);

    if (oldest && (!share_is_exceeded(&policy->in_share, &policy->in) || two_q_has_surplus(policy)))
        return oldest;
    return list_first(&policy->in);
}

static void
two_q_remove(struct policy *policy, void *node, bool evicted)
{
    struct two_q_node *removed = node;

    list_remove(removed->is_main ? &policy->main : &policy->in, removed, removed->bytes);
    if (evicted && !removed->is_main)
        ghost_add(&policy->out, removed->key, removed->bytes);
}

/* No page that is cached has its key in Aout. */
static bool
two_q_list_is_valid(const struct policy *policy, const struct list *list, bool is_main)
{
    for (const struct two_q_node *node = list_first(list); node; node = list_next(list, node)) {
        if (node->is_main != is_main || ghost_has(&policy->out, node->key))
            return false;
    }
    return list_is_valid(list, two_q_bytes);
}

static bool
two_q_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->in.pages + policy->main.pages == count &&
           policy->in.bytes + policy->main.bytes == bytes &&
           two_q_list_is_valid(policy, &policy->in, false) &&
           two_q_list_is_valid(policy, &policy->main, true) && ghost_is_valid(&policy->out);
}

static const struct policy_param params[] = {
    [PARAM_KIN] = {.name = "kin",
                   .start = 0.25,
                   .low = 0.0001,
                   .high = 1,
                   .meaning = "share of the capacity of the queue of new pages (Ain)"},
    [PARAM_KOUT] = {.name = "kout",
                    .start = 0.5,
                    .low = 0,
                    .high = 16,
                    .meaning = "evicted pages remembered (Aout), as a multiple of the capacity"},
    {.name = NULL},
};

const struct policy_ops policy_two_q = {
    .name = "2q",
    .summary = "Evicts new pages by FIFO, and pages requested again later by LRU.",
    .source = "T. Johnson, D. Shasha, 2Q, VLDB 1994, section 3 (full version)",
    .sizes = "Shares are in bytes; a page larger than the FIFO queue's share is not admitted.",
    .cost = "O(1); a hit in the queue costs nothing.",
    .params = params,
    .node_size = sizeof(struct two_q_node),
    .create = two_q_create,
    .destroy = two_q_destroy,
    .admit = two_q_admit,
    .insert = two_q_insert,
    .access = two_q_access,
    .insertion_has_surplus = two_q_has_surplus,
    .victim = two_q_victim,
    .remove = two_q_remove,
    .resize = two_q_resize,
    .is_valid = two_q_is_valid,
};
