/*
 * Hashes of passwords by crypt(3) of libcrypt.
 */
#ifndef SUNPROXY_SERVER_USERS_USER_HASH_H
#define SUNPROXY_SERVER_USERS_USER_HASH_H

#include <stdbool.h>

#include "base/span.h"

/* What is wrong with a hash, as a sentence in static memory; NULL: nothing. */
const char *user_hash_find_fault(const char *hash);

/* The memory that a check needs. NULL without memory. */
struct user_hasher;
struct user_hasher *user_hasher_create(void);
void user_hasher_free(struct user_hasher *hasher); /* NULL is harmless */

/*
 * Is this the hash of the password, which has at most HTTP_BASIC_PASSWORD_MAX bytes? It takes
 * milliseconds to seconds, by the method of the hash. For one thread at a time. No copy of the
 * password is left.
 */
bool user_hasher_check(struct user_hasher *hasher, const char *hash, const char *password);

#endif
