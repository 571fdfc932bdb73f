#define UNIT_STARTS_NO_THREAD

#include "cache/table.h"

#include "base/djb.h"
#include "tests/unit/cache/pages.h"

/* An entry of its own for a URL. */
static struct entry *
make_variant(const char *url, const char *variant)
{
    struct entry *entry = calloc(1, sizeof(*entry));

    entry->object =
        object_make(&(struct object_parts){.url = span_str(url), .variant = span_str(variant)});
    object_complete(entry->object, 0, 0, OBJECT_UNLIMITED); /* a zero byte ends the URL */
    entry->hash = djb_hash(span_str(url));
    return entry;
}

static struct entry *
make(const char *url)
{
    return make_variant(url, "");
}

static void
drop(struct entry *entry)
{
    object_release(&entry->object);
    free(entry);
}

static struct entry *
find(const struct table *table, const char *url)
{
    return table_find(table, djb_hash(span_str(url)), span_str(url), span_of(NULL, 0));
}

static void
free_all(struct table *table)
{
    struct entry *entry, *next;

    for (entry = table_first(table); entry; entry = next) {
        next = table_next(table, entry);
        table_remove(table, entry);
        drop(entry);
    }
    ck_assert_uint_eq(table->entry_count, 0);
    table_free(table);
}

/* "Ez" and "FY" have one djb hash; so has every row of twelve of either. */
static void
colliding_url(unsigned i, char url[25])
{
    for (unsigned bit = 0; bit < 12; bit++)
        memcpy(url + 2 * bit, i >> bit & 1 ? "Ez" : "FY", 2);
    url[24] = '\0';
}

/* Inserts entries of one hash. */
static void
insert_colliding(struct table *table, struct entry **entries, unsigned count)
{
    char url[25];

    for (unsigned i = 0; i < count; i++) {
        colliding_url(i, url);
        entries[i] = make(url);
        ck_assert_uint_eq(entries[i]->hash, entries[0]->hash);
        table_insert(table, entries[i]);
    }
}

START_TEST(djb_is_djb)
{
    ck_assert_uint_eq(djb_hash(span_str("")), 5381);
    ck_assert_uint_eq(djb_hash(span_str("a")), 5381 * 33 + 'a');
    ck_assert_uint_eq(djb_hash(span_of("\xff", 1)), 5381 * 33 + 255);
    ck_assert_uint_eq(djb_hash(span_str("Ez")), djb_hash(span_str("FY")));
}
END_TEST

START_TEST(what_is_put_in_is_found_until_it_is_taken_out)
{
    struct table table;
    struct entry *a = make("http://a/"), *ab = make("http://a/b"), *empty = make("");

    ck_assert(table_init(&table));
    ck_assert_ptr_null(find(&table, "http://a/"));
    ck_assert_ptr_null(table_first(&table));
    table_insert(&table, a);
    table_insert(&table, ab);
    table_insert(&table, empty);
    ck_assert_ptr_eq(find(&table, "http://a/"), a);
    ck_assert_ptr_eq(find(&table, "http://a/b"), ab);
    ck_assert_ptr_eq(
        table_find(&table, djb_hash(span_of(NULL, 0)), span_of(NULL, 0), span_of(NULL, 0)), empty);
    ck_assert_ptr_null(find(&table, "http://a"));
    ck_assert(table_is_valid(&table));
    table_remove(&table, a);
    ck_assert_ptr_null(find(&table, "http://a/"));
    ck_assert_ptr_eq(find(&table, "http://a/b"), ab);
    drop(a);
    free_all(&table);
}
END_TEST

