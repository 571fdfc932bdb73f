#include "http/response_head.h"

#define FIRST_STATUS 100u
#define MAX_DETAIL 512u
#define MAX_BODY 4096u

/* The IANA registry of status codes. */
static const char *const reasons[] = {
    [100 - FIRST_STATUS] = "Continue",
    [101 - FIRST_STATUS] = "Switching Protocols",
    [102 - FIRST_STATUS] = "Processing",
    [103 - FIRST_STATUS] = "Early Hints",
    [200 - FIRST_STATUS] = "OK",
    [201 - FIRST_STATUS] = "Created",
    [202 - FIRST_STATUS] = "Accepted",
    [203 - FIRST_STATUS] = "Non-Authoritative Information",
    [204 - FIRST_STATUS] = "No Content",
    [205 - FIRST_STATUS] = "Reset Content",
    [206 - FIRST_STATUS] = "Partial Content",
    [207 - FIRST_STATUS] = "Multi-Status",
    [208 - FIRST_STATUS] = "Already Reported",
    [226 - FIRST_STATUS] = "IM Used",
    [300 - FIRST_STATUS] = "Multiple Choices",
    [301 - FIRST_STATUS] = "Moved Permanently",
    [302 - FIRST_STATUS] = "Found",
    [303 - FIRST_STATUS] = "See Other",
    [304 - FIRST_STATUS] = "Not Modified",
    [305 - FIRST_STATUS] = "Use Proxy",
    [307 - FIRST_STATUS] = "Temporary Redirect",
    [308 - FIRST_STATUS] = "Permanent Redirect",
    [400 - FIRST_STATUS] = "Bad Request",
    [401 - FIRST_STATUS] = "Unauthorized",
    [402 - FIRST_STATUS] = "Payment Required",
    [403 - FIRST_STATUS] = "Forbidden",
    [404 - FIRST_STATUS] = "Not Found",
    [405 - FIRST_STATUS] = "Method Not Allowed",
    [406 - FIRST_STATUS] = "Not Acceptable",
    [407 - FIRST_STATUS] = "Proxy Authentication Required",
    [408 - FIRST_STATUS] = "Request Timeout",
    [409 - FIRST_STATUS] = "Conflict",
    [410 - FIRST_STATUS] = "Gone",
    [411 - FIRST_STATUS] = "Length Required",
    [412 - FIRST_STATUS] = "Precondition Failed",
    [413 - FIRST_STATUS] = "Content Too Large",
    [414 - FIRST_STATUS] = "URI Too Long",
    [415 - FIRST_STATUS] = "Unsupported Media Type",
    [416 - FIRST_STATUS] = "Range Not Satisfiable",
    [417 - FIRST_STATUS] = "Expectation Failed",
    [421 - FIRST_STATUS] = "Misdirected Request",
    [422 - FIRST_STATUS] = "Unprocessable Content",
    [423 - FIRST_STATUS] = "Locked",
    [424 - FIRST_STATUS] = "Failed Dependency",
    [425 - FIRST_STATUS] = "Too Early",
    [426 - FIRST_STATUS] = "Upgrade Required",
    [428 - FIRST_STATUS] = "Precondition Required",
    [429 - FIRST_STATUS] = "Too Many Requests",
    [431 - FIRST_STATUS] = "Request Header Fields Too Large",
    [451 - FIRST_STATUS] = "Unavailable For Legal Reasons",
    [500 - FIRST_STATUS] = "Internal Server Error",
    [501 - FIRST_STATUS] = "Not Implemented",
    [502 - FIRST_STATUS] = "Bad Gateway",
    [503 - FIRST_STATUS] = "Service Unavailable",
    [504 - FIRST_STATUS] = "Gateway Timeout",
    [505 - FIRST_STATUS] = "HTTP Version Not Supported",
    [506 - FIRST_STATUS] = "Variant Also Negotiates",
    [507 - FIRST_STATUS] = "Insufficient Storage",
    [508 - FIRST_STATUS] = "Loop Detected",
    [511 - FIRST_STATUS] = "Network Authentication Required",
};

