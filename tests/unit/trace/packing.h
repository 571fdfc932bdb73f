/*
 * What tests of input are fed with: a long list of URLs, a small database, and each kind of
 * compression.
 */
#ifndef SUNPROXY_TESTS_TRACE_PACKING_H
#define SUNPROXY_TESTS_TRACE_PACKING_H

#include <bzlib.h>
#include <lzma.h>
#include <sqlite3.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/unit/trace/loading.h"

#define LINES 20000

/* A list of URLs of about a megabyte. */
static inline char *
packing_make_list(size_t *len)
{
    char *text = malloc(LINES * 64);

    *len = 0;
    ck_assert_ptr_nonnull(text);
    for (int i = 0; i < LINES; i++)
        *len += (size_t)sprintf(text + *len, "http://host%d.test/some/longer/path/%d\t%d\n", i % 7,
                                i % 5000, i);
    return text;
}

static inline size_t
pack_gzip(const char *text, size_t len, char *out, size_t capacity)
{
    z_stream z = {0};

    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)(uintptr_t)text;
    z.avail_in = (unsigned)len;
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)capacity;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return capacity - z.avail_out;
}

static inline size_t
pack_bzip2(const char *text, size_t len, char *out, size_t capacity)
{
    unsigned packed = (unsigned)capacity;

    ck_assert_int_eq(
        BZ2_bzBuffToBuffCompress(out, &packed, (char *)(uintptr_t)text, (unsigned)len, 1, 0, 0),
        BZ_OK);
    return packed;
}

static inline size_t
pack_xz(const char *text, size_t len, char *out, size_t capacity)
{
    size_t at = 0;

    ck_assert_int_eq(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)text, len,
                                             (uint8_t *)out, &at, capacity),
                     LZMA_OK);
    return at;
}

static inline size_t
pack_zstd(const char *text, size_t len, char *out, size_t capacity)
{
    ZSTD_CCtx *context = ZSTD_createCCtx();
    size_t packed;

    /* With the checksum that the program zstd writes. */
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    packed = ZSTD_compress2(context, out, capacity, text, len);
    ck_assert(!ZSTD_isError(packed));
    ZSTD_freeCCtx(context);
    return packed;
}

static size_t (*const packers[])(const char *text, size_t len, char *out,
                                 size_t capacity) = {pack_gzip, pack_bzip2, pack_xz, pack_zstd};

#define PACKERS ((int)(sizeof(packers) / sizeof(packers[0])))

/* The trace has the list this number of times. */
static inline void
packing_check_list(const struct trace *t, size_t times)
{
    ck_assert_uint_eq(t->request_count, LINES * times);
    ck_assert_uint_eq(t->counts.skipped_bad, 0);
    for (uint32_t i = 0; i < t->request_count; i++)
        ck_assert_uint_eq(t->sizes[i], i % LINES);
}

/* A database of some pages, as bytes. */
static inline char *
packing_make_database(size_t *len)
{
    sqlite3 *db;
    char path[256];
    char *bytes;

    snprintf(path, sizeof(path), "%s", scratch_path("db"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db,
                                  "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
                                  "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER,"
                                  " visit_time INTEGER, transition INTEGER);"
                                  "INSERT INTO urls VALUES(1,'http://a.test/');"
                                  "INSERT INTO visits VALUES(1,1,11644473601000000,0),"
                                  "(2,1,11644473602000000,0);",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    bytes = scratch_read(path, len);
    unlink(path);
    return bytes;
}

#endif
