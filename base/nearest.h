/*
 * The nearest known word to an unknown one, for the suggestion in an error message.
 */
#ifndef SUNPROXY_BASE_NEAREST_H
#define SUNPROXY_BASE_NEAREST_H

#include <stdbool.h>
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
    const char *best; /* "": none was offered yet */
    unsigned distance;
    unsigned foreign; /* letters of the best that the word has not */
};

#define NEAREST_TO(wrong) ((struct nearest){.word = (wrong), .best = ""})

/* Of words as near the one with fewer letters that were not written is kept, then the first. */
void nearest_offer(struct nearest *nearest, const char *right);

/*
 * True if the best is worth suggesting: it begins with the word, or half of the word's letters are
 * right. Nothing is near to an empty word, and "bro" is not near to "foo".
 */
bool nearest_is_near(const struct nearest *nearest);

/* "; did you mean lru?" if that is near, else "": for the end of a sentence. Returns text. */
const char *nearest_ask(const struct nearest *nearest, char *text, size_t size);

#endif
