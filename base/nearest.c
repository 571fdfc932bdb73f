#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define MAX_WORD 63u

static unsigned
smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

unsigned
nearest_distance(const char *a, const char *b)
{
    unsigned char cost[3][MAX_WORD + 1]; /* of prefixes of a with all of b; the last three rows */
    size_t a_len = strlen(a), b_len = strlen(b);

    if (a_len > MAX_WORD || b_len > MAX_WORD)
        return MAX_WORD + 1;
    for (size_t j = 0; j <= b_len; j++)
        cost[0][j] = (unsigned char)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned char *row = cost[i % 3], *above = cost[(i + 2) % 3], *over = cost[(i + 1) % 3];

        row[0] = (unsigned char)i;
        for (size_t j = 1; j <= b_len; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            unsigned best = smaller(above[j] + 1u, row[j - 1] + 1u);

            best = smaller(best, above[j - 1] + (x != y ? 1u : 0u));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]))
                best = smaller(best, over[j - 2] + 1u);
            row[j] = (unsigned char)best;
        }
    }
    return cost[a_len % 3][b_len];
}

static unsigned
count_foreign(const char *word, const char *right)
{
    unsigned count = 0;

    for (; *right; right++)
        count += !strchr(word, tolower((unsigned char)*right)) &&
                 !strchr(word, toupper((unsigned char)*right));
    return count;
}

void
nearest_offer(struct nearest *nearest, const char *right)
{
    unsigned distance = nearest_distance(nearest->word, right);
    unsigned foreign = count_foreign(nearest->word, right);

    if (nearest->best[0] && (distance > nearest->distance ||
                             (distance == nearest->distance && foreign >= nearest->foreign)))
        return;
    nearest->best = right;
    nearest->distance = distance;
    nearest->foreign = foreign;
}

bool
nearest_is_near(const struct nearest *nearest)
{
    size_t len = strlen(nearest->word);

    return nearest->best[0] && len != 0 &&
           (2 * nearest->distance <= len || strncasecmp(nearest->best, nearest->word, len) == 0);
}

const char *
nearest_ask(const struct nearest *nearest, char *text, size_t size)
{
    text[0] = '\0';
    if (nearest_is_near(nearest))
        snprintf(text, size, "; did you mean %s?", nearest->best);
    return text;
}
