/*
 * W-TinyLFU (Einziger, Friedman, Manes 2017, "TinyLFU: A Highly Efficient Cache Admission Policy",
 * section 4): a small LRU window into which every page is inserted, and a main part, an SLRU of
 * probation and protected pages, with admission by frequency.
 *
 * Pages beyond the window's share, the least recently requested first, are moved to main's
 * probation while it has space. Otherwise such a page, the candidate, is compared with main's
 * victim (the least recently requested page on probation, or protected if there is none): the one
 * with fewer requests by the sketch's estimates is evicted, the candidate if they are equal. A hit
 * on probation moves the page to the protected part; pages beyond the protected share return to
 * probation.
 *
 * Our choices, since the paper has pages of one size: shares are of the pages, of the bytes, or of
 * both, as the cache is bounded. A page larger than the window is a candidate at once, and no page
 * is moved out of the window for it. A candidate is compared with each page that would be evicted
 * for it in turn.
 */
#include "policies/list.h"
#include "policies/share.h"
#include "policies/sketch.h"

#include <stdlib.h>

enum part { WINDOW, PROBATION, PROTECTED, PARTS };

struct w_tinylfu_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes : 62;
    uint64_t part : 2;
};

#define MAX_BYTES (UINT64_MAX >> 2)

struct policy {
    struct list parts[PARTS]; /* least recently requested first */
    struct sketch sketch;
    struct share window;
    struct share protected_part;
    double window_fraction;    /* of all */
    double protected_fraction; /* of main */
};

enum { PARAM_WINDOW, PARAM_PROTECTED, PARAM_WIDTH, PARAM_SAMPLE };

static void
w_tinylfu_move(struct policy *policy, struct w_tinylfu_node *node, enum part to)
{
    list_remove(&policy->parts[node->part], node, node->bytes);
    list_add_last(&policy->parts[to], node, node->bytes);
    node->part = to & 3u;
}

static void
w_tinylfu_trim_protected(struct policy *policy)
{
    while (share_is_exceeded(&policy->protected_part, &policy->parts[PROTECTED]))
        w_tinylfu_move(policy, list_first(&policy->parts[PROTECTED]), PROBATION);
}

/*
 * Called before every change but an eviction: the cache is within its capacity then, so pages
 * beyond the window's share were preferred to a victim, or main has space. They are moved to main.
 */
static void
w_tinylfu_settle(struct policy *policy)
{
    while (share_is_exceeded(&policy->window, &policy->parts[WINDOW]))
        w_tinylfu_move(policy, list_first(&policy->parts[WINDOW]), PROBATION);
}

static uint64_t
part_of(uint64_t whole, double fraction)
{
    return whole == UINT64_MAX ? UINT64_MAX : share_times(whole, fraction);
}

static void
w_tinylfu_resize(struct policy *policy, const struct policy_config *config)
{
    struct share rest;

    w_tinylfu_settle(policy);
    policy->window = share_of(config, policy->window_fraction);
    rest = share_rest(config, policy->window);
    policy->protected_part.pages = part_of(rest.pages, policy->protected_fraction);
    policy->protected_part.bytes = part_of(rest.bytes, policy->protected_fraction);
    w_tinylfu_trim_protected(policy);
}

static struct policy *
w_tinylfu_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    if (!sketch_init(&policy->sketch, policy_param_value(ops, config, PARAM_WIDTH),
                     policy_param_value(ops, config, PARAM_SAMPLE))) {
        free(policy);
        return NULL;
    }
    policy->window_fraction = policy_param_value(ops, config, PARAM_WINDOW);
    policy->protected_fraction = policy_param_value(ops, config, PARAM_PROTECTED);
    for (size_t i = 0; i < PARTS; i++)
        list_init(&policy->parts[i]);
    w_tinylfu_resize(policy, config);
    return policy;
}

static void
w_tinylfu_destroy(struct policy *policy)
{
    sketch_free(&policy->sketch);
    free(policy);
}

static uint64_t
w_tinylfu_pages(const struct policy *policy)
{
    return policy->parts[WINDOW].pages + policy->parts[PROBATION].pages +
           policy->parts[PROTECTED].pages;
}

