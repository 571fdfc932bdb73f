/* The look-up of rows, beside a search of all of them. */
#define UNIT_STARTS_NO_THREAD

#include "server/http/http_origins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tests/unit/unit.h"

static struct http_origins origins;
static struct buf why;

/* Makes these rows, one value for each. */
static bool
make(char **items, size_t count)
{
    const struct option_list list = {.items = items, .count = count};

    buf_init(&why, 1 << 20);
    return http_origins_init(&origins, &list, &why);
}

static void
unmake(void)
{
    http_origins_free(&origins);
    buf_free(&why);
}

/* The number of the row for a request; -1: none. */
static int
find(const char *host, const char *path)
{
    const struct http_origin *row = http_origins_find(&origins, span_str(host), span_str(path));

    return row ? (int)row->number : -1;
}

/* The order in which they are given has no meaning. */
START_TEST(the_most_specific_row)
{
    static char *orders[][8] = {
        {"/=http://a", "/x=http://a", "h/=http://a", "h/x=http://a", "h/x/=http://a",
         "h/x/y=http://a", "H2/xy=http://a", "/x/y/z=http://a"},
    };
    static const struct {
        const char *host, *path;
        int row;
    } cases[] = {
        {"h", "/", 2},          {"h", "", 2},           {"h", "?q", 2},       {"h", "/x", 3},
        {"h", "/x?q/y", 3},     {"h", "/x/", 4},        {"h", "/x/y", 5},     {"h", "/x/yy", 4},
        {"h", "/x/y/z", 5},     {"h", "/xy", 2},        {"H", "/x/y?q", 5},   {"g", "/", 0},
        {"g", "/x/y", 1},       {"g", "/x/y/z", 7},     {"", "/x", 1},        {"h2", "/xy/1", 6},
        {"h2", "/xyz", 0},      {"h2", "/x", 1},        {"g", "/w", 0},       {"g", "", 0},
        {"h.", "/x", 1},        {"g", "/x/y/zz", 1},
    };

    for (unsigned turn = 0; turn < 8; turn++) {
        char *items[9] = {NULL};

        for (unsigned i = 0; i < 8; i++)
            items[i] = orders[0][(i + turn) % 8];
        ck_assert(make(items, 8));
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            int found = find(cases[i].host, cases[i].path);

            ck_assert_msg(found == (cases[i].row + 8 - (int)turn) % 8, "%s %s: %d",
                          cases[i].host, cases[i].path, found);
        }
        unmake();
    }
}
END_TEST

START_TEST(none)
{
    char *items[] = {"h/x=http://a", NULL};

    ck_assert(make(items, 0));
    ck_assert_int_eq(find("h", "/x"), -1);
    unmake();
    ck_assert(make(items, 1));
    ck_assert_int_eq(find("h", "/"), -1);
    ck_assert_int_eq(find("h", ""), -1);
    ck_assert_int_eq(find("g", "/x"), -1);
    ck_assert_int_eq(find("", "/x"), -1);
    ck_assert_int_eq(find("h", "/x/1"), 0);
    unmake();
}
END_TEST

START_TEST(each_duplicate_is_named)
{
    char *items[] = {"h/x=http://a", "/=junk", "/y=http://a", "H/x=http://b", "/y=http://c", NULL};

    ck_assert(!make(items, 5));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "\"junk\""));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "\"H/x=http://b\": an earlier row"));
    ck_assert_ptr_nonnull(strstr(buf_str(&why), "\"/y=http://c\": an earlier row"));
    ck_assert_ptr_null(strstr(buf_str(&why), "\"/y=http://a\""));
    unmake();
}
END_TEST

