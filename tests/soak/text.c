#include "tests/soak/text.h"

#include <pthread.h>
#include <string.h>

#define LINE 32u
#define SEED_LEN 16u
#define NUMBERS 32768u /* lines of the longest body: 1 MiB */

/* The second half of each line, " %014x\n"; made once. */
static char numbers[NUMBERS][LINE - SEED_LEN];
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void
put_hex(char *out, uint64_t value, unsigned digits)
{
    while (digits--) {
        out[digits] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

static void
make_numbers(void)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        numbers[i][0] = ' ';
        put_hex(numbers[i] + 1, i, 14);
        numbers[i][LINE - SEED_LEN - 1] = '\n';
    }
}

uint64_t
text_hash(const char *url)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *url; url++)
        hash = (hash ^ (unsigned char)*url) * 0x100000001b3u;
    return hash;
}

size_t
text_drawn_size(uint64_t hash)
{
    uint64_t x = hash + 0x9e3779b97f4a7c15u; /* splitmix64 */

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return TEXT_SIZE_MIN + (size_t)(x % (TEXT_SIZE_MAX - TEXT_SIZE_MIN + 1));
}

bool
text_is(uint64_t hash, const char *bytes, size_t len)
{
    char line[LINE];

    pthread_once(&made, make_numbers);
    put_hex(line, hash, SEED_LEN);
    for (size_t number = 0; len > 0; number++) {
        size_t n = len < LINE ? len : LINE;

        if (number == NUMBERS)
            return false;
        memcpy(line + SEED_LEN, numbers[number], LINE - SEED_LEN);
        if (memcmp(line, bytes, n) != 0)
            return false;
        bytes += n;
        len -= n;
    }
    return true;
}
