/*
 * The file of --users: a line "NAME:HASH" for each user, with a hash of crypt(5). Empty lines and
 * those that begin with '#' are passed over.
 *
 * Constant; safe on any thread.
 */
#ifndef SUNPROXY_SERVER_USERS_USER_FILE_H
#define SUNPROXY_SERVER_USERS_USER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define USER_FILE_MAX ((size_t)8 << 20) /* bytes */

struct user_file;

/*
 * Reads the text of the file, which is copied. NULL with a line in `why` for each error, with path
 * and number of the line: a name that is doubled or that Basic does not take, a hash that is cut or
 * of a method that libcrypt does not have; or that there is no user at all, or no memory.
 */
struct user_file *user_file_read(struct span text, const char *path, struct buf *why);

/* NULL is harmless. */
void user_file_free(struct user_file *file);

size_t user_file_count(const struct user_file *file);

/* The hash of a user, valid as long as the file; NULL: there is no user of that name. */
const char *user_file_find(const struct user_file *file, struct span name);

/* The hash of some user for a name that the file does not have: the same one for this name and
 * file, also in another process, and not to be found out without the file. */
const char *user_file_pick(const struct user_file *file, struct span name);

/* Has the user the same hash in both files, which may be NULL? A user that is in neither has not.
 */
bool user_file_has_same(const struct user_file *a, const struct user_file *b, struct span name);

#endif