const char *
http_reason(unsigned status)
{
    unsigned index = status - FIRST_STATUS;

    if (index >= sizeof(reasons) / sizeof(reasons[0]) || !reasons[index])
        return "";
    return reasons[index];
}

/* The digits of a number, which end where the 20 bytes do. */
static struct span
digits_of(uint64_t value, char *digits)
{
    size_t from = 20;

    do {
        digits[--from] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return span_of(digits + from, 20 - from);
}

void
http_write_status(struct http_writer *writer, unsigned status)
{
    char digits[20];

    if (status == 200) {
        http_write_text(writer, "HTTP/1.1 200 OK\r\n");
        return;
    }
    http_write_text(writer, "HTTP/1.1 ");
    http_write(writer, digits_of(status, digits));
    http_write_text(writer, " ");
    http_write_text(writer, http_reason(status));
    http_write_text(writer, "\r\n");
}

void
http_write_field(struct http_writer *writer, const char *name, struct span value)
{
    struct http_writer before = *writer;

    http_write_text(writer, name);
    http_write_text(writer, ": ");
    http_write(writer, value);
    http_write_text(writer, "\r\n");
    if (writer->full) /* no part of a line stays */
        writer->len = before.len;
}

void
http_write_number(struct http_writer *writer, const char *name, uint64_t value)
{
    char digits[20];

    http_write_field(writer, name, digits_of(value, digits));
}

void
http_write_integer(struct http_writer *writer, int64_t value)
{
    char digits[20];

    if (value < 0)
        http_write_text(writer, "-");
    http_write(writer, digits_of(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, digits));
}

/* ---- error pages --------------------------------------------------------------------- */

/* Text of unknown origin: control characters become "?", and what HTML would take for markup is
 * escaped. */
static void
write_detail(struct http_writer *writer, struct span detail, bool html)
{
    if (detail.len > MAX_DETAIL)
        detail.len = MAX_DETAIL;
    for (size_t i = 0; i < detail.len; i++) {
        unsigned char c = (unsigned char)detail.ptr[i];

        if (html && c == '&')
            http_write_text(writer, "&amp;");
        else if (html && c == '<')
            http_write_text(writer, "&lt;");
        else if (html && c == '>')
            http_write_text(writer, "&gt;");
        else if (html && c == '"')
            http_write_text(writer, "&quot;");
        else if (html && c == '\'')
            http_write_text(writer, "&#39;");
        else if (c < ' ' || c == 127)
            http_write_text(writer, "?");
        else
            http_write(writer, span_of(detail.ptr + i, 1));
    }
}

static void
write_title(struct http_writer *writer, unsigned status)
{
    char digits[20];

    http_write(writer, digits_of(status, digits));
    http_write_text(writer, " ");
    http_write_text(writer, http_reason(status));
}

static void
write_body(struct http_writer *writer, const struct http_error_page *page)
{
    if (page->html) {
        http_write_text(writer, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                                "<title>");
        write_title(writer, page->status);
        http_write_text(writer, "</title></head>\n<body><h1>");
        write_title(writer, page->status);
        http_write_text(writer, "</h1>\n<p>");
        write_detail(writer, page->detail, true);
        http_write_text(writer, "</p>\n</body></html>\n");
    } else {
        write_title(writer, page->status);
        http_write_text(writer, "\n\n");
        write_detail(writer, page->detail, false);
        http_write_text(writer, "\n");
    }
}

void
http_write_error_page(struct http_writer *writer, const struct http_error_page *page)
{
    char bytes[MAX_BODY];
    struct http_writer body = http_writer_of(bytes, sizeof(bytes));

    write_body(&body, page);
    http_write_status(writer, page->status);
    http_write(writer, page->lines);
    http_write_field(writer, "Content-Type",
                     page->html ? span_str("text/html; charset=utf-8")
                                : span_str("text/plain; charset=utf-8"));
    http_write_number(writer, "Content-Length", body.len);
    http_write_field(writer, "Cache-Control", span_str("no-store"));
    if (page->close)
        http_write_field(writer, "Connection", span_str("close"));
    http_write_end(writer);
    if (!page->no_body)
        http_write(writer, http_written(&body));
}