/* Among URLs of the same hash, and ones that begin alike. */
START_TEST(the_variants_of_a_url_are_iterated)
{
    static const char *const urls[] = {"Ez", "FY", "EzEz", "EzFY", "E", ""};
    static const char *const variants[] = {"", "FY", "h", "h\x01", "hh"};
    enum {
        URLS = sizeof(urls) / sizeof(urls[0]),
        VARIANTS = sizeof(variants) / sizeof(variants[0])
    };
    struct table table;

    ck_assert(table_init(&table));
    /* Of the n-th URL the last n variants. */
    for (size_t v = 0; v < VARIANTS; v++)
        for (size_t u = VARIANTS - v; u < URLS; u++)
            table_insert(&table, make_variant(urls[u], variants[v]));
    ck_assert(table_is_valid(&table));
    for (size_t u = 0; u < URLS; u++) {
        uint32_t hash = djb_hash(span_str(urls[u]));
        struct entry *entry = table_first_variant(&table, hash, span_str(urls[u]));

        for (size_t v = VARIANTS - u; v < VARIANTS; v++) {
            ck_assert_ptr_nonnull(entry);
            ck_assert(span_equal(object_url(entry->object), span_str(urls[u])));
            ck_assert(span_equal(object_variant(entry->object), span_str(variants[v])));
            ck_assert_ptr_eq(table_find(&table, hash, span_str(urls[u]), span_str(variants[v])),
                             entry);
            entry = table_next_variant(&table, entry);
        }
        ck_assert_ptr_null(entry);
    }
    free_all(&table);
}
END_TEST

START_TEST(urls_of_one_hash_make_a_balanced_tree)
{
    enum { COUNT = 4096 };
    static struct entry *entries[COUNT];
    struct table table;
    char url[25];

    ck_assert(table_init(&table));
    insert_colliding(&table, entries, COUNT);
    ck_assert(table_is_valid(&table));
    ck_assert_uint_le(table_depth(&table), 2 * 12 + 1); /* 2 log2(n + 1) */
    ck_assert_uint_ge(table_depth(&table), 12);         /* all in one */
    for (unsigned i = 0; i < COUNT; i++) {
        colliding_url(i, url);
        ck_assert_ptr_eq(find(&table, url), entries[i]);
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        table_remove(&table, entries[i]);
        table_tidy(&table);
        drop(entries[i]);
    }
    ck_assert(table_is_valid(&table));
    ck_assert_uint_le(table_depth(&table), 2 * 11 + 1);
    for (unsigned i = 0; i < COUNT; i++) {
        colliding_url(i, url);
        ck_assert_ptr_eq(find(&table, url), i % 2 ? entries[i] : NULL);
    }
    free_all(&table);
}
END_TEST

START_TEST(the_table_grows_and_shrinks_with_its_content)
{
    enum { COUNT = 5000 };
    static struct entry *entries[COUNT];
    struct table table;
    char url[64];

    ck_assert(table_init(&table));
    for (int i = 0; i < COUNT; i++) {
        snprintf(url, sizeof(url), "http://www.example.com/page/%d.html", i);
        entries[i] = make(url);
        table_insert(&table, entries[i]);
        ck_assert_uint_le(table.entry_count, table.bucket_count);
        ck_assert_uint_le(table.allocated,
                          table.bucket_count < 16 ? 16 : table.bucket_count * 3 / 2);
        if (i % 100 == 0)
            ck_assert(table_is_valid(&table) && table_is_in_order(&table));
    }
    ck_assert_uint_eq(table.bucket_count, COUNT);
    ck_assert_uint_le(table_depth(&table), 8);
    for (int i = 0; i < COUNT; i++) {
        ck_assert_ptr_eq(find(&table, object_url(entries[i]->object).ptr), entries[i]);
        table_remove(&table, entries[i]);
        table_tidy(&table);
        drop(entries[i]);
        ck_assert_uint_le(table.bucket_count,
                          table.entry_count < 8 ? 16 : 2 * table.entry_count + 1);
        if (i % 100 == 0)
            ck_assert(table_is_valid(&table) && table_is_in_order(&table));
    }
    ck_assert_uint_le(table.allocated, 64);
    table_free(&table);
}
END_TEST

/* Of a large table little memory is returned at a time: that takes the kernel time, under a lock.
 */
START_TEST(a_large_table_shrinks_in_steps)
{
    enum { MANY = 100000, MOST = 1024 };
    struct entry **entries = calloc(MANY, sizeof(struct entry *));
    struct table table;
    char url[16];

    ck_assert(table_init(&table));
    for (int i = 0; i < MANY; i++) {
        snprintf(url, sizeof(url), "%d", i);
        entries[i] = make(url);
        table_insert(&table, entries[i]);
    }
    ck_assert_uint_gt(table.allocated, 2 * MOST);
    for (int i = 0; i < MANY; i++) {
        const size_t before = table.allocated;

        table_remove(&table, entries[i]);
        table_tidy(&table);
        drop(entries[i]);
        ck_assert_uint_le(before - table.allocated, MOST);
    }
    ck_assert_uint_le(table.allocated, 64);
    free(entries);
    table_free(&table);
}
END_TEST

