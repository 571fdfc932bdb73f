/* Bodies without content coding, of objects that are made here. */
#define UNIT_STARTS_NO_THREAD

#include "server/rpc/content.h"

#include "http/known_fields.h"
#include "proxy.h"
#include "tests/unit/server/rpc/coded.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define MIB ((size_t)1 << 20)
#define LINES "A: b\r\nContent-Type: text/plain\r\n"

enum { TEXT = 5 << 20, CODED = TEXT + 65536 };

static char text[TEXT], coded[CODED];
static struct memory_account account;
static struct client_share share;
static struct content_limits limits;
static struct content content;
static struct object *object;

static void
set_up_memory(uint64_t of_replies)
{
    content_end(&content);
    memory_account_init(&account, 8 * of_replies, NULL);
    client_share_init_memory(&share, CLIENT_WAITING, &account, MEMORY_REQUESTS);
}

static void
set_up(void)
{
    /* Compressible, and not all the same. */
    for (size_t i = 0; i < TEXT; i++)
        text[i] = (char)('a' + (i / 7 + i * (i / 1000)) % 26);
    set_up_memory(UINT64_MAX / 64);
    limits = (struct content_limits){
        .share = &share, .client = unit_client(0), .max_body = TEXT, .ratio = CONTENT_MAX_RATIO};
    content = (struct content){0};
}

/* Nothing stays behind. */
static void
tear_down(void)
{
    content_end(&content);
    content_end(&content);
    object_release(&object);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
    ck_assert_uint_eq(client_share_total(&share), 0);
}

/* ---- objects --------------------------------------------------------------------------------- */

static void
make(const char *lines, bool segmented)
{
    tear_down();
    object = object_make(&(struct object_parts){
        .url = span_str("http://a/"),
        .fields = span_str(lines),
        .notes = segmented ? 0 : http_known_fields(span_str(lines)),
        .status = 200,
        .segmented = segmented,
        .inline_size = segmented ? 0 : OBJECT_INLINE_MAX,
    });
    ck_assert_ptr_nonnull(object);
}

static void
make_coded(enum coding coding, bool segmented)
{
    char lines[256];

    snprintf(lines, sizeof(lines), "A: b\r\nContent-Length: 7\r\nContent-Encoding: %s\r\nC: d\r\n",
             coding_name(coding));
    make(lines, segmented);
}

static void
append(const char *bytes, size_t len)
{
    const size_t most = 16384;

    while (len) {
        size_t now = len < most ? len : most;

        ck_assert_int_eq(object_append(object, bytes, now, UINT64_MAX), 0);
        bytes += now;
        len -= now;
    }
}

static void
complete(void)
{
    object_complete(object, 0, 0, OBJECT_UNLIMITED);
}

