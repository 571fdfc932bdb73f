/*
 * Every policy, driven through the cache by random requests, against a model that is as plain as
 * can be: an array of pages, searched from end to end for the next victim.
 */
#define UNIT_STARTS_NO_THREAD

#include "base/hash.h"
#include "policies/charge.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

#define URLS 60
#define ROUNDS 2000

struct model_page {
    bool inside;
    uint64_t bytes;
    int64_t until_us; /* of its lifetime */
    uint64_t entered;
    uint64_t requested; /* the last time */
    uint64_t count;
    uint64_t reached; /* when the count became so */
    uint32_t key;
};

struct model {
    struct model_page pages[URLS];
    uint64_t now;
    int64_t clock_us;
    uint64_t rng;
    uint64_t capacity_pages, capacity_bytes;
    uint64_t count, bytes, insertions, evictions;
    bool (*precedes)(const struct model_page *a, const struct model_page *b);
    uint64_t overhead; /* of a page */
};

static bool
lru_precedes(const struct model_page *a, const struct model_page *b)
{
    return a->requested < b->requested;
}

static bool
fifo_precedes(const struct model_page *a, const struct model_page *b)
{
    return a->entered < b->entered;
}

static bool
lfu_precedes(const struct model_page *a, const struct model_page *b)
{
    return a->count != b->count ? a->count < b->count : a->reached < b->reached;
}

static bool
rand_precedes(const struct model_page *a, const struct model_page *b)
{
    return a->key != b->key ? a->key < b->key : a->entered < b->entered;
}

static bool
maxs_precedes(const struct model_page *a, const struct model_page *b)
{
    return a->bytes != b->bytes ? a->bytes > b->bytes : a->entered < b->entered;
}

/* Policies whose rule is not repeated here are held to their bounds only. */
static const struct {
    const char *name;
    bool (*precedes)(const struct model_page *a, const struct model_page *b);
} rules[] = {
    {"lru", lru_precedes},   {"fifo", fifo_precedes}, {"lfu", lfu_precedes},
    {"rand", rand_precedes}, {"maxs", maxs_precedes},
};

static uint64_t dice_state;

static uint32_t
dice(uint32_t sides)
{
    return unit_draw(&dice_state, sides);
}

static uint32_t
model_draw(struct model *m)
{
    return (uint32_t)(splitmix64_next(&m->rng) >> 32);
}

static void
model_remove(struct model *m, int url)
{
    m->pages[url].inside = false;
    m->count--;
    m->bytes -= m->pages[url].bytes;
}

static int
model_victim(const struct model *m)
{
    int victim = -1;

    for (int i = 0; i < URLS; i++) {
        if (m->pages[i].inside && (victim < 0 || m->precedes(&m->pages[i], &m->pages[victim])))
            victim = i;
    }
    return victim;
}

static bool
model_fits(const struct model *m, uint64_t pages, uint64_t bytes)
{
    return (!m->capacity_pages || m->count + pages <= m->capacity_pages) &&
           (!m->capacity_bytes || m->bytes + bytes <= m->capacity_bytes);
}

static bool
model_request(struct model *m, int url)
{
    struct model_page *page = &m->pages[url];

    if (!page->inside || page->until_us <= m->clock_us)
        return false;
    m->now++;
    page->requested = m->now;
    page->count++;
    page->reached = m->now;
    return true;
}

/* The victims, in order, as numbers in `victims`; their count. */
static size_t
model_store(struct model *m, int url, uint64_t bytes, int64_t until_us, int *victims)
{
    size_t n = 0;

    if (m->pages[url].inside)
        model_remove(m, url);
    if (m->capacity_bytes && bytes > m->capacity_bytes)
        return 0;
    while (!model_fits(m, 1, bytes)) {
        victims[n] = model_victim(m);
        model_remove(m, victims[n++]);
    }
    m->now++;
    m->pages[url] = (struct model_page){
        .inside = true,
        .bytes = bytes,
        .until_us = until_us,
        .entered = m->now,
        .requested = m->now,
        .count = 1,
        .reached = m->now,
        .key = model_draw(m),
    };
    m->count++;
    m->bytes += bytes;
    m->insertions++;
    m->evictions += n;
    return n;
}

static const char *
url_of(int i)
{
    static char url[32];

    snprintf(url, sizeof(url), "http://h%d/%d", i % 7, i);
    return url;
}

static void
check_store(struct cache *cache, struct model *m, int url, size_t body)
{
    uint64_t bytes = strlen(url_of(url)) + body + m->overhead;
    bool was_inside = m->pages[url].inside;
    bool fits = !m->capacity_bytes || bytes <= m->capacity_bytes;
    struct stored stored;
    int expected[URLS];
    size_t n;
    /* Two in three for ever, the others for up to 100 of the ticks that a round takes. */
    int64_t until_us = dice(3) ? INT64_MAX : m->clock_us + 1000 * (1 + dice(100));

    stored = pages_put(cache, span_str(url_of(url)), body, until_us, NULL);
    n = model_store(m, url, bytes, until_us, expected);
    ck_assert_int_eq(stored.outcome, !fits        ? CACHE_NOT_STORED
                                     : was_inside ? CACHE_REPLACED
                                                  : CACHE_STORED);
    ck_assert_uint_eq(stored.evicted, n);
    ck_assert_uint_eq(stored.victims.count, n);
    for (size_t i = 0; i < n; i++)
        ck_assert(span_equal(object_url(stored.victims.pages[i]), span_str(url_of(expected[i]))));
    stored_free(&stored);
}

