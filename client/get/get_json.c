#include <errno.h>
#include <stdlib.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/base64.h"
#include "client/exit_status.h"
#include "client/get/get.h"

/* A body of 20 MiB of control characters, six bytes each, and the other members. */
#define MAX_JSON (160u << 20)

static void
write_headers(struct json *j, struct span lines)
{
    json_open_array(j, "headers");
    while (lines.len != 0) {
        const char *end = memchr(lines.ptr, '\n', lines.len);
        size_t taken = end ? (size_t)(end - lines.ptr) + 1 : lines.len, len = taken;
        const char *colon, *value;

        while (len != 0 && (lines.ptr[len - 1] == '\n' || lines.ptr[len - 1] == '\r' ||
                            lines.ptr[len - 1] == ' ' || lines.ptr[len - 1] == '\t'))
            len--;
        colon = memchr(lines.ptr, ':', len);
        if (colon) {
            json_open_object(j, NULL);
            json_string(j, "name", span_of(lines.ptr, (size_t)(colon - lines.ptr)));
            for (value = colon + 1; value < lines.ptr + len && (*value == ' ' || *value == '\t');)
                value++;
            json_string(j, "value", span_of(value, (size_t)(lines.ptr + len - value)));
            json_close_object(j);
        }
        lines = span_of(lines.ptr + taken, lines.len - taken);
    }
    json_close_array(j);
}

static void
write_body(struct json *j, struct span body)
{
    struct buf coded;

    if (json_is_utf8(body)) {
        json_string(j, "body", body);
        json_null(j, "body_base64");
        return;
    }
    buf_init(&coded, MAX_JSON);
    base64_encode(&coded, body);
    /* Without memory the whole object fails. */
    if (buf_failed(&coded))
        j->out->failed = true;
    json_null(j, "body");
    json_string(j, "body_base64", buf_span(&coded));
    buf_free(&coded);
}

/* What is not known is null. */
static void
write_measured(struct json *j, const struct get_page *page)
{
    if (page->measured) {
        json_uint(j, "total_us", page->total_us);
        json_uint(j, "fetch_us", page->fetch_us);
        json_uint(j, "evicted", page->evicted);
    } else {
        json_null(j, "total_us");
        json_null(j, "fetch_us");
        json_null(j, "evicted");
    }
}

static void
write_page(struct json *j, const struct get_answer *answer, struct span body)
{
    const struct get_page *page = &answer->page;

    if (page->status != 0) {
        json_string(j, "final_url",
                    page->measured || page->final_url.len ? buf_span(&page->final_url)
                                                          : span_str(answer->url));
        json_uint(j, "status", page->status);
        if (page->source == GET_SOURCE_UNKNOWN)
            json_null(j, "source");
        else
            json_cstring(j, "source", proxy_source_name((proxy_source)page->source));
        json_bool(j, "stored", page->stored);
        json_uint(j, "age", page->age);
        write_measured(j, page);
        write_headers(j, get_answer_lines(answer));
    }
    write_body(j, body);
}

bool
get_write_json(const struct get_answer *answer, struct span body, const struct get_options *options,
               FILE *to)
{
    struct buf out;
    struct json j;
    bool whole;

    buf_init(&out, MAX_JSON);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    if (answer->url)
        json_cstring(&j, "url", answer->url);
    else
        json_null(&j, "url");
    json_int(&j, "client_us", answer->us);
    json_int(&j, "exit_status", get_answer_exit(answer, options));
    if (answer->failure.status == EX_OK) {
        json_null(&j, "error");
        write_page(&j, answer, body);
    } else {
        json_cstring(&j, "error", answer->failure.sentence);
        json_cstring(&j, "error_code", answer->failure.code);
    }
    json_close_object(&j);
    buf_append_char(&out, '\n');
    whole = !buf_failed(&out);
    if (whole)
        fwrite(out.data, 1, out.len, to);
    else
        errno = ENOMEM;
    buf_free(&out);
    return whole && !ferror(to);
}
