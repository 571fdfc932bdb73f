/*
 * A cache of numbered pages that drives one policy as policies/policy.h has it: what a simulation
 * does, as plainly as can be, for tests of policies. Every step can be checked with is_valid().
 * What is done for each request is no ck_assert where it holds: those write to a file each time.
 */
#ifndef SUNPROXY_TESTS_POLICIES_DRIVEN_H
#define SUNPROXY_TESTS_POLICIES_DRIVEN_H

#include "policies/policy.h"

#include <stdlib.h>

#include "tests/unit/policies/wanted.h"
#include "tests/unit/unit.h"

struct driven {
    struct policy_spec spec;
    struct policy *policy;
    struct policy_config config;
    unsigned char *nodes; /* one for each id */
    uint64_t *bytes;      /* likewise; as it entered */
    bool *inside;
    uint32_t ids;
    uint64_t page_count, byte_count;
    uint64_t evictions;
    bool checks;       /* is_valid() after each step */
    uint32_t *victims; /* of the last request, in order */
    size_t victim_count;
};

static inline void *
driven_node(struct driven *d, uint32_t id)
{
    return d->nodes + (size_t)id * ((d->spec.ops->node_size + 7) & ~(size_t)7);
}

static inline void
driven_check(struct driven *d)
{
    if (d->checks && !d->spec.ops->is_valid(d->policy, d->page_count, d->byte_count))
        ck_abort_msg("%s is not valid", d->spec.ops->name);
}

static inline void
driven_begin_spec(struct driven *d, const struct policy_spec *spec, uint32_t ids, uint64_t pages,
                  uint64_t bytes)
{
    *d = (struct driven){.spec = *spec, .ids = ids};
    d->config = (struct policy_config){
        .capacity_pages = pages, .capacity_bytes = bytes, .seed = 1, .params = d->spec.params};
    d->policy = d->spec.ops->create(d->spec.ops, &d->config);
    d->config.params = NULL;
    d->nodes = calloc(ids, (d->spec.ops->node_size + 7) & ~(size_t)7);
    d->bytes = calloc(ids, sizeof(*d->bytes));
    d->inside = calloc(ids, sizeof(*d->inside));
    d->victims = calloc(ids, sizeof(*d->victims));
    ck_assert(d->policy && d->nodes && d->bytes && d->inside && d->victims);
}

/* `text` as on a command line. */
static inline void
driven_begin(struct driven *d, const char *text, uint32_t ids, uint64_t pages, uint64_t bytes)
{
    struct policy_spec spec;
    char why[200] = "";

    ck_assert_msg(policy_parse(text, &spec, why, sizeof(why)), "%s: %s", text, why);
    ck_assert_ptr_nonnull(spec.ops);
    driven_begin_spec(d, &spec, ids, pages, bytes);
}

static inline void
driven_end(struct driven *d)
{
    d->spec.ops->destroy(d->policy);
    free(d->nodes);
    free(d->bytes);
    free(d->inside);
    free(d->victims);
}

static inline void
driven_remove(struct driven *d, uint32_t id, bool evicted)
{
    if (!d->inside[id])
        ck_abort_msg("%s: a page that is not cached cannot be evicted", d->spec.ops->name);
    d->spec.ops->remove(d->policy, driven_node(d, id), evicted);
    d->inside[id] = false;
    d->page_count--;
    d->byte_count -= d->bytes[id];
    driven_check(d);
}

static inline bool
driven_fits(const struct driven *d, uint64_t pages, uint64_t bytes)
{
    return (!d->config.capacity_pages || d->page_count + pages <= d->config.capacity_pages) &&
           (!d->config.capacity_bytes || d->byte_count + bytes <= d->config.capacity_bytes);
}

