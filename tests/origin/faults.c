/* The faults: one row each. A value is a number unless the row says otherwise. */
#include <stdlib.h>

#include "base/units.h"
#include "tests/origin/origin.h"

struct fault {
    const char *name;
    const char *value; /* what the help calls it; NULL: takes none */
    const char *help;
    bool (*apply)(struct plan *plan, const struct request *request, const char *value);
    bool optional; /* the value may be left out */
};

#define FAULT(name) \
    static bool fault_##name(struct plan *plan, const struct request *request, const char *value)

static bool
number(const char *value, uint64_t low, uint64_t high, uint64_t fallback, uint64_t *n)
{
    if (!*value) {
        *n = fallback;
        return true;
    }
    return units_parse_uint(value, low, high, n);
}

FAULT(status)
{
    uint64_t n;

    (void)request;
    if (!units_parse_uint(value, 100, 999, &n))
        return false;
    plan->status = (unsigned)n;
    return true;
}

static bool
redirect_to(struct plan *plan, const char *url)
{
    plan->status = 302;
    plan->size = 0;
    return buf_printf(&plan->headers, "Location: %s\r\n", url);
}

FAULT(redirect)
{
    (void)request;
    return redirect_to(plan, value);
}

FAULT(loop)
{
    (void)value;
    return redirect_to(plan, request->target);
}

FAULT(chain)
{
    char next[64];
    uint64_t n;

    (void)request;
    if (!units_parse_uint(value, 0, 1000000, &n))
        return false;
    if (n == 0)
        return true;
    snprintf(next, sizeof(next), "/fault/chain:%llu", (unsigned long long)n - 1);
    return redirect_to(plan, next);
}

static bool
cut(struct plan *plan, enum ending ending, const char *value)
{
    plan->cut = true;
    plan->ending = ending;
    return number(value, 0, UINT64_MAX / 2, 0, &plan->cut_after);
}

FAULT(hang)
{
    (void)request;
    (void)value;
    plan->cut_in_head = true;
    return cut(plan, END_HANG, "");
}

FAULT(hang_silent)
{
    (void)request;
    (void)value;
    plan->delay_us = INT64_MAX;
    return true;
}

FAULT(hang_body)
{
    (void)request;
    return cut(plan, END_HANG, value);
}

FAULT(delay)
{
    (void)request;
    return units_parse_duration(value, &plan->delay_us);
}

FAULT(drip)
{
    uint64_t n;

    (void)request;
    if (!number(value, 1, 3600000, 10, &n))
        return false;
    plan->drip_us = (int64_t)n * 1000;
    return true;
}

FAULT(drip_head)
{
    plan->drip_head = true;
    return fault_drip(plan, request, value);
}

FAULT(short)
{
    uint64_t n;

    (void)request;
    if (!number(value, 1, INT64_MAX / 2, 100, &n))
        return false;
    plan->more = (int64_t)n;
    plan->ending = END_CLOSE;
    return true;
}

FAULT(long)
{
    uint64_t n;

    (void)request;
    if (!number(value, 1, INT64_MAX / 2, 100, &n))
        return false;
    if (plan->size < n)
        plan->size = n;
    plan->more = -(int64_t)n;
    return true;
}

FAULT(length)
{
    (void)request;
    free(plan->length_text);
    plan->length_text = strdup(value);
    plan->ending = END_CLOSE;
    return plan->length_text != NULL;
}

FAULT(two_lengths)
{
    (void)request;
    (void)value;
    return buf_append_str(&plan->headers, "Content-Length: 7\r\n");
}

FAULT(no_length)
{
    (void)request;
    (void)value;
    plan->framing = FRAMED_BY_CLOSE;
    return true;
}

FAULT(chunked)
{
    (void)request;
    (void)value;
    plan->framing = FRAMED_BY_CHUNKS;
    return true;
}

FAULT(bad_chunk)
{
    (void)request;
    (void)value;
    plan->framing = FRAMED_BY_CHUNKS;
    plan->bad_chunk = true;
    plan->ending = END_CLOSE;
    return true;
}

FAULT(cut_chunk)
{
    (void)request;
    plan->framing = FRAMED_BY_CHUNKS;
    return cut(plan, END_CLOSE, *value ? value : "100");
}