START_TEST(a_walk_meets_everything_once_and_may_remove)
{
    enum { COUNT = 1000 };
    struct table table;
    struct entry *entry, *next;
    char url[64];
    int met = 0;

    ck_assert(table_init(&table));
    for (int i = 0; i < COUNT; i++) {
        snprintf(url, sizeof(url), "%d", i);
        table_insert(&table, make(url));
    }
    for (entry = table_first(&table); entry; entry = next) {
        next = table_next(&table, entry);
        ck_assert_uint_eq(entry->entered, 0);
        entry->entered = 1;
        if (++met % 3 == 0) {
            table_remove(&table, entry);
            drop(entry);
        }
    }
    ck_assert_int_eq(met, COUNT);
    table_tidy(&table);
    ck_assert(table_is_valid(&table));
    ck_assert_uint_eq(table.entry_count, COUNT - COUNT / 3);
    free_all(&table);
}
END_TEST

enum { OTHERS = 200 };

/* Inserts others, or removes them. */
static void
change_others(struct table *table, struct entry *others[OTHERS], bool inserts)
{
    char url[64];

    for (int i = 0; i < OTHERS; i++)
        if (inserts) {
            snprintf(url, sizeof(url), "comes%d", i);
            table_insert(table, others[i] = make(url));
        } else {
            table_remove(table, others[i]);
            drop(others[i]);
        }
    table_tidy(table);
}

/* A walk that goes on behind a URL, perhaps one that has gone, while buckets are split and merged.
 */
START_TEST(a_walk_goes_on_while_others_come_and_go)
{
    enum { STAY = 64 };
    static struct entry *others[OTHERS];
    struct table table;
    char url[64];

    ck_assert(table_init(&table));
    for (int i = 0; i < STAY; i++) {
        snprintf(url, sizeof(url), "stays%d", i);
        table_insert(&table, make(url));
    }
    for (unsigned period = 1; period < STAY; period++) {
        struct entry *entry = table_first(&table);
        unsigned met = 0, steps = 0;
        bool there = false;

        while (entry) {
            struct object *place = object_retain(entry->object);

            met += object_url(place).ptr[0] == 's';
            if (++steps % period == 0)
                change_others(&table, others, there = !there);
            entry = table_after(&table, djb_hash(object_url(place)), place);
            object_release(&place);
        }
        ck_assert_uint_eq(met, STAY);
        if (there)
            change_others(&table, others, false);
        ck_assert(table_is_valid(&table) && table_is_in_order(&table));
    }
    free_all(&table);
}
END_TEST

START_TEST(validity_notices_what_is_wrong)
{
    struct table table;
    struct entry *entries[3];
    char url[25];

    ck_assert(table_init(&table));
    for (unsigned i = 0; i < 3; i++) {
        colliding_url(i, url);
        entries[i] = make(url);
        table_insert(&table, entries[i]);
    }
    ck_assert(table_is_valid(&table));
    table.entry_count++;
    ck_assert(!table_is_valid(&table));
    table.entry_count--;
    entries[0]->hash++;
    ck_assert(!table_is_valid(&table));
    entries[0]->hash--;
    for (unsigned i = 0; i < 3; i++) {
        uint8_t level = entries[i]->level;

        ck_assert_uint_eq(level, entries[i]->left ? 2 : 1);
        entries[i]->level = 3 - level;
        ck_assert(!table_is_valid(&table));
        entries[i]->level = level;
    }
    ck_assert(table_is_valid(&table));
    free_all(&table);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/table");
    TCase *tc = tcase_create("table");

    tcase_add_test(tc, djb_is_djb);
    tcase_add_test(tc, what_is_put_in_is_found_until_it_is_taken_out);
    tcase_add_test(tc, the_variants_of_a_url_are_iterated);
    tcase_add_test(tc, urls_of_one_hash_make_a_balanced_tree);
    tcase_add_test(tc, the_table_grows_and_shrinks_with_its_content);
    tcase_add_test(tc, a_large_table_shrinks_in_steps);
    tcase_add_test(tc, a_walk_meets_everything_once_and_may_remove);
    tcase_add_test(tc, a_walk_goes_on_while_others_come_and_go);
    tcase_add_test(tc, validity_notices_what_is_wrong);
    suite_add_tcase(suite, tc);
    return suite;
}
