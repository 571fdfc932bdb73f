/*
 * The loop of admission and eviction, driven one request at a time by an owner that has neither a
 * trace nor numbered pages: pages are found by their keys, as a shadow beside a live cache finds
 * them. Held against the plain loop of driven.h for every policy, and against a scripted policy for
 * the order of the calls.
 */
#include "policies/evictor.h"

#include "base/container_of.h"
#include "policies/list.h"
#include "tests/unit/policies/driven.h"

#define IDS 120u
#define REQUESTS 4000u

/* ---- a shadow -------------------------------------------------------------------------------- */

struct shadow_page {
    struct list_node links; /* first: in the shadow's list */
    uint64_t key;
    uint64_t bytes;
    _Alignas(8) unsigned char node[];
};

struct shadow {
    struct evictor evictor;
    struct list pages;
    uint64_t entering_key, entering_bytes;
    uint64_t victims[IDS]; /* keys, of the last request */
    size_t victim_count;
    unsigned surplus, rejected;
};

static void *
shadow_node(void *owner)
{
    struct shadow *shadow = owner;
    struct shadow_page *page = calloc(1, sizeof(*page) + shadow->evictor.ops->node_size);

    ck_assert_ptr_nonnull(page);
    page->key = shadow->entering_key;
    page->bytes = shadow->entering_bytes;
    return page->node;
}

static void
shadow_link(void *owner, void *node)
{
    struct shadow *shadow = owner;

    list_add_last(&shadow->pages, container_of(node, struct shadow_page, node), 0);
}

static uint64_t
shadow_unlink(void *owner, void *node, enum evictor_departure why)
{
    struct shadow *shadow = owner;
    struct shadow_page *page = container_of(node, struct shadow_page, node);
    uint64_t bytes = page->bytes;

    shadow->surplus += why == EVICTOR_SURPLUS;
    shadow->rejected += why == EVICTOR_REJECTED;
    if (why != EVICTOR_SURPLUS)
        shadow->victims[shadow->victim_count++] = page->key;
    list_remove(&shadow->pages, page, 0);
    free(page);
    return bytes;
}

static const struct evictor_hooks shadow_hooks = {shadow_node, shadow_link, shadow_unlink};

static struct shadow_page *
shadow_find(const struct shadow *shadow, uint64_t key)
{
    struct shadow_page *page = list_first(&shadow->pages);

    while (page && page->key != key)
        page = list_next(&shadow->pages, page);
    return page;
}

/* True on a hit. */
static bool
shadow_request(struct shadow *shadow, uint64_t key, uint64_t bytes)
{
    struct shadow_page *inside = shadow_find(shadow, key);
    struct policy_page page = {.key = key, .bytes = bytes, .next = POLICY_NEVER};

    shadow->victim_count = 0;
    if (inside) {
        page.bytes = inside->bytes;
        evictor_hit(&shadow->evictor, inside->node, &page, &shadow_hooks, shadow);
        return true;
    }
    shadow->entering_key = key;
    shadow->entering_bytes = bytes;
    evictor_enter(&shadow->evictor, &page, &shadow_hooks, shadow);
    return false;
}

static void
shadow_begin(struct shadow *shadow, const struct policy_spec *spec,
             const struct policy_config *config)
{
    *shadow = (struct shadow){0};
    list_init(&shadow->pages);
    ck_assert(evictor_init(&shadow->evictor, spec, config));
}

static void
shadow_end(struct shadow *shadow)
{
    struct shadow_page *page;

    evictor_free(&shadow->evictor);
    while ((page = list_first(&shadow->pages))) {
        list_remove(&shadow->pages, page, 0);
        free(page);
    }
}

/* ---- every policy ---------------------------------------------------------------------------- */

static uint64_t
key_of(uint32_t id)
{
    return (id + 1) * 0x9e3779b97f4a7c15u; /* as driven.h makes them */
}

static void
check_same(const struct shadow *shadow, const struct driven *d, const char *text, unsigned number)
{
    bool same = shadow->evictor.pages == d->page_count && shadow->evictor.bytes == d->byte_count &&
                shadow->pages.pages == d->page_count &&
                shadow->evictor.evictions + shadow->rejected == d->evictions &&
                shadow->victim_count == d->victim_count;

    for (size_t i = 0; same && i < d->victim_count; i++)
        same = shadow->victims[i] == key_of(d->victims[i]);
    ck_assert_msg(same, "%s differs at request %u", text, number);
}