FAULT(gzip)
{
    (void)request;
    (void)value;
    plan->coding = CODED_GZIP;
    plan->framing = FRAMED_BY_CHUNKS;
    return true;
}

FAULT(gzip_bomb)
{
    (void)request;
    plan->coding = CODED_GZIP_BOMB;
    plan->framing = FRAMED_BY_CHUNKS;
    return number(value, 1, UINT64_C(1) << 40, UINT64_C(1) << 30, &plan->size);
}

FAULT(gzip_garbage)
{
    (void)request;
    (void)value;
    plan->coding = CODED_GZIP_GARBAGE;
    plan->framing = FRAMED_BY_CHUNKS;
    return true;
}

FAULT(encoding)
{
    (void)request;
    return buf_printf(&plan->headers, "Content-Encoding: %s\r\n", *value ? value : "x-nobody");
}

FAULT(zero)
{
    (void)request;
    (void)value;
    plan->zero = true;
    return true;
}

FAULT(huge_headers)
{
    uint64_t n;

    (void)request;
    if (!number(value, 1, ORIGIN_MAX_HEADERS / 2, 1 << 20, &n))
        return false;
    for (uint64_t made = 0, line = 0; made < n; made += 128, line++)
        buf_printf(&plan->headers, "X-Filler-%08llx: %0107d\r\n", (unsigned long long)line, 0);
    return !buf_failed(&plan->headers);
}

FAULT(long_header)
{
    uint64_t n;

    (void)request;
    if (!number(value, 1, ORIGIN_MAX_HEADERS / 2, 1 << 20, &n))
        return false;
    return buf_printf(&plan->headers, "X-Filler: %0*d\r\n", (int)n, 0);
}

FAULT(interim)
{
    uint64_t n;

    (void)request;
    if (!number(value, 0, 100000, 1, &n))
        return false;
    plan->interim = (unsigned)n;
    return true;
}

FAULT(header_zero)
{
    (void)request;
    (void)value;
    return buf_append(&plan->headers, "X-Zero: a\0b\r\n", 13);
}

FAULT(header)
{
    (void)request;
    return buf_printf(&plan->headers, "%s\r\n", value);
}

FAULT(empty)
{
    (void)request;
    (void)value;
    plan->size = 0;
    return true;
}

FAULT(size)
{
    (void)request;
    return units_parse_bytes(value, &plan->size) && plan->size < UINT64_MAX / 4;
}

FAULT(reset)
{
    (void)request;
    if (!*value)
        plan->cut_in_head = true;
    return cut(plan, END_RESET, value);
}

FAULT(cut)
{
    (void)request;
    if (!*value)
        plan->cut_in_head = true;
    return cut(plan, END_CLOSE, value);
}

FAULT(garbage)
{
    (void)request;
    (void)value;
    plan->garbage = true;
    plan->ending = END_CLOSE;
    return true;
}

FAULT(close)
{
    (void)request;
    (void)value;
    plan->garbage = true; /* of which nothing */
    plan->size = 0;
    plan->ending = END_CLOSE;
    return true;
}

FAULT(drop_idle)
{
    (void)request;
    (void)value;
    plan->drop_idle = true;
    plan->ending = END_CLOSE;
    return true;
}

FAULT(echo)
{
    (void)request;
    (void)value;
    plan->echo = true;
    return true;
}

/* How often a URL was asked for whose faults depend on that; 0: over the bound of such URLs. */
static unsigned
count_request(struct plan *plan, const struct request *request)
{
    static struct {
        uint64_t key;
        unsigned asked;
    } urls[1024];
    uint64_t key = (origin_hash(request->host) * 31 + origin_hash(request->target)) | 1;

    for (size_t i = 0; !plan->asked && i < sizeof(urls) / sizeof(urls[0]); i++)
        if (urls[i].key == key || !urls[i].key) {
            urls[i].key = key;
            plan->asked = ++urls[i].asked;
        }
    return plan->asked;
}

FAULT(first)
{
    unsigned asked = count_request(plan, request);

    return asked == 1 ? fault_apply(plan, request, value) : asked != 0;
}

FAULT(later)
{
    unsigned asked = count_request(plan, request);

    return asked > 1 ? fault_apply(plan, request, value) : asked != 0;
}

FAULT(cookie)
{
    static unsigned answers;

    (void)request;
    return buf_printf(&plan->headers, "Set-Cookie: %s=%u\r\n", *value ? value : "id", ++answers);
}

