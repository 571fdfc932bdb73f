/*
 * Heads of requests. The first byte is the size of the pieces in which the rest arrives: the
 * verdict is the one of the whole. What is accepted has one framing and one target; the URL under
 * which it is cached and the fields that go on are ones that the fetcher takes.
 */
#include "http/request_head.h"

#include "base/buf.h"
#include "fetch/fetch.h"
#include "http/field.h"
#include "http/hop_by_hop.h"
#include "http/request_rewrite.h"
#include "http/target.h"
#include "tests/fuzz/fuzz.h"

static const struct http_head_limits limits = {
    .max_bytes = 1024, .max_line = 512, .max_fields = 20};

struct verdict {
    enum http_head_step step;
    struct http_request request;
    struct http_refusal refusal;
};

static bool
is_inside(struct span s, struct span input)
{
    return s.len == 0 || (s.ptr >= input.ptr && s.ptr + s.len <= input.ptr + input.len);
}

static void
check_fields(const struct http_request *request, struct span input)
{
    struct span rest = request->fields, line, name, value;
    unsigned count = 0, hosts = 0, lengths = 0, codings = 0;

    FUZZ_CHECK(is_inside(request->fields, input));
    while (http_next_line(&rest, &line)) {
        FUZZ_CHECK(line.ptr[line.len] == '\r' && line.ptr[line.len + 1] == '\n');
        FUZZ_CHECK(http_split_field(line, &name, &value) && http_is_value(value));
        hosts += http_name_is(name, "Host");
        lengths += http_name_is(name, "Content-Length");
        codings += http_name_is(name, "Transfer-Encoding");
        count++;
    }
    FUZZ_CHECK(count == request->field_count && count <= limits.max_fields);
    FUZZ_CHECK(hosts <= 1 && lengths <= 1 && (lengths == 0 || codings == 0));
    FUZZ_CHECK(request->minor == 0 || hosts == 1);
    FUZZ_CHECK((request->content_length >= 0) == (lengths == 1));
    FUZZ_CHECK(request->chunked == (codings > 0));
}

static void
check_target(const struct http_request *request, struct span input)
{
    char url[2048], why[512] = "";
    bool has_user = true;
    size_t len;

    FUZZ_CHECK(is_inside(request->target, input) && is_inside(request->host, input));
    FUZZ_CHECK(request->host.len > 0 || request->minor == 0);
    if (request->form == HTTP_AUTHORITY_FORM)
        FUZZ_CHECK(request->method_id == HTTP_CONNECT && request->port > 0);
    if (request->form == HTTP_AUTHORITY_FORM || request->host.len == 0)
        return;
    FUZZ_CHECK(request->path.len > 0);
    len = http_write_url(url, sizeof(url), request->https, request->host, request->port,
                         request->path);
    FUZZ_CHECK(len > 0 && !span_has_zero(span_of(url, len)));
    if (fetch_check_url(span_of(url, len), &has_user, why, sizeof(why)) == FETCH_OK)
        FUZZ_CHECK(!has_user);
}

static void
check_forwarded(const struct http_request *request)
{
    struct http_forwarding forwarding = {
        .method = request->method_id,
        .has_body = http_request_has_body(request),
        .max_forwards = -1,
    };
    struct request fetch = {
        .method = request->method_id == HTTP_CONNECT ? HTTP_GET : request->method_id,
        .method_name = request->method_id == HTTP_CONNECT ? span_str("GET") : request->method,
        .url = span_str("http://example.com/"),
    };
    char why[512] = "";
    struct buf fields;

    if (request->method_id == HTTP_CONNECT || request->method_id == HTTP_TRACE ||
        request->method_id == HTTP_HEAD)
        forwarding.has_body = false;
    if (forwarding.has_body)
        fetch.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED};
    buf_init(&fields, 4096);
    if (http_forward_fields(&fields, request->fields, &forwarding)) {
        FUZZ_CHECK(fetch_check_request(&fetch, buf_span(&fields), why, sizeof(why)) == FETCH_OK);
    }
    FUZZ_CHECK(!buf_failed(&fields));
    buf_free(&fields);
}

/* The head that is written is accepted, with the same framing, and needs no rewriting again but for
 * what Connection lists. */
static void
check_rewritten(const struct http_request *request)
{
    static const struct http_head_limits wide = {
        .max_bytes = 4096, .max_line = 4096, .max_fields = 20};
    char head[4096];
    struct http_request again;
    struct http_refusal refusal;
    size_t searched = 0, len;

    FUZZ_CHECK(http_request_rewritten_size(request) <= sizeof(head));
    len = http_request_rewrite(request, head);
    FUZZ_CHECK(len <= http_request_rewritten_size(request));
    FUZZ_CHECK(http_request_head_read(&again, span_of(head, len), &searched, &wide, &refusal) ==
               HTTP_HEAD_COMPLETE);
    FUZZ_CHECK(again.head_len == len && again.raw_octets == 0);
    FUZZ_CHECK(again.method_id == request->method_id && again.form == request->form);
    FUZZ_CHECK(span_equal(again.host, request->host) && again.port == request->port);
    FUZZ_CHECK(again.content_length == request->content_length);
    FUZZ_CHECK(again.chunked == request->chunked && again.persistent == request->persistent);
}

static struct verdict
read_whole(struct span input)
{
    struct verdict v = {.step = HTTP_HEAD_PARTIAL};
    size_t searched = 0;

    v.step = http_request_head_read(&v.request, input, &searched, &limits, &v.refusal);
    if (v.step == HTTP_HEAD_REFUSED)
        FUZZ_CHECK(v.refusal.status >= 400 && v.refusal.status <= 505 && v.refusal.reason);
    if (v.step != HTTP_HEAD_COMPLETE)
        return v;
    FUZZ_CHECK(v.request.head_len <= input.len && v.request.head_len <= limits.max_bytes);
    check_fields(&v.request, input);
    check_target(&v.request, input);
    check_forwarded(&v.request);
    check_rewritten(&v.request);
    return v;
}

static void
check_pieces(struct span input, size_t size, const struct verdict *whole)
{
    struct verdict v = {.step = HTTP_HEAD_PARTIAL};
    size_t searched = 0, len = 0;

    while (v.step == HTTP_HEAD_PARTIAL && len < input.len) {
        len = len + size < input.len ? len + size : input.len;
        v.step = http_request_head_read(&v.request, span_of(input.ptr, len), &searched, &limits,
                                        &v.refusal);
    }
    /* A fault in a head that has not ended may show at its end. */
    FUZZ_CHECK(v.step == whole->step ||
               (v.step == HTTP_HEAD_PARTIAL && whole->step == HTTP_HEAD_REFUSED));
    if (v.step == HTTP_HEAD_COMPLETE) {
        FUZZ_CHECK(v.request.head_len == whole->request.head_len);
        FUZZ_CHECK(v.request.has == whole->request.has);
        FUZZ_CHECK(span_equal(v.request.fields, whole->request.fields));
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span input = span_of(data, size);
    size_t piece = fuzz_byte(&input) + 1;
    struct verdict whole = read_whole(input);

    check_pieces(input, piece, &whole);
    return 0;
}
