/*
 * A file of users, as --users names it. A file that is read has users with names that Basic takes
 * and hashes that libcrypt takes, each once. sunproxy passwd changes such a file into one that is
 * read, with the user, and then without. The input is the file.
 */
#include <string.h>

#include "client/user_lines.h"
#include "http/basic_credentials.h"
#include "server/users/user_file.h"
#include "server/users/user_hash.h"
#include "tests/fuzz/fuzz.h"

static const char hash[] = "$2b$05$A753hO9ArnQDrjjLF1BReeZiPD9Qoi0y3qoCJo2B87wOnmnKbnd7y";

static struct user_file *
read_file(struct span text)
{
    struct user_file *file;
    struct buf why;

    buf_init(&why, 1 << 16);
    file = user_file_read(text, "users", &why);
    FUZZ_CHECK(file ? why.len == 0 : why.len > 0);
    FUZZ_CHECK(!buf_failed(&why));
    buf_free(&why);
    return file;
}

/* Each line that is none of a user is empty or a comment. */
static void
check_lines(struct span text, const struct user_file *file)
{
    size_t users = 0;

    while (text.len) {
        const char *end = memchr(text.ptr, '\n', text.len), *colon;
        struct span line = span_of(text.ptr, end ? (size_t)(end - text.ptr) : text.len);

        text = span_of(text.ptr + line.len + (end != NULL), text.len - line.len - (end != NULL));
        colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;
        if (line.len == 0 || line.ptr[0] == '#' || (line.len == 1 && line.ptr[0] == '\r'))
            continue;
        FUZZ_CHECK(colon);
        line.len = (size_t)(colon - line.ptr);
        FUZZ_CHECK(http_basic_is_name(line));
        FUZZ_CHECK(user_file_find(file, line) && !user_hash_find_fault(user_file_find(file, line)));
        FUZZ_CHECK(user_file_has_same(file, file, line));
        users++;
    }
    FUZZ_CHECK(users > 0 && users == user_file_count(file));
}

static void
check_change(struct span text, const struct user_file *file, struct span name)
{
    const bool before = user_file_find(file, name) != NULL;
    struct user_file *other;
    struct buf added, removed;
    bool had_user;

    buf_init(&added, 1 << 24);
    buf_init(&removed, 1 << 24);
    FUZZ_CHECK(user_lines_change(text, name, hash, &added, &had_user) && had_user == before);
    other = read_file(buf_span(&added));
    FUZZ_CHECK(other && user_file_count(other) == user_file_count(file) + !before);
    FUZZ_CHECK(strcmp(user_file_find(other, name), hash) == 0);
    FUZZ_CHECK(user_lines_change(buf_span(&added), name, NULL, &removed, &had_user) && had_user);
    user_file_free(other);
    other = read_file(buf_span(&removed));
    FUZZ_CHECK(!other || !user_file_find(other, name));
    user_file_free(other);
    buf_free(&added);
    buf_free(&removed);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = span_of(data, size);
    struct user_file *file = read_file(text);

    FUZZ_CHECK(file || !fuzz_seed || strncmp(fuzz_seed, "good-", 5) != 0);
    if (file) {
        check_lines(text, file);
        check_change(text, file, span_str("anna"));
    }
    user_file_free(file);
    return 0;
}