static int
w_tinylfu_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct w_tinylfu_node *node = opaque;

    w_tinylfu_settle(policy);
    sketch_fit(&policy->sketch, w_tinylfu_pages(policy) + 1);
    sketch_count(&policy->sketch, page->key);
    node->key = page->key;
    node->bytes = (page->bytes < MAX_BYTES ? page->bytes : MAX_BYTES) & MAX_BYTES;
    node->part = WINDOW;
    if (!share_can_hold(&policy->window, page->bytes))
        list_add_first(&policy->parts[WINDOW], node, node->bytes);
    else
        list_add_last(&policy->parts[WINDOW], node, node->bytes);
    return 0;
}

static void
w_tinylfu_access(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct w_tinylfu_node *node = opaque;

    (void)page;
    w_tinylfu_settle(policy);
    sketch_count(&policy->sketch, node->key);
    if (node->part == PROBATION) {
        w_tinylfu_move(policy, node, PROTECTED);
        w_tinylfu_trim_protected(policy);
    } else {
        list_move_last(&policy->parts[node->part], node);
    }
}

static void *
w_tinylfu_victim(struct policy *policy)
{
    struct w_tinylfu_node *candidate = list_first(&policy->parts[WINDOW]);
    struct w_tinylfu_node *main_victim = list_first(&policy->parts[PROBATION]);

    if (!main_victim)
        main_victim = list_first(&policy->parts[PROTECTED]);
    if (!main_victim)
        return candidate;
    if (!candidate || !share_is_exceeded(&policy->window, &policy->parts[WINDOW]))
        return main_victim;
    return sketch_estimate(&policy->sketch, candidate->key) >
                   sketch_estimate(&policy->sketch, main_victim->key)
               ? main_victim
               : candidate;
}

static void
w_tinylfu_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct w_tinylfu_node *node = opaque;

    if (!evicted)
        w_tinylfu_settle(policy);
    list_remove(&policy->parts[node->part], node, node->bytes);
}

static uint64_t
w_tinylfu_bytes(const void *node)
{
    return ((const struct w_tinylfu_node *)node)->bytes;
}

static bool
w_tinylfu_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    for (size_t i = 0; i < PARTS; i++) {
        const struct list *part = &policy->parts[i];

        if (!list_is_valid(part, w_tinylfu_bytes))
            return false;
        for (const struct w_tinylfu_node *node = list_first(part); node;
             node = list_next(part, node)) {
            if (node->part != i)
                return false;
        }
        bytes -= part->bytes;
    }
    return w_tinylfu_pages(policy) == count && bytes == 0 && sketch_is_valid(&policy->sketch) &&
           !share_is_exceeded(&policy->protected_part, &policy->parts[PROTECTED]);
}

static const struct policy_param params[] = {
    [PARAM_WINDOW] = {.name = "window",
                      .start = 0.01,
                      .low = 0.0001,
                      .high = 1,
                      .meaning = "share of the capacity of the window"},
    [PARAM_PROTECTED] = {.name = "protected",
                         .start = 0.8,
                         .low = 0,
                         .high = 1,
                         .meaning = "protected share of the main part"},
    [PARAM_WIDTH] = SKETCH_PARAM_WIDTH,
    [PARAM_SAMPLE] = SKETCH_PARAM_SAMPLE,
    {.name = NULL},
};

const struct policy_ops policy_w_tinylfu = {
    .name = "w-tinylfu",
    .summary = "Evicts by LRU; admits to its main part by frequency of requests.",
    .source = "Einziger, Friedman, Manes 2017, TinyLFU: A Highly Efficient Cache Admission Policy, "
              "section 4",
    .sizes =
        "Shares are in bytes, frequency per page; a page must be requested more often than each "
        "page that would be evicted for it.",
    .cost = "O(1), and two estimates of the sketch for an eviction.",
    .params = params,
    .usual = true,
    .node_size = sizeof(struct w_tinylfu_node),
    .enters_first = true,
    .create = w_tinylfu_create,
    .destroy = w_tinylfu_destroy,
    .insert = w_tinylfu_insert,
    .access = w_tinylfu_access,
    .victim = w_tinylfu_victim,
    .remove = w_tinylfu_remove,
    .resize = w_tinylfu_resize,
    .is_valid = w_tinylfu_is_valid,
};