static void
check_sums(struct cache *cache, const struct model *m)
{
    struct cache_stats stats;

    cache_get_stats(cache, &stats);
    ck_assert_uint_eq(stats.pages, m->count);
    ck_assert_uint_eq(stats.bytes, m->bytes);
    ck_assert_uint_eq(stats.insertions, m->insertions);
    ck_assert_uint_eq(stats.evictions, m->evictions);
    ck_assert(cache_is_valid(cache));
}

static void
check_purge_prefix(struct cache *cache, struct model *m, const char *prefix)
{
    uint64_t gone = 0;

    for (int i = 0; i < URLS; i++) {
        if (m->pages[i].inside && span_starts_with(span_str(url_of(i)), span_str(prefix))) {
            model_remove(m, i);
            gone++;
        }
    }
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str(prefix)), gone);
}

/* Another capacity for the policy as it is: pages that are too large are removed, then victims. */
static void
check_resize(struct cache *cache, struct model *m)
{
    struct cache_config config;

    m->capacity_pages = dice(4) ? 1 + dice(30) : 0;
    m->capacity_bytes = dice(3) || !m->capacity_pages ? 300 + dice(10000) : 0;
    cache_get_config(cache, &config);
    config.capacity_pages = m->capacity_pages;
    config.capacity_bytes = m->capacity_bytes;
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    for (int i = 0; i < URLS && !model_fits(m, 0, 0); i++) {
        if (m->pages[i].inside && m->capacity_bytes && m->pages[i].bytes > m->capacity_bytes) {
            model_remove(m, i);
            m->evictions++;
        }
    }
    while (!model_fits(m, 0, 0)) {
        model_remove(m, model_victim(m));
        m->evictions++;
    }
}

static void
check_against_model(const char *policy,
                    bool (*precedes)(const struct model_page *, const struct model_page *),
                    uint64_t capacity_pages, uint64_t capacity_bytes, bool resizes)
{
    struct model m = {
        .capacity_pages = capacity_pages,
        .capacity_bytes = capacity_bytes,
        .precedes = precedes,
        .clock_us = 1, /* when pages_put() has fetched all pages */
        .overhead = charge_page_overhead(policy_find(policy)),
    };
    struct cache *cache = pages_cache(policy, capacity_pages, capacity_bytes, 1);

    for (int round = 0; round < ROUNDS; round++) {
        /* Some URLs more often than others. */
        int url = (int)(dice(2) ? dice(URLS / 5) : dice(URLS));
        uint32_t what = dice(200);

        m.clock_us += 1000;

        if (what == 0) {
            ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str(url_of(url))),
                              m.pages[url].inside);
            if (m.pages[url].inside)
                model_remove(&m, url);
        } else if (what == 1) {
            check_purge_prefix(cache, &m, dice(2) ? "http://h3/" : "http://h4/1");
        } else if (what == 2 && resizes) {
            check_resize(cache, &m);
        } else if (what < 12) {
            check_store(cache, &m, url, dice(2000)); /* a replacement, if it is inside */
        } else {
            bool hit = model_request(&m, url);

            ck_assert_int_eq(pages_hit_at(cache, url_of(url), m.clock_us), hit);
            if (!hit)
                check_store(cache, &m, url, dice(8) ? dice(400) : dice(4000));
        }
        check_sums(cache, &m);
    }
    ck_assert_uint_gt(m.evictions, 0);
    cache_destroy(cache);
}

static void
check_bounds_only(const char *policy, uint64_t capacity_pages, uint64_t capacity_bytes)
{
    struct cache *cache = pages_cache(policy, capacity_pages, capacity_bytes, 1);

    for (int round = 0; round < ROUNDS; round++) {
        const char *url = url_of((int)(dice(2) ? dice(URLS / 5) : dice(URLS)));

        if (dice(100) == 0)
            purge_by(cache, CACHE_BY_URL, span_str(url));
        else if (!pages_hit_at(cache, url, round))
            pages_store_until(cache, url, dice(1000),
                              dice(3) ? INT64_MAX : round + (int64_t)dice(8000));
        ck_assert(cache_is_valid(cache));
    }
    cache_destroy(cache);
}

/* Every policy there is, at bounds in pages, in bytes and in both. */
START_TEST(every_policy_is_its_model)
{
    static const uint64_t bounds[][2] = {{1, 0},    {2, 0},     {17, 0},    {40, 0},  {0, 1500},
                                         {0, 5000}, {0, 20000}, {20, 7000}, {5, 2500}};

    for (size_t p = 0; policies[p]; p++) {
        size_t r = 0, rule_count = sizeof(rules) / sizeof(rules[0]);

        if (policies[p]->needs_future)
            continue;
        while (r < rule_count && strcmp(rules[r].name, policies[p]->name) != 0)
            r++;
        for (size_t b = 0; b < sizeof(bounds) / sizeof(bounds[0]); b++) {
            dice_state = 1000 * p + b;
            if (r < rule_count)
                check_against_model(policies[p]->name, rules[r].precedes, bounds[b][0],
                                    bounds[b][1], b >= 6);
            else
                check_bounds_only(policies[p]->name, bounds[b][0], bounds[b][1]);
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/model");
    TCase *tc = tcase_create("model");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, every_policy_is_its_model);
    suite_add_tcase(suite, tc);
    return suite;
}