static inline void
driven_evict(struct driven *d)
{
    size_t stride = (d->spec.ops->node_size + 7) & ~(size_t)7;
    unsigned char *victim = d->spec.ops->victim(d->policy);
    uint32_t id;

    if (!victim || victim != d->spec.ops->victim(d->policy))
        ck_abort_msg("%s has no victim, or changed its mind", d->spec.ops->name);
    driven_check(d);
    id = (uint32_t)((size_t)(victim - d->nodes) / stride);
    d->victims[d->victim_count++] = id;
    d->evictions++;
    driven_remove(d, id, true);
}

static inline void
driven_enter(struct driven *d, uint32_t id, const struct policy_page *page)
{
    memset(driven_node(d, id), 0, d->spec.ops->node_size);
    if (d->spec.ops->insert(d->policy, driven_node(d, id), page) != 0)
        ck_abort_msg("%s: a page could not enter", d->spec.ops->name);
    d->inside[id] = true;
    d->bytes[id] = page->bytes;
    d->page_count++;
    d->byte_count += page->bytes;
    driven_check(d);
}

/* One request; true on a hit. A key of 0 stands for one that is made from the id. */
static inline bool
driven_request(struct driven *d, uint32_t id, struct policy_page page)
{
    d->victim_count = 0;
    if (!page.key)
        page.key = (id + 1) * 0x9e3779b97f4a7c15u;
    if (d->inside[id]) {
        page.bytes = d->bytes[id];
        d->spec.ops->access(d->policy, driven_node(d, id), &page);
        driven_check(d);
        while (d->spec.ops->hit_has_surplus && d->spec.ops->hit_has_surplus(d->policy))
            driven_evict(d);
        d->victim_count = 0; /* victims of a hit are not named */
        return true;
    }
    if (d->config.capacity_bytes && page.bytes > d->config.capacity_bytes)
        return false;
    if (d->spec.ops->admit) {
        bool enters = d->spec.ops->admit(d->policy, &page);

        driven_check(d);
        if (!enters)
            return false;
    }
    if (d->spec.ops->enters_first) {
        driven_enter(d, id, &page);
        while (!driven_fits(d, 0, 0))
            driven_evict(d);
    } else {
        while (!driven_fits(d, 1, page.bytes))
            driven_evict(d);
        driven_enter(d, id, &page);
    }
    while (d->spec.ops->insertion_has_surplus && d->spec.ops->insertion_has_surplus(d->policy))
        driven_evict(d);
    return false;
}

/* Another capacity: pages that no longer fit are removed, then victims are evicted. */
static inline void
driven_resize(struct driven *d, uint64_t pages, uint64_t bytes)
{
    d->victim_count = 0;
    d->config.capacity_pages = pages;
    d->config.capacity_bytes = bytes;
    if (d->spec.ops->resize)
        d->spec.ops->resize(d->policy, &d->config);
    driven_check(d);
    for (uint32_t id = 0; id < d->ids; id++) {
        if (d->inside[id] && bytes && d->bytes[id] > bytes)
            driven_remove(d, id, false);
    }
    while (!driven_fits(d, 0, 0))
        driven_evict(d);
}

/* ---- by hand: pages 'a' to 'z', every step checked ------------------------------------------- */

static inline void
driven_begin_letters(struct driven *d, const char *text, uint64_t pages, uint64_t bytes)
{
    driven_begin(d, text, 26, pages, bytes);
    d->checks = true;
}

/* Each letter is a request of a page of one byte: "." a hit, "+" a miss, and the pages evicted for
 * it. */
static inline const char *
driven_play(struct driven *d, const char *pages)
{
    static char events[200];
    size_t n = 0;

    for (; *pages; pages++) {
        uint32_t id = (uint32_t)(*pages - 'a');

        events[n++] = driven_request(d, id, (struct policy_page){.bytes = 1}) ? '.' : '+';
        for (size_t i = 0; i < d->victim_count; i++)
            events[n++] = (char)('a' + d->victims[i]);
    }
    events[n] = '\0';
    return events;
}

#endif
