/*
 * The parser of request heads beside an independent one, h11: the same mutated heads to both. Where
 * both accept, they read the same. Where one refuses what the other accepts, a table says why.
 */
#include "http/request_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "http/field.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define HEADS 20000u
#define MOST_BYTES 4096u

/* What this parser refuses and h11 accepts, by the reason that it gives. */
static const struct {
    const char *reason, *why;
} stricter[] = {
    {"Content-Length is not a number", "9110 8.6 permits to merge a list of equal ones"},
    {"there is more than one Content-Length", "9110 8.6, likewise"},
    {"there are both Transfer-Encoding and Content-Length", "9112 6.3 permits to refuse them"},
    {"there is a Transfer-Encoding in HTTP/1.0", "9112 6.1: its framing is faulty"},
    {"CONNECT has no body", "9110 9.3.6: it has no defined semantics"},
    {"the body of a request in HTTP/1.0 needs a Content-Length", "9110 15.5.12 permits to ask"},
    {"a line begins with a blank", "9112 5.2: folding is refused, not undone"},
    {"a line has no colon, or is not ended by CR LF", "9112 2.2: LF ends no head"},
    {"a line is ended by LF without CR", "9112 2.2: LF ends no line"},
    {"the version is malformed, or CR LF does not follow it", "9112 2.2: LF ends no line"},
    {"there is a control character in a value", "9110 5.5: h11 refuses NUL and white space only"},
    {"the target is empty or has a character that must be encoded", "9112 3.2: h11 permits #"},
    {"the target is no path, nor a URL of http or https", "9112 3.2: h11 does not check it"},
    {"the target's authority is not a host, or a host and a port", "9112 3.2.2: likewise"},
    {"the target of CONNECT is not a host and a port", "9112 3.2.3: likewise"},
    {"the target * is for OPTIONS alone", "9112 3.2.4: likewise"},
    {"Host is not a host, or a host and a port", "9112 3.2: likewise"},
    {"Host is empty", "9112 3.2: likewise"},
    {"the version is not HTTP/1.x", "9110 2.5: likewise"},
    {"the version is older than HTTP/1.0", "9112 2.3: likewise"},
    {"only 100-continue can be expected", "9110 10.1.1: likewise"},
};

/* What h11 refuses and this parser accepts. */
static const struct {
    const char *reason, *why;
} laxer[] = {
    {"no request line received", "9112 2.2: one empty line before a request is skipped"},
};

/* ---- heads --------------------------------------------------------------------------- */

static const char *const bases[] = {
    "GET /a?b=c HTTP/1.1\r\nHost: example.com\r\nAccept: */*\r\nX-Y: z\r\n\r\n",
    "GET http://example.com:8080/a HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST / HTTP/1.0\r\nHost: h\r\nContent-Length: 05\r\n\r\nhello",
    "OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close, x\r\n\r\n",
    "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
    "PUT /a HTTP/1.1\r\nHost: [::1]:80\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    "M-SEARCH /a HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nGET / HTTP/1.1\r\n",
};

static const char *const lines[] = {
    "Content-Length: 5\r\n",
    "content-length: 5, 5\r\n",
    "Content-Length: 6\r\n",
    "Content-Length: +5\r\n",
    "Content-Length:\r\n",
    "Content-Length : 5\r\n",
    "Content_Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n",
    "transfer-encoding: Chunked\r\n",
    "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding\t: chunked\r\n",
    "Host: i\r\n",
    "Host: a b\r\n",
    " folded\r\n",
    "A: b\n",
    "A:\tb \r\n",
    "A: \xc3\xa4\r\n",
    "A: b\rc\r\n",
    "no colon\r\n",
    ": no name\r\n",
    "Expect: x\r\n",
    "\r\n",
    "\n",
};

static const char bytes[] = "\0\t\n\v\f\r \"#%,/0159:;@A[\\]_az{|}~\x7f\x80\xa0\xff";

/* Replaces `len` bytes at `at`. */
static void
splice(struct buf *head, size_t at, size_t len, struct span by)
{
    struct buf made;

    buf_init(&made, MOST_BYTES);
    buf_append(&made, head->data, at);
    buf_append(&made, by.ptr, by.len);
    buf_append(&made, head->data + at + len, head->len - at - len);
    ck_assert(!buf_failed(&made));
    buf_free(head);
    *head = made;
}