START_TEST(rows_of_another_configuration)
{
    char *first[] = {"h/x=http://a", "/y=http://a", NULL};
    char *second[] = {"/y/=http://a", "H/x=http://a", NULL};
    const struct option_list list = {.items = second, .count = 2};
    struct http_origins others;

    ck_assert(make(first, 2));
    ck_assert(http_origins_init(&others, &list, &why));
    for (size_t i = 0; i < 2; i++) {
        const struct http_origin *same = http_origins_find_same(&origins, &others.rows[i]);

        ck_assert(others.rows[i].number == 1 ? same && same->number == 0 : !same);
    }
    http_origins_inherit(&others, &origins);
    ck_assert_ptr_eq(others.rows[0].route.members[0].server,
                     origins.rows[0].route.members[0].server);
    http_origins_free(&others);
    unmake();
}
END_TEST

/* ---- a model --------------------------------------------------------------------------------- */

enum { ROWS = 10000, REQUESTS = 3000 };

/* Hosts and paths of few letters, so that many of them share prefixes. */
static void
write_name(char *text, unsigned most, const char *letters)
{
    unsigned len = (unsigned)rand() % (most + 1);

    for (unsigned i = 0; i < len; i++)
        *text++ = letters[(unsigned)rand() % strlen(letters)];
    *text = '\0';
}

/* Does the row, as it was given, match? The length of its prefix with the slash at its end; or 0. */
static size_t
match(const char *row, const char *host, const char *path)
{
    const char *slash = strchr(row, '/'), *equals = strchr(row, '=');
    const size_t host_len = (size_t)(slash - row), len = (size_t)(equals - slash);
    const bool below = slash[len - 1] == '/';

    if (host_len && (strlen(host) != host_len || strncasecmp(row, host, host_len) != 0))
        return 0;
    if (len == 1)
        return 1;
    if (strncmp(path, slash, len) != 0)
        return 0;
    return below || strchr("/?", path[len]) ? len : 0;
}

static int
search(char **items, size_t count, const char *host, const char *path)
{
    size_t best_len = 0;
    bool best_host = false;
    int best = -1;

    for (size_t i = 0; i < count; i++) {
        size_t len = match(items[i], host, path);
        bool named = items[i][0] != '/';

        if (!len || (best_host && !named) || (best_host == named && len <= best_len))
            continue;
        best = (int)i;
        best_len = len;
        best_host = named;
    }
    return best;
}

START_TEST(ten_thousand_rows)
{
    char **items = calloc(ROWS + 1, sizeof(*items)), host[64], path[64];
    unsigned found = 0;
    size_t count = 0;

    srand(7);
    for (size_t i = 0; i < ROWS; i++) {
        char prefix[32];

        write_name(host, _i ? 3 : 1, "abC");
        write_name(prefix, 12, "ab/c");
        items[count] = malloc(128);
        /* Some are given twice: the first one counts. */
        snprintf(items[count], 128, "%s/%s=http://m%zu.test", host, prefix, i % 50);
        for (size_t n = 0; n < count && items[count]; n++)
            if (strncasecmp(items[n], items[count],
                            (size_t)(strchr(items[count], '=') + 1 - items[count])) == 0) {
                free(items[count]);
                items[count] = NULL;
            }
        count += items[count] != NULL;
    }
    ck_assert_msg(make(items, count), "%.200s", buf_str(&why));
    ck_assert_uint_le(origins.servers.count, 50);
    for (unsigned i = 0; i < REQUESTS; i++) {
        char rest[32];
        int expected;

        write_name(host, 3, "aBc");
        write_name(rest, 16, "ab/c?");
        snprintf(path, sizeof(path), "/%s", rest);
        expected = search(items, count, host, path);
        found += expected >= 0;
        ck_assert_msg(find(host, path) == expected, "%s%s: %d, not %d", host, path,
                      find(host, path), expected);
    }
    ck_assert_uint_gt(found, REQUESTS / 4);
    unmake();
    for (size_t i = 0; i < count; i++)
        free(items[i]);
    free(items);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/http_origins");
    TCase *tests = tcase_create("rows");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_most_specific_row);
    tcase_add_test(tests, none);
    tcase_add_test(tests, each_duplicate_is_named);
    tcase_add_test(tests, rows_of_another_configuration);
    tcase_add_loop_test(tests, ten_thousand_rows, 0, 2);
    suite_add_tcase(suite, tests);
    return suite;
}