/* A complete object whose body decodes to the beginning of the text; returns the coded length. */
static size_t
make_text(enum coding coding, size_t len, bool segmented)
{
    size_t coded_len = code_text(coding, text, len, coded, sizeof(coded));

    make_coded(coding, segmented);
    append(coded, coded_len);
    complete();
    content_begin(&content, object, &limits);
    return coded_len;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Takes what has been found, which is the text from that offset on. */
static size_t
take(uint64_t offset)
{
    size_t found = content.there, len = 0;
    struct content_piece piece, rest;
    struct span run;

    content_take(&content, &piece);
    rest = piece;
    ck_assert_uint_eq(piece.len, found);
    while (run = content_piece_read(&rest), run.len) {
        ck_assert(memcmp(run.ptr, text + offset + len, run.len) == 0);
        ck_assert_uint_le(run.len, PROXY_MAX_PIECE);
        len += run.len;
    }
    ck_assert_uint_eq(len, found);
    ck_assert_uint_eq(rest.len, 0);
    content_piece_release(&piece);
    return len;
}

/* Seeks until the turns do not end it. */
static enum content_step
seek(uint64_t offset, size_t want)
{
    enum content_step step;

    do {
        step = content_seek(&content, offset, want);
    } while (step == CONTENT_BUSY);
    return step;
}

/* Reads pieces of `want` bytes to the end; returns how many bytes there were. */
static size_t
read_text(uint64_t offset, size_t want)
{
    enum content_step step;
    size_t len = 0;

    do {
        step = seek(offset + len, want);
        ck_assert(step == CONTENT_THERE || step == CONTENT_LAST);
        if (step == CONTENT_THERE)
            ck_assert_uint_eq(content.there, want);
        len += take(offset + len);
    } while (step != CONTENT_LAST);
    ck_assert_int_eq(content_length(&content), (int64_t)(offset + len));
    return len;
}

static void
expect_failure(enum content_step step, enum failure why, const char *part)
{
    ck_assert_int_eq(step, CONTENT_FAILED);
    ck_assert_int_eq(content.stage, CONTENT_BROKEN);
    ck_assert_int_eq(content.why, why);
    ck_assert_msg(strstr(content.sentence, part), "%s", content.sentence);
    ck_assert_uint_eq(content.there, 0);
    ck_assert_int_eq(content_length(&content), -1);
    ck_assert_int_eq(content_seek(&content, 0, 1), CONTENT_FAILED);
}

/* ---- bodies that are not coded --------------------------------------------------------------- */

/* Nothing is copied and nothing charged. */
START_TEST(a_body_that_is_not_coded)
{
    static const char *const lines[] = {LINES, LINES "Content-Encoding: identity\r\n",
                                        LINES "Content-Encoding:\r\n"};
    const size_t len = _i % 2 ? 3 * MIB : 1000;

    make(lines[_i / 2], _i % 2);
    append(text, len);
    complete();
    content_begin(&content, object, &limits);
    ck_assert_int_eq(content.stage, CONTENT_PLAIN);
    ck_assert_ptr_eq(content_fields(&content).ptr, object_fields(object).ptr);
    ck_assert_uint_eq(content_fields(&content).len, strlen(lines[_i / 2]));
    ck_assert_uint_eq(read_text(0, 999), len);
    ck_assert_uint_eq(read_text(3, MIB), len - 3);
    ck_assert_int_eq(content_seek(&content, len, 1), CONTENT_LAST);
    ck_assert_int_eq(content_seek(&content, UINT64_MAX, 1), CONTENT_LAST);
    ck_assert_uint_eq(content.there, 0);
    ck_assert_int_eq(content_seek(&content, 5, 0), CONTENT_THERE);
    ck_assert_int_eq(content_seek(&content, len - 5, 5), CONTENT_LAST);
    ck_assert_uint_eq(take(len - 5), 5);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
}
END_TEST

START_TEST(a_whole_body_that_is_one_run)
{
    struct content_piece piece;

    for (unsigned segmented = 0; segmented < 2; segmented++) {
        make(LINES, segmented);
        append("ab\0cd", segmented ? 2 : 5);
        complete();
        content_begin(&content, object, &limits);
        ck_assert_int_eq(content_seek(&content, 0, 100), CONTENT_LAST);
        content_take(&content, &piece);
        ck_assert_int_eq(content_piece_inline(&piece).ptr != NULL, !segmented);
        ck_assert_int_eq(content_piece_has_zero_byte(&piece), !segmented);
        if (!segmented)
            ck_assert(span_equal(content_piece_inline(&piece), span_of("ab\0cd", 5)));
        content_piece_release(&piece);
        content_piece_release(&piece);
    }
}
END_TEST

START_TEST(a_growing_body_that_is_not_coded)
{
    make(LINES "Content-Length: 40000\r\n", true);
    content_begin(&content, object, &limits);
    ck_assert_int_eq(content_length(&content), 40000);
    ck_assert_int_eq(content_seek(&content, 0, 100), CONTENT_WAITS);
    append(text, 100);
    /* There may be no more. */
    ck_assert_int_eq(content_seek(&content, 0, 100), CONTENT_WAITS);
    ck_assert_uint_eq(content.there, 100);
    append(text + 100, 20000);
    ck_assert_int_eq(content_seek(&content, 0, 100), CONTENT_THERE);
    ck_assert_uint_eq(take(0), 100);
    ck_assert_uint_eq(content_taken(&content), 100);
    ck_assert_int_eq(content_seek(&content, 99, 1), CONTENT_PASSED);
    ck_assert_int_eq(content_seek(&content, 19000, 500), CONTENT_THERE);
    ck_assert_uint_eq(take(19000), 500);
    ck_assert_int_eq(content_seek(&content, 30000, 500), CONTENT_WAITS);
    ck_assert_uint_eq(content.there, 0);
    append(text + 20100, 19900);
    complete();
    ck_assert_uint_eq(read_text(30000, 500), 10000);
    ck_assert_uint_eq(read_text(0, 30000), 40000);
}
END_TEST

START_TEST(stated_lengths)
{
    static const struct {
        const char *lines;
        int64_t length;
    } rows[] = {
        {LINES, -1},
        {LINES "Content-Length: 17\r\n", 17},
        {LINES "content-length:0\r\n", 0},
        {LINES "Content-Length: +17\r\n", -1},
        {LINES "Content-Length: 9223372036854775808\r\n", -1},
        {LINES "Content-Length: \r\n", -1},
        {LINES "Content-Length: 17\r\nContent-Encoding: gzip\r\n", -1},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        make(rows[i].lines, true);
        content_begin(&content, object, &limits);
        ck_assert_int_eq(content_length(&content), rows[i].length);
    }
}
END_TEST

/* ---- codings --------------------------------------------------------------------------------- */

START_TEST(each_coding)
{
    static const size_t lens[] = {0, 1, 999, 1000, 1001, 200000, MIB - 1, MIB, MIB + 1, TEXT};
    static const size_t wants[] = {1000, 65537, MIB};
    enum coding coding = (enum coding)_i;

    for (size_t i = 0; i < LENGTH(lens); i++)
        for (size_t j = 0; j < LENGTH(wants); j++) {
            make_text(coding, lens[i], true);
            ck_assert_int_eq(content.stage, CONTENT_CODED);
            ck_assert_int_eq(content_length(&content), -1);
            ck_assert(span_equal(content_fields(&content), span_str("A: b\r\nC: d\r\n")));
            ck_assert_uint_eq(read_text(0, wants[j]), lens[i]);
            ck_assert_int_eq(content.stage, CONTENT_ENDED);
        }
}
END_TEST

START_TEST(an_inline_body_that_is_coded)
{
    make_text(CODING_GZIP, 3000, false);
    ck_assert_int_eq(content_seek(&content, 0, MIB), CONTENT_LAST);
    ck_assert_uint_eq(content.there, 3000);
    ck_assert_uint_eq(take(0), 3000);
}
END_TEST

/* Several codings, and those that are not known, may be any work. A name has no case. */
START_TEST(names_of_codings)
{
    static const struct {
        const char *lines;
        enum content_stage stage;
    } rows[] = {
        {"Content-Encoding: GZip\r\n", CONTENT_CODED},
        {"content-encoding: x-gzip, identity\r\n", CONTENT_CODED},
        {"Content-Encoding: identity\r\nContent-Encoding: br\r\n", CONTENT_CODED},
        {"Content-Encoding: rot13\r\n", CONTENT_BROKEN},
        {"Content-Encoding: gzip, gzip\r\n", CONTENT_BROKEN},
        {"Content-Encoding: gzip\r\nA: b\r\nContent-Encoding: br\r\n", CONTENT_BROKEN},
        {"Content-Encoding: gzip\r\nContent-Encoding: rot13\r\n", CONTENT_BROKEN},
    };

    for (size_t i = 0; i < LENGTH(rows); i++)
        for (unsigned segmented = 0; segmented < 2; segmented++) {
            make(rows[i].lines, segmented);
            content_begin(&content, object, &limits);
            ck_assert_int_eq(content.stage, rows[i].stage);
            if (rows[i].stage == CONTENT_BROKEN)
                expect_failure(content_seek(&content, 0, 1), FAILURE_ORIGIN, "unknown or one of");
        }
}
END_TEST

/* Its fields are those of another response. */
START_TEST(a_response_that_has_no_body)
{
    static const uint16_t statuses[] = {204, 304};

    for (size_t i = 0; i < LENGTH(statuses); i++) {
        make("Content-Encoding: rot13\r\n", false);
        object->status = statuses[i];
        complete();
        content_begin(&content, object, &limits);
        ck_assert_int_eq(content_seek(&content, 0, 10), CONTENT_LAST);
        ck_assert_uint_eq(content_fields(&content).len, object_fields(object).len);
    }
}
END_TEST

/* The lines that keep what an origin has said are not for clients, however long they are. */
START_TEST(fields_that_are_not_for_clients)
{
    static char lines[70000];
    size_t len = (size_t)snprintf(lines, sizeof(lines), "A: b\r\n%s: Expires: 0\r\nLong: ",
                                  HTTP_ORIGIN_CONTROL);
    struct span fields;

    memset(lines + len, 'x', 60000);
    snprintf(lines + len + 60000, 20, "\r\nC: d\r\n");
    make(lines, false);
    complete();
    content_begin(&content, object, &limits);
    ck_assert_int_eq(content.stage, CONTENT_PLAIN);
    fields = content_fields(&content);
    ck_assert_uint_eq(fields.len, 6 + 6 + 60000 + 2 + 6);
    ck_assert(span_starts_with(fields, span_str("A: b\r\nLong: xx")));
    ck_assert_uint_ge(memory_used(&account, MEMORY_REPLIES), fields.len);
    ck_assert_int_eq(content_seek(&content, 0, 10), CONTENT_LAST);
    set_up_memory(50000);
    content_begin(&content, object, &limits);
    expect_failure(content_seek(&content, 0, 10), FAILURE_OVERLOADED, "no memory for the answer");
    content_end(&content);
    set_up_memory(UINT64_MAX / 64);
    make("A: b\r\n" HTTP_ORIGIN_CONTROL ": Pragma: x\r\nContent-Encoding: gzip\r\n", true);
    object->notes = 0;
    content_begin(&content, object, &limits);
    ck_assert_int_eq(content.stage, CONTENT_CODED);
    ck_assert(span_equal(content_fields(&content), span_str("A: b\r\n")));
}
END_TEST

/* A body may be empty whatever its coding; a part of the coded content is no body. */
START_TEST(a_body_that_is_cut)
{
    enum coding coding = (enum coding)_i;
    size_t len = code_text(coding, text, 100000, coded, sizeof(coded));

    for (size_t cut = 0; cut < len; cut += cut < 10 ? 1 : len / 10) {
        enum content_step step;
        uint64_t at = 0;

        make_coded(coding, true);
        append(coded, cut);
        complete();
        content_begin(&content, object, &limits);
        while (step = seek(at, 1000), step == CONTENT_THERE)
            at += take(at);
        if (cut == 0)
            ck_assert_int_eq(step, CONTENT_LAST);
        else
            expect_failure(step, FAILURE_ORIGIN, "it ends within its coded content");
    }
}
END_TEST

START_TEST(a_body_that_is_not_in_its_coding)
{
    enum content_step step;
    uint64_t at = 0;
    size_t len;

    make_coded(CODING_GZIP, true);
    append("abcdef", 6);
    content_begin(&content, object, &limits);
    expect_failure(content_seek(&content, 0, 100), FAILURE_ORIGIN, "not in its content coding");
    /* The check sum, behind the last byte: the last piece is not given. */
    len = code_text(CODING_GZIP, text, 100000, coded, sizeof(coded));
    coded[len - 6] ^= 1;
    make_coded(CODING_GZIP, true);
    append(coded, len);
    complete();
    content_begin(&content, object, &limits);
    while (step = seek(at, 1000), step == CONTENT_THERE)
        at += take(at);
    expect_failure(step, FAILURE_ORIGIN, "not in its content coding");
    ck_assert_uint_eq(at, 99000);
}
END_TEST

/* A zero byte is seen in any block. */
START_TEST(zero_bytes)
{
    static const size_t ats[] = {0, 20000, 499999};
    struct content_piece piece;

    for (size_t i = 0; i <= LENGTH(ats); i++) {
        char kept = i < LENGTH(ats) ? text[ats[i]] : 0;

        if (i < LENGTH(ats))
            text[ats[i]] = '\0';
        make_text(CODING_ZSTD, 500000, true);
        ck_assert_int_eq(seek(0, MIB), CONTENT_LAST);
        content_take(&content, &piece);
        ck_assert_int_eq(content_piece_has_zero_byte(&piece), i < LENGTH(ats));
        ck_assert_ptr_null(content_piece_inline(&piece).ptr);
        content_piece_release(&piece);
        if (i < LENGTH(ats))
            text[ats[i]] = kept;
    }
}
END_TEST

/* ---- growing bodies -------------------------------------------------------------------------- */

/* Each byte that comes is decoded as far as it goes. */
START_TEST(a_body_that_comes_byte_by_byte)
{
    enum coding coding = (enum coding)_i;
    size_t len = code_text(coding, text, 3000, coded, sizeof(coded)), at = 0;

    make_coded(coding, true);
    content_begin(&content, object, &limits);
    for (size_t i = 0; i < len; i++) {
        enum content_step step = seek(at, 1000);

        ck_assert_int_ne(step, CONTENT_LAST);
        ck_assert_int_ne(step, CONTENT_FAILED);
        if (step == CONTENT_THERE)
            at += take(at);
        else
            ck_assert_uint_eq(content_taken(&content), i);
        append(coded + i, 1);
    }
    complete();
    ck_assert_uint_eq(at + read_text(at, 1000), 3000);
}
END_TEST

/* What there is may be taken, whatever was wanted. */
START_TEST(pieces_of_a_growing_body)
{
    size_t len = code_text(CODING_BROTLI, text, 100000, coded, sizeof(coded));
    size_t half = len / 2, at;

    make_coded(CODING_BROTLI, true);
    content_begin(&content, object, &limits);
    append(coded, half);
    ck_assert_int_eq(seek(0, MIB), CONTENT_WAITS);
    at = take(0);
    ck_assert_uint_ge(at, half - 100);
    ck_assert_int_eq(seek(at, MIB), CONTENT_WAITS);
    ck_assert_uint_eq(take(at), 0);
    append(coded + half, len - half);
    ck_assert_int_eq(seek(at, MIB), CONTENT_WAITS);
    ck_assert_uint_eq(content.there, 100000 - at);
    complete();
    ck_assert_int_eq(seek(at, MIB), CONTENT_LAST);
    ck_assert_uint_eq(take(at), 100000 - at);
    ck_assert_int_eq(seek(100000, MIB), CONTENT_LAST);
    ck_assert_int_eq(seek(200000, MIB), CONTENT_LAST);
    ck_assert_int_eq(seek(100000, 0), CONTENT_LAST);
    ck_assert_int_eq(seek(99999, 1), CONTENT_PASSED);
}
END_TEST

/* Forward only; a call for nothing decodes nothing. */
START_TEST(offsets)
{
    make_text(CODING_GZIP, TEXT, true);
    ck_assert_int_eq(content_seek(&content, 4 * MIB, 0), CONTENT_WAITS);
    ck_assert_uint_eq(content_taken(&content), 0);
    ck_assert_int_eq(seek(0, 10), CONTENT_THERE);
    ck_assert_uint_eq(take(0), 10);
    ck_assert_int_eq(seek(9, 10), CONTENT_PASSED);
    ck_assert_int_eq(seek(9, 0), CONTENT_PASSED);
    ck_assert_int_eq(seek(10, 10), CONTENT_THERE);
    ck_assert_uint_eq(take(10), 10);
    ck_assert_int_eq(seek(21, 10), CONTENT_THERE);
    ck_assert_uint_eq(take(21), 10);
    ck_assert_int_eq(content_seek(&content, TEXT - 7, 100), CONTENT_BUSY);
    ck_assert_int_eq(seek(TEXT - 7, 100), CONTENT_LAST);
    ck_assert_uint_eq(take(TEXT - 7), 7);
    ck_assert_int_eq(content_length(&content), TEXT);
}
END_TEST

/* A turn decodes 1 MiB, and not much more. */
START_TEST(long_bodies_take_turns)
{
    unsigned turns = 1;

    memset(text, 'x', TEXT);
    make_text(CODING_GZIP, TEXT, true);
    while (content_seek(&content, 0, TEXT) == CONTENT_BUSY) {
        ck_assert_uint_ge(content.there, turns * MIB);
        ck_assert_uint_le(content.there, turns * 2 * MIB);
        turns++;
    }
    ck_assert_uint_ge(turns, 3);
    ck_assert_uint_eq(take(0), TEXT);
    /* What cannot be compressed, too. */
    make_text(CODING_BROTLI, MIB, true);
    ck_assert_int_eq(content_seek(&content, 0, MIB), CONTENT_LAST);
}
END_TEST

/* So does what decodes to little. */
START_TEST(coded_bytes_take_turns)
{
    const size_t len = 80;
    unsigned turns = 1;

    make_coded(CODING_DEFLATE, true);
    append(coded, code_thinly(text, len, coded, sizeof(coded)));
    complete();
    content_begin(&content, object, &limits);
    while (content_seek(&content, 0, MIB) == CONTENT_BUSY)
        turns++;
    ck_assert_uint_ge(turns, 2);
    ck_assert_uint_eq(take(0), len);
    ck_assert_int_eq(content_seek(&content, len, MIB), CONTENT_LAST);
}
END_TEST

/* The coded bytes that have been taken are freed. */
START_TEST(a_window_that_moves)
{
    enum coding coding = (enum coding)_i;
    size_t len = code_text(coding, text, TEXT, coded, sizeof(coded)), sent = 0, at = 0;
    enum content_step step = CONTENT_WAITS;

    make_coded(coding, true);
    content_begin(&content, object, &limits);
    while (step != CONTENT_LAST) {
        size_t now = len - sent < 100000 ? len - sent : 100000;

        append(coded + sent, now);
        if (sent == 0)
            object_set_windowed(object);
        sent += now;
        if (sent == len)
            complete();
        do {
            struct segment *trimmed = NULL;

            step = seek(at, 65536);
            ck_assert_int_ne(step, CONTENT_FAILED);
            if (step == CONTENT_WAITS)
                break;
            at += take(at);
            object_trim(object, content_taken(&content), &trimmed);
            segments_free(trimmed);
        } while (step == CONTENT_THERE);
        ck_assert_uint_lt(object_size(object), 3 * MIB / 2);
    }
    ck_assert_uint_eq(at, TEXT);
    ck_assert_int_eq(seek(0, 1), CONTENT_PASSED);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Beyond max_body a byte may become CONTENT_MAX_RATIO. */
START_TEST(the_ratio_of_a_long_body)
{
    static const char zeros[64 << 10];
    enum coding coding = (enum coding)_i;
    size_t len;

    memset(text, 'x', TEXT);
    limits.max_body = 100000;
    make_text(coding, TEXT, true);
    if (coding != CODING_ZSTD) {
        ck_assert_uint_eq(read_text(0, MIB), TEXT);
    } else { /* 5 MiB of a few hundred bytes */
        expect_failure(seek(0, MIB), FAILURE_TOO_LARGE, "decoded to more than the bound of");
    }
    /* Up to the bound any ratio is allowed. */
    len = code_text(CODING_ZSTD, zeros, sizeof(zeros), coded, sizeof(coded));
    ck_assert_uint_lt(len * CONTENT_MAX_RATIO, sizeof(zeros));
    make_coded(CODING_ZSTD, true);
    append(coded, len);
    complete();
    content_begin(&content, object, &limits);
    ck_assert_int_eq(seek(0, MIB), CONTENT_LAST);
}
END_TEST

/* Of a front that does not stream. */
START_TEST(the_length_of_a_short_body)
{
    limits.ratio = 0;
    limits.max_body = 100000;
    make_text(CODING_GZIP, 100000, true);
    ck_assert_uint_eq(read_text(0, MIB), 100000);
    make_text(CODING_GZIP, 100001, true);
    expect_failure(seek(0, MIB), FAILURE_TOO_LARGE, "the bound of 100000 bytes");
}
END_TEST

/* For the decoder, for bytes, and for a decoder's window. A client may have a quarter. */
START_TEST(memory_that_is_used_up)
{
    set_up_memory(256 << 10);
    make_text(CODING_GZIP, 1000, true);
    expect_failure(content_seek(&content, 0, 10), FAILURE_OVERLOADED, "no memory for the answer");
    set_up_memory(600 << 10);
    make_text(CODING_GZIP, MIB, true);
    expect_failure(seek(0, MIB), FAILURE_OVERLOADED, "no memory for the answer");
    make_text(CODING_ZSTD, MIB, true);
    expect_failure(seek(MIB - 10, 100), FAILURE_OVERLOADED, "no memory for the answer");
    make_text(CODING_GZIP, MIB, true);
    ck_assert_uint_eq(read_text(0, 10000), MIB);
}
END_TEST

/* A piece stays until it is released, whatever becomes of the content. */
START_TEST(a_piece_stays)
{
    struct content_piece first, second, rest;

    make_text(CODING_GZIP, 3 * MIB, true);
    ck_assert_int_eq(seek(0, MIB), CONTENT_THERE);
    content_take(&content, &first);
    ck_assert_int_eq(seek(MIB, MIB), CONTENT_THERE);
    content_take(&content, &second);
    ck_assert_uint_ge(memory_used(&account, MEMORY_REPLIES), 2 * MIB);
    ck_assert_int_eq(seek(2 * MIB, 1000), CONTENT_THERE);
    content_end(&content);
    object_release(&object);
    rest = second;
    ck_assert(memcmp(content_piece_read(&rest).ptr, text + MIB, 1000) == 0);
    content_piece_release(&first);
    ck_assert_uint_ge(memory_used(&account, MEMORY_REPLIES), MIB);
    content_piece_release(&second);
    ck_assert_uint_eq(memory_used(&account, MEMORY_REPLIES), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: content");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_body_that_is_not_coded, 0, 6);
    tcase_add_test(tests, a_whole_body_that_is_one_run);
    tcase_add_test(tests, a_growing_body_that_is_not_coded);
    tcase_add_test(tests, stated_lengths);
    tcase_add_loop_test(tests, each_coding, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, an_inline_body_that_is_coded);
    tcase_add_test(tests, names_of_codings);
    tcase_add_test(tests, a_response_that_has_no_body);
    tcase_add_test(tests, fields_that_are_not_for_clients);
    tcase_add_loop_test(tests, a_body_that_is_cut, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, a_body_that_is_not_in_its_coding);
    tcase_add_test(tests, zero_bytes);
    tcase_add_loop_test(tests, a_body_that_comes_byte_by_byte, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, pieces_of_a_growing_body);
    tcase_add_test(tests, offsets);
    tcase_add_test(tests, long_bodies_take_turns);
    tcase_add_test(tests, coded_bytes_take_turns);
    tcase_add_loop_test(tests, a_window_that_moves, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_loop_test(tests, the_ratio_of_a_long_body, CODING_GZIP, CODING_UNKNOWN);
    tcase_add_test(tests, the_length_of_a_short_body);
    tcase_add_test(tests, memory_that_is_used_up);
    tcase_add_test(tests, a_piece_stays);
    suite_add_tcase(suite, tests);
    return suite;
}