static void
compare(const struct policy_ops *ops, uint64_t pages, uint64_t bytes)
{
    uint64_t dice = pages + bytes, insertions = 0;
    struct shadow shadow;
    struct driven d;

    if (!policy_is_wanted(ops->name))
        return;
    driven_begin(&d, ops->name, IDS, pages, bytes);
    shadow_begin(&shadow, &d.spec, &d.config);
    for (unsigned i = 0; i < REQUESTS; i++) {
        uint32_t id = unit_draw(&dice, 1 + unit_draw(&dice, IDS));
        uint64_t size = unit_draw(&dice, 50) ? 1 + unit_draw(&dice, 60) : 1 + bytes;
        unsigned rejected = shadow.rejected;
        bool hit;

        if (i == REQUESTS / 2) { /* half of the capacity in pages */
            struct policy_config config = {.capacity_pages = (pages + 1) / 2,
                                           .capacity_bytes = bytes};

            driven_resize(&d, config.capacity_pages, config.capacity_bytes);
            shadow.victim_count = 0;
            evictor_resize(&shadow.evictor, &config);
            evictor_shrink(&shadow.evictor, &shadow_hooks, &shadow);
            check_same(&shadow, &d, ops->name, i);
        }
        hit = driven_request(&d, id, (struct policy_page){.bytes = size, .next = POLICY_NEVER});
        ck_assert_msg(shadow_request(&shadow, key_of(id), size) == hit, "%s: request %u is %s hit",
                      ops->name, i, hit ? "a" : "no");
        insertions += !hit && d.inside[id];
        check_same(&shadow, &d, ops->name, i);
        ck_assert(shadow.rejected - rejected == 0 || !d.inside[id]);
    }
    ck_assert(evictor_is_valid(&shadow.evictor));
    ck_assert_uint_eq(shadow.evictor.insertions, insertions);
    ck_assert_uint_gt(shadow.evictor.evictions, 0);
    shadow_end(&shadow);
    driven_end(&d);
}

START_TEST(requests_alone_have_the_outcomes_of_the_plain_loop)
{
    for (const struct policy_ops *const *p = policies; *p; p++) {
        if ((*p)->needs_future)
            continue;
        compare(*p, 25, 0);
        compare(*p, 0, 900);
        compare(*p, 30, 900);
    }
}
END_TEST

/* ---- the order of the calls ------------------------------------------------------------------ */

/* A scripted policy: first in, first out, or the newcomer. Its state is the test's. */
struct policy {
    void *nodes[8];
    unsigned count;
    bool refuses, cannot_insert, newcomer_is_victim;
    unsigned surplus;
};

static struct policy scripted;
static char story[100];

static void
tell(char what)
{
    size_t n = strlen(story);

    ck_assert_uint_lt(n + 1, sizeof(story));
    story[n] = what;
    story[n + 1] = '\0';
}

static struct policy *
scripted_create(const struct policy_ops *ops, const struct policy_config *config)
{
    (void)ops;
    (void)config;
    scripted = (struct policy){0};
    story[0] = '\0';
    return &scripted;
}

static void
scripted_destroy(struct policy *policy)
{
    policy->count = 0;
}

static bool
scripted_admit(struct policy *policy, const struct policy_page *page)
{
    (void)page;
    tell('?');
    return !policy->refuses;
}

static int
scripted_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    tell('+');
    if (policy->cannot_insert)
        return -1;
    policy->nodes[policy->count++] = node;
    return 0;
}

static void
scripted_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)policy;
    (void)node;
    (void)page;
    tell('!');
}

static bool
scripted_has_surplus(const struct policy *policy)
{
    return policy->surplus && policy->count == policy->surplus;
}

static void *
scripted_victim(struct policy *policy)
{
    return policy->nodes[policy->newcomer_is_victim ? policy->count - 1 : 0];
}

