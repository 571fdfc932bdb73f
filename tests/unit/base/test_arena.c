/* With a sanitizer the program's blocks are malloc()'s, and those of this test its own. */
#define ARENA_OWN true
#include "base/arena.c"

#include "tests/unit/unit.h"

#define BLOCKS 3000
#define STEPS 60000

/* A block as the model knows it: all its bytes are `value`. */
struct content {
    unsigned char *bytes;
    size_t len;
    unsigned char value;
};

static uint64_t seed;

static uint64_t
draw(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + 1;
    return (seed >> 33) % below;
}

/* Most are short, as pages are. */
static size_t
draw_length(void)
{
    return (size_t)draw((uint64_t)1 << (2 + draw(15)));
}

static void
check_and_free(struct content *content)
{
    if (content->len) { /* the first byte, and each that follows is the one before it */
        ck_assert_uint_eq(content->bytes[0], content->value);
        ck_assert_mem_eq(content->bytes, content->bytes + 1, content->len - 1);
    }
    arena_free(content->bytes);
    *content = (struct content){0};
}

static void
fill(struct content *content, size_t len)
{
    *content = (struct content){arena_alloc(len), len, (unsigned char)draw(256)};
    ck_assert_ptr_nonnull(content->bytes);
    ck_assert_uint_eq((uintptr_t)content->bytes % 8, 0);
    memset(content->bytes, content->value, len);
}

static struct arena_stats
stats(void)
{
    struct arena_stats now;

    arena_get_stats(&now);
    return now;
}

/* Some are long. */
static size_t
draw_any_length(void)
{
    return draw(32) ? draw_length() : (size_t)draw((uint64_t)1 << 18);
}

static void
check_that_blocks_are_separate(void)
{
    static struct content blocks[BLOCKS];
    size_t at_start = stats().used;

    seed = 1;
    for (unsigned i = 0; i < STEPS; i++) {
        struct content *content = &blocks[draw(BLOCKS)];

        if (content->bytes)
            check_and_free(content);
        else
            fill(content, draw_any_length());
    }
    for (unsigned i = 0; i < BLOCKS; i++)
        check_and_free(&blocks[i]);
    ck_assert_uint_eq(stats().used, at_start);
}

START_TEST(blocks_are_separate)
{
    check_that_blocks_are_separate();
}
END_TEST

START_TEST(long_blocks_that_are_to_be_kept_are_separate)
{
    arena_keep((ptrdiff_t)4 << 20);
    check_that_blocks_are_separate();
    arena_keep(-((ptrdiff_t)4 << 20));
}
END_TEST

START_TEST(blocks_have_any_length_up_to_the_most)
{
    static const size_t lengths[] = {0, 1, 7, 8, 31, 32, 33, 255, 256, 257, 4095, 4096, ARENA_MAX};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct content content;

        fill(&content, lengths[i]);
        check_and_free(&content);
    }
    arena_free(NULL);
}
END_TEST

START_TEST(a_longer_block_is_refused)
{
    ck_assert_ptr_null(arena_alloc(ARENA_MAX + 1));
    ck_assert_int_eq(errno, ENOMEM);
}
END_TEST

/* Of 128 MiB, also when one block in 16 is still used. `most`: may be free then, beyond what is. */
static void
check_that_a_peak_is_returned(unsigned count, size_t len, size_t most)
{
    static void *blocks[8192];
    size_t used;

    for (unsigned i = 0; i < count; i++) {
        blocks[i] = arena_alloc(len);
        ck_assert_ptr_nonnull(blocks[i]);
    }
    for (unsigned i = 0; i < count; i++)
        if (i % 16)
            arena_free(blocks[i]);
    used = stats().used;
    ck_assert_uint_le(stats().free, used + most);
    for (unsigned i = 0; i < count; i += 16)
        arena_free(blocks[i]);
    ck_assert_uint_le(stats().free, (size_t)16 << 20);
}

START_TEST(memory_is_returned_after_a_peak)
{
    check_that_a_peak_is_returned(8192, 16000, (size_t)16 << 20);
}
END_TEST

/* Of 512 MiB, though a huge page has eight blocks. */
START_TEST(memory_of_long_blocks_is_returned_after_a_peak)
{
    arena_keep((ptrdiff_t)4 << 20);
    check_that_a_peak_is_returned(2048, 250000, SPLIT_MIN + ((size_t)16 << 20));
    arena_keep(-((ptrdiff_t)4 << 20));
}
END_TEST

/* Blocks that are freed and allocated again in turns of 8 MiB stay where they are. */
START_TEST(what_is_to_be_kept_is_not_returned)
{
    void *blocks[8];
    size_t before;

    arena_keep((ptrdiff_t)16 << 20);
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < 8; i++)
            ck_assert_ptr_nonnull(blocks[i] = memset(arena_alloc(1 << 20), 1, 1 << 20));
        before = stats().returned;
        for (unsigned i = 0; i < 8; i++)
            arena_free(blocks[i]);
        ck_assert_uint_eq(stats().returned, before);
        ck_assert_uint_ge(stats().free, (size_t)8 << 20);
    }
    arena_keep(-((ptrdiff_t)16 << 20));
}
END_TEST

/* Pages that replace pages of other lengths leave little free memory between them. */
START_TEST(replaced_blocks_leave_little_free_memory)
{
    static struct content blocks[BLOCKS];

    seed = 2;
    for (unsigned i = 0; i < STEPS; i++) {
        struct content *content = &blocks[i % BLOCKS];

        if (content->bytes)
            check_and_free(content);
        fill(content, 2000 + draw_length());
    }
    ck_assert_uint_le(stats().free, stats().used / 8 + ((size_t)4 << 20));
    for (unsigned i = 0; i < BLOCKS; i++)
        check_and_free(&blocks[i]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/arena");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, blocks_are_separate);
    tcase_add_test(tests, blocks_have_any_length_up_to_the_most);
    tcase_add_test(tests, a_longer_block_is_refused);
    tcase_add_test(tests, memory_is_returned_after_a_peak);
    tcase_add_test(tests, replaced_blocks_leave_little_free_memory);
    /* Memory that was kept stays free after these. */
    tcase_add_test(tests, long_blocks_that_are_to_be_kept_are_separate);
    tcase_add_test(tests, memory_of_long_blocks_is_returned_after_a_peak);
    tcase_add_test(tests, what_is_to_be_kept_is_not_returned);
    suite_add_tcase(suite, tests);
    return suite;
}
