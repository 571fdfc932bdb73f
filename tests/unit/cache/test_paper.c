/*
 * The paper's own data: its dataset1 replayed through the cache, against the log that the authors'
 * server wrote with LRU and a capacity of 7 URLs, and against the numbers of hits that are known.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"

#define REQUESTS 997
#define LINE 512

static char urls[REQUESTS][LINE];

/* One line without its end; false at the end of the file. */
static bool
read_line(FILE *file, char *line)
{
    if (!fgets(line, LINE, file))
        return false;
    line[strcspn(line, "\r\n")] = '\0';
    return true;
}

static void
read_urls(void)
{
    FILE *file = fopen(unit_dataset("sunrpc-paper/dataset1-urls.txt"), "r");
    char line[LINE];
    size_t count = 0;

    ck_assert_ptr_nonnull(file);
    while (read_line(file, line)) {
        ck_assert_uint_lt(count, REQUESTS);
        strcpy(urls[count++], line);
    }
    fclose(file);
    ck_assert_uint_eq(count, REQUESTS);
}

/* One request, and what the paper's server would have logged of it. */
static bool
request(struct cache *cache, const char *url, char *log, size_t size)
{
    struct stored stored;

    if (pages_hit(cache, url)) {
        snprintf(log, size, "Cache Hit for:%s", url);
        return true;
    }
    stored = pages_put(cache, span_str(url), 100, INT64_MAX, NULL);
    ck_assert_int_eq(stored.outcome, CACHE_STORED);
    ck_assert_uint_eq(stored.evicted, stored.victims.count);
    ck_assert_uint_le(stored.evicted, 1);
    if (stored.victims.count) {
        struct span victim = object_url(stored.victims.pages[0]);

        snprintf(log, size, "Evicted Cache Block of: %.*s,for:%s", (int)victim.len, victim.ptr,
                 url);
    } else {
        snprintf(log, size, "New Cache Block for:%s", url);
    }
    stored_free(&stored);
    return false;
}

START_TEST(lru_of_7_is_the_papers_log_line_by_line)
{
    FILE *file = fopen(unit_dataset("sunrpc-paper/LRU_CacheSize7_test1.txt"), "r");
    struct cache *cache = pages_cache("lru", 7, 0, 1);
    char expected[LINE], log[3 * LINE];
    unsigned hits = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert(read_line(file, expected)); /* "UserString:..." */
    for (int i = 0; i < REQUESTS; i++) {
        hits += request(cache, urls[i], log, sizeof(log));
        ck_assert(read_line(file, expected));
        ck_assert_msg(strcmp(expected, log) == 0, "request %d: '%s', the paper has '%s'", i + 1,
                      log, expected);
    }
    ck_assert(read_line(file, expected));
    ck_assert_str_eq(expected, "Exit Command Received. Exiting");
    ck_assert_uint_eq(hits, 853);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
    fclose(file);
}
END_TEST

START_TEST(hits_are_as_known_at_every_size)
{
    static const struct {
        const char *policy;
        unsigned hits[6];
    } known[] = {
        {"lru", {853, 902, 917, 923, 926, 929}},
        {"fifo", {832, 885, 904, 913, 919, 927}},
        {"lfu", {810, 862, 895, 913, 920, 929}},
    };
    static const unsigned sizes[6] = {7, 14, 21, 28, 35, 56};
    char log[3 * LINE];

    for (size_t p = 0; p < 3; p++) {
        for (size_t s = 0; s < 6; s++) {
            struct cache *cache = pages_cache(known[p].policy, sizes[s], 0, 1);
            unsigned hits = 0;

            for (int i = 0; i < REQUESTS; i++)
                hits += request(cache, urls[i], log, sizeof(log));
            ck_assert_msg(hits == known[p].hits[s], "%s at %u: %u hits, known are %u",
                          known[p].policy, sizes[s], hits, known[p].hits[s]);
            cache_destroy(cache);
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/paper");
    TCase *tc = tcase_create("dataset1");

    tcase_add_unchecked_fixture(tc, read_urls, NULL);
    tcase_add_test(tc, lru_of_7_is_the_papers_log_line_by_line);
    tcase_add_test(tc, hits_are_as_known_at_every_size);
    suite_add_tcase(suite, tc);
    return suite;
}
