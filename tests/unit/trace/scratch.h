/*
 * A folder of a test's own, files in it, and a picture of all that is in it, so that a test can
 * show that nothing was changed.
 */
#ifndef SUNPROXY_TESTS_UNIT_TRACE_SCRATCH_H
#define SUNPROXY_TESTS_UNIT_TRACE_SCRATCH_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/djb.h"
#include "tests/unit/unit.h"

static char scratch_folder[PATH_MAX / 2];

static inline void
scratch_make(void)
{
    const char *parent = getenv("TMPDIR");

    snprintf(scratch_folder, sizeof(scratch_folder), "%s/test-trace-XXXXXX",
             parent && parent[0] ? parent : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(scratch_folder));
}

/* A name inside the folder; static memory of four turns. */
static inline const char *
scratch_path(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned turn;
    char *path = paths[turn++ % 4];

    snprintf(path, PATH_MAX, "%s/%s", scratch_folder, name);
    return path;
}

static inline void
scratch_remove(void)
{
    DIR *dir = opendir(scratch_folder);
    struct dirent *entry;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.')
            unlink(scratch_path(entry->d_name));
    }
    closedir(dir);
    ck_assert_int_eq(rmdir(scratch_folder), 0);
}

/* Returns the path. */
static inline const char *
scratch_write(const char *name, const void *bytes, size_t len)
{
    const char *path = scratch_path(name);
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

/* All of a file; the caller's to free. */
static inline char *
scratch_read(const char *path, size_t *len)
{
    FILE *file = fopen(path, "re");
    struct stat st;
    char *bytes;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fstat(fileno(file), &st), 0);
    *len = (size_t)st.st_size;
    bytes = malloc(*len + 1);
    ck_assert_ptr_nonnull(bytes);
    ck_assert_uint_eq(fread(bytes, 1, *len, file), *len);
    bytes[*len] = '\0';
    fclose(file);
    return bytes;
}

/* Name, size, time of change and a hash of the content of each file, in order of name. */
static inline void
scratch_picture(struct buf *picture)
{
    struct dirent **entries;
    int n = scandir(scratch_folder, &entries, NULL, alphasort);

    ck_assert_int_ge(n, 0);
    buf_init(picture, 65536);
    for (int i = 0; i < n; i++) {
        const char *path = scratch_path(entries[i]->d_name);
        struct stat st;

        ck_assert_int_eq(stat(path, &st), 0);
        if (S_ISREG(st.st_mode)) {
            size_t len;
            char *bytes = scratch_read(path, &len);

            ck_assert(buf_printf(picture, "%s %zu %lld.%09ld %08x %o\n", entries[i]->d_name, len,
                                 (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                                 djb_hash(span_of(bytes, len)), st.st_mode));
            free(bytes);
        }
        free(entries[i]);
    }
    free(entries);
}

#endif
