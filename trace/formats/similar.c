#include "trace/formats/similar.h"

#include <stdlib.h>

#include "base/hash.h"
#include "trace/formats/formats.h"

#define FEATURES_MOST 512u
#define LEAST 0.4 /* of Dice's coefficient: half of the features of either line, nearly */
#define LEAST_OF_ROW 0.6
#define SHORTEST_WORD 3u

struct features {
    uint32_t values[FEATURES_MOST]; /* sorted */
    size_t count;
};

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static char
kind_of(char c)
{
    return is_letter(c) ? 'a' : c >= '0' && c <= '9' ? '0' : c;
}

static void
add(struct features *f, uint32_t value)
{
    if (f->count < FEATURES_MOST)
        f->values[f->count++] = value;
}

/* A word's hash, apart from all pairs. */
static uint32_t
hash_word(struct span word)
{
    return (uint32_t)hash64_bytes(word) | 0x80000000U;
}

static int
ascending(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void
find_features(struct span line, struct features *f)
{
    size_t word = 0;
    char last = '^';

    f->count = 0;
    for (size_t i = 0; i <= line.len; i++) {
        char kind = i < line.len ? kind_of(line.ptr[i]) : '$';

        if (kind != 'a' && word >= SHORTEST_WORD)
            add(f, hash_word(span_of(line.ptr + i - word, word)));
        word = kind == 'a' ? word + 1 : 0;
        if (kind == last && (kind == 'a' || kind == '0'))
            continue;
        add(f, (uint32_t)(unsigned char)last << 8U | (unsigned char)kind);
        last = kind;
    }
    qsort(f->values, f->count, sizeof(f->values[0]), ascending);
}

static double
dice(const struct features *a, const struct features *b)
{
    size_t common = 0;

    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        if (a->values[i] == b->values[k]) {
            common++;
            i++;
            k++;
        } else if (a->values[i] < b->values[k]) {
            i++;
        } else {
            k++;
        }
    }
    return a->count + b->count ? 2 * (double)common / (double)(a->count + b->count) : 0;
}

static bool
has_fields(struct span line)
{
    size_t separators = 0;

    for (size_t i = 0; i < line.len; i++)
        separators += line.ptr[i] == '\t' || line.ptr[i] == ',' || line.ptr[i] == ';';
    return separators > 1;
}

const struct trace_format *
trace_format_most_similar(struct span line)
{
    const struct trace_format *best = NULL;
    struct features ours, theirs;
    double most = LEAST;

    find_features(line, &ours);
    for (size_t i = 0; trace_formats[i]; i++) {
        double score;

        if (!trace_formats[i]->sample)
            continue;
        find_features(span_str(trace_formats[i]->sample), &theirs);
        score = dice(&ours, &theirs);
        if (score > most) {
            most = score;
            best = trace_formats[i];
        }
    }
    /* What consists of several fields and resembles no log may be the row of a table. */
    if (most < LEAST_OF_ROW && line.len != 0 && line.ptr[0] != '{' && has_fields(line))
        return &trace_format_table;
    return best;
}