static const struct fault faults[] = {
    {"status", "N", "answer with this status", fault_status, false},
    {"redirect", "URL", "302 to this URL", fault_redirect, false},
    {"loop", NULL, "302 to itself, for ever", fault_loop, false},
    {"chain", "N", "302, N times in a row, then 200", fault_chain, false},
    {"delay", "DURATION", "wait before the answer", fault_delay, false},
    {"hang-silent", NULL, "read the request and never answer", fault_hang_silent, false},
    {"hang", NULL, "hang in the middle of the headers", fault_hang, false},
    {"hang-body", "N", "hang after N bytes of the body (0)", fault_hang_body, true},
    {"drip", "MS", "one byte of the body every MS milliseconds (10)", fault_drip, true},
    {"drip-head", "MS", "the same from the first byte of the headers", fault_drip_head, true},
    {"short", "N", "state N bytes more than are sent, and close (100)", fault_short, true},
    {"long", "N", "send N bytes more than are stated (100)", fault_long, true},
    {"length", "TEXT", "state this as Content-Length, and close", fault_length, false},
    {"two-lengths", NULL, "state a second, other Content-Length", fault_two_lengths, false},
    {"no-length", NULL, "no length; the end of the connection ends the body", fault_no_length,
     false},
    {"chunked", NULL, "chunked transfer coding", fault_chunked, false},
    {"bad-chunk", NULL, "chunked, with a size that is no number", fault_bad_chunk, false},
    {"cut-chunk", "N", "chunked, closed after N bytes (100)", fault_cut_chunk, true},
    {"gzip", NULL, "content coding gzip, asked for or not", fault_gzip, false},
    {"gzip-bomb", "N", "gzip that unfolds to N bytes (1 GiB)", fault_gzip_bomb, true},
    {"gzip-garbage", NULL, "says gzip, and is not", fault_gzip_garbage, false},
    {"encoding", "NAME", "say that the content coding is NAME (x-nobody)", fault_encoding, true},
    {"zero", NULL, "a zero byte in the middle of the body", fault_zero, false},
    {"huge-headers", "N", "N bytes of header lines (1 MiB)", fault_huge_headers, true},
    {"long-header", "N", "one header line of N bytes (1 MiB)", fault_long_header, true},
    {"header-zero", NULL, "a header line with a zero byte", fault_header_zero, false},
    {"header", "LINE", "add this header line", fault_header, false},
    {"cookie", "NAME", "set a cookie (id) of another value in each answer", fault_cookie, true},
    {"first", "FAULT", "the fault in the first answer for this URL only", fault_first, false},
    {"later", "FAULT", "the fault in all answers for this URL but the first", fault_later, false},
    {"interim", "N", "N informational answers (103) first (1)", fault_interim, true},
    {"empty", NULL, "a body of no bytes", fault_empty, false},
    {"size", "BYTES", "a body of this size", fault_size, false},
    {"reset", "N", "reset after N bytes of the body, or in the headers", fault_reset, true},
    {"cut", "N", "close after N bytes of the body, or in the headers", fault_cut, true},
    {"garbage", NULL, "answer with something that is not HTTP, and close", fault_garbage, false},
    {"close", NULL, "close without a byte", fault_close, false},
    {"drop-idle", NULL, "close this connection and all that wait for a request", fault_drop_idle,
     false},
    {"echo", NULL, "the body is the request's head as it came", fault_echo, false},
};

bool
fault_apply(struct plan *plan, const struct request *request, const char *text)
{
    size_t len = strcspn(text, ":=?");
    const char *value = text[len] ? text + len + 1 : "";

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        const struct fault *fault = &faults[i];

        if (strlen(fault->name) != len || memcmp(fault->name, text, len) != 0)
            continue;
        if (fault->value && !fault->optional && !*value)
            return false;
        return fault->apply(plan, request, value);
    }
    return false;
}

void
fault_print_help(FILE *out)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        char left[64];

        snprintf(left, sizeof(left), "%s%s%s%s%s", faults[i].name, faults[i].optional ? "[" : "",
                 faults[i].value ? ":" : "", faults[i].value ? faults[i].value : "",
                 faults[i].optional ? "]" : "");
        fprintf(out, "  %-22s %s\n", left, faults[i].help);
    }
}
