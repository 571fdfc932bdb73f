#include "policies/sketch.h"

#include <stdlib.h>
#include <string.h>

#define SKETCH_ROWS 4u
#define SKETCH_ROW_COUNTERS 32u /* of one row in one block */
#define SKETCH_BLOCK_BYTES (SKETCH_BLOCK_WORDS * sizeof(uint64_t))
#define SKETCH_MIN_PAGES 64u
#define SKETCH_MAX_PAGES (1ull << 40)

/* Where a key's four counters are. */
struct sketch_place {
    uint64_t *block;
    uint32_t word[SKETCH_ROWS];
    uint32_t shift[SKETCH_ROWS];
};

/* Keys are hashes already, but those of a test or a trace of numbers need not be good ones. */
static inline uint64_t
sketch_mix(uint64_t key)
{
    key = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15u;
    key = (key ^ (key >> 29)) * 0xbf58476d1ce4e5b9u;
    return key ^ (key >> 32);
}

static inline struct sketch_place
sketch_find(const struct sketch *sketch, uint64_t key)
{
    uint64_t hash = sketch_mix(key);
    struct sketch_place place;

    /* The low 20 bits choose in the block, those above choose the block. */
    place.block = sketch->words + ((hash >> 20) & sketch->block_mask) * SKETCH_BLOCK_WORDS;
    for (uint32_t row = 0; row < SKETCH_ROWS; row++) {
        uint32_t counter = (uint32_t)(hash >> (5 * row)) & (SKETCH_ROW_COUNTERS - 1);

        place.word[row] = 2 * row + counter / 16;
        place.shift[row] = counter % 16 * 4;
    }
    return place;
}

static inline unsigned
sketch_counter(const struct sketch_place *place, uint32_t row)
{
    return (unsigned)(place->block[place->word[row]] >> place->shift[row]) & 15u;
}

static inline unsigned
sketch_lowest(const struct sketch_place *place)
{
    unsigned lowest = sketch_counter(place, 0);

    for (uint32_t row = 1; row < SKETCH_ROWS; row++) {
        unsigned counter = sketch_counter(place, row);

        lowest = counter < lowest ? counter : lowest;
    }
    return lowest;
}

static uint64_t *
sketch_allocate(uint64_t blocks)
{
    uint64_t *words;

    if (blocks > SIZE_MAX / SKETCH_BLOCK_BYTES)
        return NULL;
    words = aligned_alloc(SKETCH_BLOCK_BYTES, blocks * SKETCH_BLOCK_BYTES);
    if (words)
        memset(words, 0, blocks * SKETCH_BLOCK_BYTES);
    return words;
}

/* How many blocks that many pages ask for. */
static uint64_t
sketch_blocks(const struct sketch *sketch, uint64_t pages)
{
    double wanted = (double)pages * sketch->width / SKETCH_ROW_COUNTERS;
    uint64_t blocks = 1;

    while ((double)blocks < wanted)
        blocks *= 2;
    return blocks;
}

bool
sketch_init(struct sketch *sketch, double width, double sample)
{
    uint64_t blocks;

    *sketch = (struct sketch){.pages = SKETCH_MIN_PAGES, .width = width, .sample = sample};
    blocks = sketch_blocks(sketch, sketch->pages);
    sketch->words = sketch_allocate(blocks);
    sketch->block_mask = blocks - 1;
    return sketch->words != NULL;
}

void
sketch_free(struct sketch *sketch)
{
    free(sketch->words);
    *sketch = (struct sketch){0};
}

void
sketch_fit(struct sketch *sketch, uint64_t pages)
{
    uint64_t wanted = sketch->pages, old_blocks = sketch->block_mask + 1, blocks;
    uint64_t *words;

    if (pages <= sketch->pages || pages > SKETCH_MAX_PAGES)
        return;
    while (wanted < pages)
        wanted *= 2;
    blocks = sketch_blocks(sketch, wanted);
    if (blocks > old_blocks) {
        words = sketch_allocate(blocks);
        if (!words)
            return;
        /* One more bit of the hash chooses the block: each half begins as what both shared. */
        for (uint64_t i = 0; i < blocks; i += old_blocks)
            memcpy(words + i * SKETCH_BLOCK_WORDS, sketch->words, old_blocks * SKETCH_BLOCK_BYTES);
        free(sketch->words);
        sketch->words = words;
        sketch->block_mask = blocks - 1;
    }
    sketch->pages = wanted;
}

static uint64_t
sketch_sample(const struct sketch *sketch)
{
    return (uint64_t)((double)sketch->pages * sketch->sample);
}

static void
sketch_halve(struct sketch *sketch)
{
    size_t count = (size_t)(sketch->block_mask + 1) * SKETCH_BLOCK_WORDS;

    for (size_t i = 0; i < count; i++)
        sketch->words[i] = (sketch->words[i] >> 1) & 0x7777777777777777u;
    sketch->counted /= 2;
}

void
sketch_count(struct sketch *sketch, uint64_t key)
{
    struct sketch_place place = sketch_find(sketch, key);
    unsigned lowest = sketch_lowest(&place);

    if (lowest < SKETCH_MAX_COUNT) {
        for (uint32_t row = 0; row < SKETCH_ROWS; row++) {
            uint64_t more = sketch_counter(&place, row) == lowest;

            place.block[place.word[row]] += more << place.shift[row];
        }
    }
    sketch->counted++;
    if (sketch->counted >= sketch_sample(sketch))
        sketch_halve(sketch);
}

unsigned
sketch_estimate(const struct sketch *sketch, uint64_t key)
{
    struct sketch_place place = sketch_find(sketch, key);

    return sketch_lowest(&place);
}

bool
sketch_is_valid(const struct sketch *sketch)
{
    uint64_t blocks = sketch->block_mask + 1;

    return sketch->words && (blocks & sketch->block_mask) == 0 &&
           blocks <= sketch_blocks(sketch, sketch->pages) &&
           sketch->counted < sketch_sample(sketch);
}