static void
scripted_remove(struct policy *policy, void *node, bool evicted)
{
    unsigned i = 0;

    tell(evicted ? '-' : 'x');
    while (policy->nodes[i] != node)
        ck_assert_uint_lt(++i, policy->count);
    for (policy->count--; i < policy->count; i++)
        policy->nodes[i] = policy->nodes[i + 1];
}

static bool
scripted_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes;
    return policy->count == count;
}

static struct policy_ops ops = {
    .name = "scripted",
    .node_size = 8,
    .create = scripted_create,
    .destroy = scripted_destroy,
    .admit = scripted_admit,
    .insert = scripted_insert,
    .access = scripted_access,
    .hit_has_surplus = scripted_has_surplus,
    .insertion_has_surplus = scripted_has_surplus,
    .victim = scripted_victim,
    .remove = scripted_remove,
    .is_valid = scripted_is_valid,
};

/* An owner with a node for each letter, all of one byte. */
struct letters {
    struct evictor evictor;
    uint64_t nodes[26];
    unsigned entering;
};

static char
letter_of(const struct letters *letters, const void *node)
{
    return (char)('a' + ((const uint64_t *)node - letters->nodes));
}

static void *
give_node(void *owner)
{
    struct letters *letters = owner;

    tell('n');
    return &letters->nodes[letters->entering];
}

static void
link_letter(void *owner, void *node)
{
    tell((char)(letter_of(owner, node) - 'a' + 'A'));
}

static uint64_t
unlink_letter(void *owner, void *node, enum evictor_departure why)
{
    tell(letter_of(owner, node));
    tell((char)('0' + (int)why));
    return 1;
}

static const struct evictor_hooks letter_hooks = {give_node, link_letter, unlink_letter};

static struct letters *
letters_begin(uint64_t pages)
{
    static struct letters letters;
    struct policy_spec spec = policy_spec_of(&ops);
    struct policy_config config = {.capacity_pages = pages, .capacity_bytes = 100};

    letters = (struct letters){0};
    ck_assert(evictor_init(&letters.evictor, &spec, &config));
    return &letters;
}

/* A letter enters, in the place of another one if `old` is set; what was called meanwhile. */
static const char *
enter(struct letters *letters, char letter, char old, enum evictor_outcome expected)
{
    struct policy_page page = {.bytes = 1, .old = old ? &letters->nodes[old - 'a'] : NULL};

    story[0] = '\0';
    letters->entering = (unsigned)(letter - 'a');
    ck_assert_int_eq(evictor_enter(&letters->evictor, &page, &letter_hooks, letters), expected);
    return story;
}

START_TEST(victims_are_evicted_before_a_newcomer_has_a_node)
{
    struct letters *l = letters_begin(2);

    ops.enters_first = false;
    ck_assert_str_eq(enter(l, 'a', 0, EVICTOR_ENTERED), "?n+A");
    ck_assert_str_eq(enter(l, 'b', 0, EVICTOR_ENTERED), "?n+B");
    ck_assert_str_eq(enter(l, 'c', 0, EVICTOR_ENTERED), "?-a0n+C");
    ck_assert_uint_eq(l->evictor.insertions, 3);
    ck_assert_uint_eq(l->evictor.evictions, 1);
    ck_assert_uint_eq(l->evictor.pages, 2);
    ck_assert_uint_eq(l->evictor.bytes, 2);
    ck_assert(evictor_is_valid(&l->evictor));
}
END_TEST

START_TEST(newcomers_that_compete_enter_before_victims_are_evicted)
{
    struct letters *l = letters_begin(1);

    ops.enters_first = true;
    enter(l, 'a', 0, EVICTOR_ENTERED);
    ck_assert_str_eq(enter(l, 'b', 0, EVICTOR_ENTERED), "?n+B-a0");
    scripted.newcomer_is_victim = true;
    ck_assert_str_eq(enter(l, 'c', 0, EVICTOR_PASSED_ON), "?n+C-c3");
    ops.enters_first = false;
    ck_assert_uint_eq(l->evictor.insertions, 2);
    ck_assert_uint_eq(l->evictor.evictions, 1);
    ck_assert_uint_eq(l->evictor.pages, 1);
}
END_TEST