/* Where one of the lines begins. */
static size_t
line_start(const struct buf *head, uint64_t *state)
{
    size_t at = unit_draw(state, (uint32_t)head->len + 1);

    while (at > 0 && head->data[at - 1] != '\n')
        at--;
    return at;
}

static void
mutate(struct buf *head, uint64_t *state)
{
    size_t at = unit_draw(state, (uint32_t)head->len + 1);
    char byte = bytes[unit_draw(state, sizeof(bytes) - 1)];
    bool inside = at < head->len;

    switch (unit_draw(state, 6)) {
    case 0:
        splice(head, at, inside, span_of(&byte, 1));
        break;
    case 1:
        splice(head, at, 0, span_of(&byte, 1));
        break;
    case 2:
        splice(head, at, inside, span_of(NULL, 0));
        break;
    case 3:
        splice(head, at, head->len - at, span_of(NULL, 0));
        break;
    default:
        splice(head, line_start(head, state), 0, span_str(lines[unit_draw(state, LENGTH(lines))]));
        break;
    }
}

static void
make_head(struct buf *head, uint64_t *state)
{
    unsigned mutations = unit_draw(state, 2);

    buf_init(head, MOST_BYTES);
    buf_append_str(head, bases[unit_draw(state, LENGTH(bases))]);
    for (unsigned i = 0; i <= mutations; i++)
        mutate(head, state);
}

/* ---- readings ------------------------------------------------------------------------ */

static void
append_hex(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        buf_printf(out, "%02x", (unsigned char)s.ptr[i]);
}

static void
append_lower(struct buf *out, struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        buf_append_char(out,
                        s.ptr[i] >= 'A' && s.ptr[i] <= 'Z' ? (char)(s.ptr[i] | 0x20) : s.ptr[i]);
}

/* What the head says, as h11_peer.py prints it. */
static void
describe(struct buf *out, const struct http_request *request, char minor)
{
    struct span rest = request->fields, line, name, value;
    struct buf fields;

    buf_printf(out, "accepted %zu ", request->head_len);
    if (request->chunked)
        buf_append_str(out, "chunked ");
    else if (request->content_length >= 0)
        buf_printf(out, "%lld ", (long long)request->content_length);
    else
        buf_append_str(out, "- ");
    append_hex(out, request->method);
    buf_append_char(out, ' ');
    append_hex(out, request->target);
    buf_printf(out, " 312e%02x ", (unsigned char)minor);
    buf_init(&fields, MOST_BYTES);
    while (http_next_line(&rest, &line)) {
        ck_assert(http_split_field(line, &name, &value));
        append_lower(&fields, name);
        buf_append_char(&fields, ':');
        if (http_name_is(name, "Transfer-Encoding"))
            append_lower(&fields, value);
        else
            buf_append(&fields, value.ptr, value.len);
        buf_append_char(&fields, '\n');
    }
    append_hex(out, buf_span(&fields));
    ck_assert(!buf_failed(out) && !buf_failed(&fields));
    buf_free(&fields);
}

/* The last digit of the version, as it came: the result says 1 for all above. */
static char
minor_as_sent(const struct http_request *request)
{
    return request->target.ptr[request->target.len + sizeof(" HTTP/1.") - 1];
}

static bool
is_stricter(const char *reason)
{
    for (size_t i = 0; i < LENGTH(stricter); i++)
        if (strcmp(stricter[i].reason, reason) == 0)
            return true;
    return false;
}

/* 9112 3.2: bytes over 127 in a target are encoded. */
static bool
is_laxer(const char *line, const struct http_request *request)
{
    if (request->raw_octets)
        return span_starts_with(span_str(line), span_str("refused illegal request line"));
    for (size_t i = 0; i < LENGTH(laxer); i++)
        if (strcmp(laxer[i].reason, line + strlen("refused ")) == 0)
            return true;
    return false;
}

struct tally {
    unsigned both, neither, ours, theirs, partial;
};

