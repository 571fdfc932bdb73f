/*
 * The nearest right word to a wrong one, so that whoever mistyped it is told what was meant.
 */
#ifndef SUNPROXY_BASE_NEAREST_H
#define SUNPROXY_BASE_NEAREST_H

#include <stddef.h>

/*
 * The number of insertions, deletions, replacements and swaps of neighbours that make one word of
 * the other, case ignored (Damerau-Levenshtein, restricted; Wagner, Lowrance, J. ACM 22/2, 1975).
 * Words longer than 63 bytes count as wholly different.
 */
unsigned nearest_distance(const char *a, const char *b);

/* Begins as NEAREST_TO(what was written); `best` is then the nearest of the right words offered. */
struct nearest {
    const char *word;
    const char *best; /* "": none was offered yet; of equally near ones the first */
    unsigned distance;
};

#define NEAREST_TO(wrong) ((struct nearest){.word = (wrong), .best = ""})

void nearest_offer(struct nearest *nearest, const char *right);

#endif
