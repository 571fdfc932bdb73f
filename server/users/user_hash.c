#include "server/users/user_hash.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* Above these a check would take longer than anybody waits for it. */
#define MOST_ROUNDS 5000000u
#define MOST_COST 15u
#define LEAST_COST 4u   /* of bcrypt at all */
#define MOST_BLOCKS 16  /* of yescrypt and scrypt: 2 to the power of it, of 4 KiB each */

static const char characters[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* The methods of crypt(5) that are for passwords; `len` is that of what is behind the last '$'. */
static const struct method {
    const char *prefix;
    size_t len;
} methods[] = {{"$2a$", 53}, {"$2b$", 53}, {"$2y$", 53}, {"$y$", 43}, {"$gy$", 43},
               {"$7$", 43},  {"$6$", 86},  {"$5$", 43},  {"$1$", 22}};

static const struct method *
find_method(const char *hash)
{
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (strncmp(hash, methods[i].prefix, strlen(methods[i].prefix)) == 0)
            return &methods[i];
    return NULL;
}

static int
value_of(char c)
{
    const char *at = c ? strchr(characters, c) : NULL;

    return at ? (int)(at - characters) : MOST_BLOCKS + 1;
}

/* Of "$y$jNR$" and "$gy$jNR$", with blocks by N - 1 and R, or of "$7$NU..../....": as libcrypt and
 * programs like mkpasswd write them. */
static bool
is_memory_bounded(const char *hash)
{
    const char *cost = strchr(hash + 1, '$') + 1;

    if (hash[1] == '7')
        return value_of(cost[0]) <= MOST_BLOCKS && strncmp(cost + 1, "U..../....", 10) == 0;
    return cost[0] == 'j' && value_of(cost[1]) < MOST_BLOCKS && value_of(cost[2]) < 32 &&
           cost[3] == '$';
}

/* Of "$2y$COST$" or "$6$rounds=N$". */
static bool
is_bounded(const char *hash)
{
    unsigned long number;

    if (hash[1] == 'y' || hash[1] == 'g' || hash[1] == '7')
        return is_memory_bounded(hash);

    if (hash[1] == '2') {
        number = strtoul(hash + 4, NULL, 10);
        return number >= LEAST_COST && number <= MOST_COST;
    }
    return strncmp(hash + 2, "$rounds=", 8) != 0 || strtoul(hash + 10, NULL, 10) <= MOST_ROUNDS;
}

const char *
user_hash_find_fault(const char *hash)
{
    const struct method *method = find_method(hash);
    const char *last = strrchr(hash, '$');

    if (!method || strlen(hash) >= CRYPT_OUTPUT_SIZE)
        return "this is no hash of a method that is known; sunproxy passwd makes one";
    if (last < hash + strlen(method->prefix) || strlen(last + 1) != method->len ||
        strspn(last + 1, characters) != method->len)
        return "the hash is cut, or more follows it";
    if (crypt_checksalt(hash) == CRYPT_SALT_INVALID ||
        crypt_checksalt(hash) == CRYPT_SALT_METHOD_DISABLED)
        return "libcrypt does not have the method of this hash";
    if (!is_bounded(hash))
        return "checks of this hash would take too long, or have no cost that is a number";
    return NULL;
}

/* ---- checks ---------------------------------------------------------------------------------- */

struct user_hasher {
    struct crypt_data data;
};

struct user_hasher *
user_hasher_create(void)
{
    return calloc(1, sizeof(struct user_hasher));
}

void
user_hasher_free(struct user_hasher *hasher)
{
    free(hasher);
}

bool
user_hasher_check(struct user_hasher *hasher, const char *hash, const char *password)
{
    const char *made = crypt_rn(password, hash, &hasher->data, sizeof(hasher->data));
    const size_t len = strlen(hash);
    bool same = made && strlen(made) == len && CRYPTO_memcmp(made, hash, len) == 0;

    OPENSSL_cleanse(&hasher->data, sizeof(hasher->data));
    return same;
}