static void
compare(const struct buf *head, const char *line, struct tally *tally)
{
    struct http_head_limits limits;
    struct http_request request;
    struct http_refusal refusal;
    size_t searched = 0;
    struct buf ours;

    http_head_limits_default(&limits);
    buf_init(&ours, 4 * MOST_BYTES);
    switch (http_request_head_read(&request, buf_span(head), &searched, &limits, &refusal)) {
    case HTTP_HEAD_COMPLETE:
        if (strncmp(line, "refused ", 8) == 0) {
            ck_assert_msg(is_laxer(line, &request), "h11 alone: %s: \"%s\"", line, buf_str(head));
            tally->ours++;
            break;
        }
        describe(&ours, &request, minor_as_sent(&request));
        ck_assert_msg(strcmp(buf_str(&ours), line) == 0, "\"%s\":\n%s\n%s", buf_str(head),
                      buf_str(&ours), line);
        tally->both++;
        break;
    case HTTP_HEAD_REFUSED:
        ck_assert_msg(strncmp(line, "accepted ", 9) != 0 || is_stricter(refusal.reason),
                      "h11 accepts: %s: \"%s\"", refusal.reason, buf_str(head));
        tally->theirs += strncmp(line, "accepted ", 9) == 0;
        tally->neither += strncmp(line, "refused ", 8) == 0;
        break;
    case HTTP_HEAD_PARTIAL:
        ck_assert_msg(strncmp(line, "accepted ", 9) != 0, "h11 sees an end: \"%s\"", buf_str(head));
        tally->partial++;
        break;
    }
    buf_free(&ours);
}

/* ---- the peer ------------------------------------------------------------------------ */

/* Has h11 read the file of heads; a stream of its lines. */
static FILE *
start_peer(const char *path)
{
    char command[256];
    FILE *answers;

    /* Debian's interpreter, for which scripts/setup.sh installs h11. */
    snprintf(command, sizeof(command), "/usr/bin/python3 tests/unit/http/h11_peer.py < %s", path);
    answers = popen(command, "r");
    ck_assert_ptr_nonnull(answers);
    return answers;
}

static void
write_heads(int fd)
{
    uint64_t state = 1;
    FILE *file = fdopen(fd, "w");

    ck_assert_ptr_nonnull(file);
    for (unsigned i = 0; i < HEADS; i++) {
        struct buf head;

        make_head(&head, &state);
        for (int shift = 24; shift >= 0; shift -= 8)
            fputc((int)(head.len >> shift & 0xff), file);
        fwrite(head.data, 1, head.len, file);
        buf_free(&head);
    }
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(both_read_the_same)
{
    char path[] = "/tmp/sunproxy-heads-XXXXXX";
    struct tally tally = {0};
    uint64_t state = 1;
    char *line = NULL;
    size_t size = 0;
    FILE *answers;
    int fd = mkstemp(path);

    ck_assert_int_ge(fd, 0);
    write_heads(fd);
    answers = start_peer(path);
    for (unsigned i = 0; i < HEADS; i++) {
        struct buf head;

        ck_assert_msg(getline(&line, &size, answers) > 0, "h11_peer.py ended at head %u", i);
        if (strcmp(line, "skipped\n") == 0) {
            unlink(path);
            unit_skip("h11 (python3-h11) is not there");
        }
        line[strcspn(line, "\n")] = '\0';
        make_head(&head, &state);
        compare(&head, line, &tally);
        buf_free(&head);
    }
    free(line);
    ck_assert_int_eq(pclose(answers), 0);
    unlink(path);
    printf("both accept %u, both refuse %u, stricter %u, laxer %u, partial %u\n", tally.both,
           tally.neither, tally.theirs, tally.ours, tally.partial);
    /* Otherwise the mutations are too wild, or too tame, to compare much. */
    ck_assert_uint_ge(tally.both, HEADS / 10);
    ck_assert_uint_ge(tally.neither, HEADS / 10);
    ck_assert_uint_ge(tally.theirs + tally.ours, HEADS / 100);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/request_head beside h11");
    TCase *tests = tcase_create("peer");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, both_read_the_same);
    suite_add_tcase(suite, tests);
    return suite;
}
