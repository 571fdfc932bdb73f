/* Hashes for tests, of a method and at a cost of their choice. */
#ifndef SUNPROXY_TESTS_MADE_HASH_H
#define SUNPROXY_TESTS_MADE_HASH_H

#include <check.h>
#include <crypt.h>
#include <string.h>

/* Into `hash`, which has CRYPT_OUTPUT_SIZE bytes. Returns it. */
static inline const char *
make_hash(char *hash, const char *method, unsigned long cost, const char *password)
{
    struct crypt_data data;
    const char *made, *salt;
    char setting[CRYPT_GENSALT_OUTPUT_SIZE];

    memset(&data, 0, sizeof(data));
    salt = crypt_gensalt_rn(method, cost, NULL, 0, setting, sizeof(setting));
    ck_assert_ptr_nonnull(salt);
    made = crypt_rn(password, setting, &data, sizeof(data));
    ck_assert_ptr_nonnull(made);
    return strcpy(hash, made);
}

/* The quickest that is accepted. */
static inline const char *
make_quick_hash(char *hash, const char *password)
{
    return make_hash(hash, "$2b$", 4, password);
}

#endif
