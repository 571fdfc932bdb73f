/*
 * 2Q, the full version: new pages pass through a FIFO queue (Ain) of a part of the cache (Kin, a
 * quarter), whose hits say nothing yet; who leaves it is remembered (Aout) for another (Kout, a
 * half). Who is asked for again while remembered enters the rest, an LRU list (Am).
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
    struct share in_share;
    struct ghost out;                 /* Aout */
    bool was_out;                     /* the page that was last asked about was remembered */
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
    policy->was_out = false;
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
    policy->was_out = ghost_take(&policy->out, page->key);
    return share_can_hold(&policy->in_share, page->bytes);
}

static int
two_q_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct two_q_node *entering = node;

    entering->key = page->key;
    entering->bytes = page->bytes & TWO_Q_BYTES;
    entering->is_main = policy->was_out;
    list_add_last(policy->was_out ? &policy->main : &policy->in, entering, entering->bytes);
    policy->was_out = false;
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

static void *
two_q_victim(struct policy *policy)
{
    void *oldest = list_first(&policy->main);

    if (oldest && !share_is_exceeded(&policy->in_share, &policy->in))
        return oldest;
    return list_first(&policy->in);
}

static void
two_q_remove(struct policy *policy, void *node, bool evicted)
{
    struct two_q_node *leaving = node;

    list_remove(leaving->is_main ? &policy->main : &policy->in, leaving, leaving->bytes);
    if (evicted && !leaving->is_main)
        ghost_add(&policy->out, leaving->key, leaving->bytes);
}

/* Nobody who is inside is remembered as gone. */
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
                   .meaning = "the share of the cache that new pages pass through (Ain)"},
    [PARAM_KOUT] = {.name = "kout",
                    .start = 0.5,
                    .low = 0,
                    .high = 16,
                    .meaning = "how much of what left that queue is remembered (Aout), in caches"},
    {.name = NULL},
};

const struct policy_ops policy_two_q = {
    .name = "2q",
    .summary = "new pages pass through a short queue; who comes back soon after is kept by LRU",
    .source = "T. Johnson, D. Shasha, 2Q, VLDB 1994, section 3 (full version)",
    .sizes = "The queue has its share of the bytes; a page over that does not enter.",
    .cost = "O(1); a hit in the queue costs nothing.",
    .params = params,
    .node_size = sizeof(struct two_q_node),
    .create = two_q_create,
    .destroy = two_q_destroy,
    .admit = two_q_admit,
    .insert = two_q_insert,
    .access = two_q_access,
    .victim = two_q_victim,
    .remove = two_q_remove,
    .resize = two_q_resize,
    .is_valid = two_q_is_valid,
};