START_TEST(an_older_page_is_removed_once_the_newer_is_admitted)
{
    struct letters *l = letters_begin(2);

    enter(l, 'a', 0, EVICTOR_ENTERED);
    enter(l, 'b', 0, EVICTOR_ENTERED);
    scripted.refuses = true;
    ck_assert_str_eq(enter(l, 'c', 'b', EVICTOR_NOT_ADMITTED), "?");
    ck_assert_uint_eq(l->evictor.pages, 2);
    scripted.refuses = false;
    ck_assert_str_eq(enter(l, 'c', 'b', EVICTOR_ENTERED), "?xb2n+C");
    ck_assert_uint_eq(l->evictor.evictions, 0);
    ck_assert_uint_eq(l->evictor.pages, 2);
}
END_TEST

START_TEST(what_is_too_large_or_has_no_memory_changes_nothing)
{
    struct letters *l = letters_begin(2);
    struct policy_page large = {.bytes = 101};

    story[0] = '\0';
    ck_assert_int_eq(evictor_enter(&l->evictor, &large, &letter_hooks, l), EVICTOR_TOO_LARGE);
    ck_assert_str_eq(story, "");
    scripted.cannot_insert = true;
    ck_assert_str_eq(enter(l, 'a', 0, EVICTOR_NO_MEMORY), "?n+");
    ck_assert_uint_eq(l->evictor.pages + l->evictor.bytes + l->evictor.insertions, 0);
}
END_TEST

START_TEST(a_hit_evicts_the_surplus)
{
    struct letters *l = letters_begin(3);
    struct policy_page page = {.bytes = 1};

    enter(l, 'a', 0, EVICTOR_ENTERED);
    enter(l, 'b', 0, EVICTOR_ENTERED);
    story[0] = '\0';
    ck_assert(!evictor_hit(&l->evictor, &l->nodes[1], &page, &letter_hooks, l));
    ck_assert_str_eq(story, "!");
    scripted.surplus = 2;
    ck_assert(evictor_hit(&l->evictor, &l->nodes[1], &page, &letter_hooks, l));
    ck_assert_str_eq(story, "!!-a1");
    ck_assert_uint_eq(l->evictor.evictions, 1);
    ck_assert_uint_eq(l->evictor.pages, 1);
}
END_TEST

/* As 2Q's: the new page pushes a part of the cache over its share. */
START_TEST(an_insertion_evicts_the_surplus)
{
    struct letters *l = letters_begin(3);

    enter(l, 'a', 0, EVICTOR_ENTERED);
    scripted.surplus = 2;
    ck_assert_str_eq(enter(l, 'b', 0, EVICTOR_ENTERED), "?n+B-a0");
    ck_assert_uint_eq(l->evictor.insertions, 2);
    ck_assert_uint_eq(l->evictor.evictions, 1);
    ck_assert_uint_eq(l->evictor.pages, 1);
}
END_TEST

START_TEST(a_purge_is_no_eviction)
{
    struct letters *l = letters_begin(3);

    enter(l, 'a', 0, EVICTOR_ENTERED);
    evictor_remove(&l->evictor, &l->nodes[0], 1);
    ck_assert_str_eq(story, "?n+Ax");
    ck_assert_uint_eq(l->evictor.evictions + l->evictor.pages + l->evictor.bytes, 0);
    evictor_free(&l->evictor);
    evictor_free(&l->evictor); /* zeroed by now */
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("evictor");
    TCase *tcase = tcase_create("evictor");

    tcase_add_test(tcase, requests_alone_have_the_outcomes_of_the_plain_loop);
    tcase_add_test(tcase, victims_are_evicted_before_a_newcomer_has_a_node);
    tcase_add_test(tcase, newcomers_that_compete_enter_before_victims_are_evicted);
    tcase_add_test(tcase, an_older_page_is_removed_once_the_newer_is_admitted);
    tcase_add_test(tcase, what_is_too_large_or_has_no_memory_changes_nothing);
    tcase_add_test(tcase, a_hit_evicts_the_surplus);
    tcase_add_test(tcase, an_insertion_evicts_the_surplus);
    tcase_add_test(tcase, a_purge_is_no_eviction);
    suite_add_tcase(suite, tcase);
    return suite;
}
