/* What a request is answered: from its URL, the program's options, and the faults that it asks for.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/units.h"
#include "tests/origin/origin.h"

/* In (0, 1). */
static double
unit_interval(uint64_t x)
{
    return ((double)(x >> 11) + 0.5) * 0x1p-53;
}

bool
latency_parse(const char *text, int64_t *median_us, double *sigma)
{
    static const char name[] = "lognormal:";
    char median[64];
    const char *colon;
    char *end;

    *sigma = 0;
    if (strncmp(text, name, sizeof(name) - 1) != 0)
        return units_parse_duration(text, median_us);
    text += sizeof(name) - 1;
    colon = strchr(text, ':');
    if (!colon || (size_t)(colon - text) >= sizeof(median))
        return false;
    memcpy(median, text, (size_t)(colon - text));
    median[colon - text] = '\0';
    *sigma = strtod(colon + 1, &end);
    return end != colon + 1 && !*end && *sigma >= 0 && *sigma <= 10 &&
           units_parse_duration(median, median_us);
}

static int64_t
draw_latency(const struct origin *origin, uint64_t hash)
{
    uint64_t a, b;
    double normal;

    if (origin->latency_sigma <= 0)
        return origin->latency_us;
    a = hash64_uint(hash ^ hash64_uint(origin->seed));
    b = hash64_uint(a);
    normal = sqrt(-2 * log(unit_interval(a))) * cos(2 * 3.14159265358979323846 * unit_interval(b));
    return (int64_t)((double)origin->latency_us * exp(origin->latency_sigma * normal));
}

/* Percent-decodes in place. A zero byte stays as %00. */
static void
decode(char *text)
{
    char *out = text;

    for (; *text; text++) {
        if (text[0] == '%' && isxdigit((unsigned char)text[1]) &&
            isxdigit((unsigned char)text[2]) && (text[1] != '0' || text[2] != '0')) {
            char digits[3] = {text[1], text[2], '\0'};

            *out++ = (char)strtoul(digits, NULL, 16);
            text += 2;
        } else {
            *out++ = *text;
        }
    }
    *out = '\0';
}

static void
apply(struct plan *plan, const struct request *request, const char *fault, size_t len)
{
    char *text = strndup(fault, len);

    if (!text)
        abort();
    decode(text);
    if (!fault_apply(plan, request, text))
        plan->status = 501;
    free(text);
}

/* /fault/NAME:VALUE, /fault/NAME?VALUE, and every fault=NAME:VALUE of a query. */
static void
apply_faults(struct plan *plan, const struct request *request)
{
    static const char prefix[] = "/fault/";
    const char *target = request->target;
    const char *query = strchr(target, '?');

    if (strncmp(target, prefix, sizeof(prefix) - 1) == 0) {
        const char *fault = target + sizeof(prefix) - 1;
        size_t len = strlen(fault);

        if (query && memchr(fault, ':', (size_t)(query - fault)))
            len = (size_t)(query - fault);
        apply(plan, request, fault, len);
    }
    while (query) {
        const char *next = strchr(++query, '&');
        size_t len = next ? (size_t)(next - query) : strlen(query);

        if (len > 6 && strncmp(query, "fault=", 6) == 0)
            apply(plan, request, query + 6, len - 6);
        query = next;
    }
}

/* The host without its port; an IPv6 address keeps its brackets. */
static size_t
host_length(const char *host)
{
    const char *bracket = strchr(host, ']');
    const char *colon = strchr(bracket ? bracket : host, ':');

    return colon ? (size_t)(colon - host) : strlen(host);
}

void
plan_make(struct plan *plan, const struct origin *origin, const struct request *request)
{
    struct buf with, without;
    uint64_t hash;

    memset(plan, 0, sizeof(*plan));
    buf_init(&with, 2 * ORIGIN_MAX_HEAD);
    buf_init(&without, 2 * ORIGIN_MAX_HEAD);
    buf_init(&plan->headers, ORIGIN_MAX_HEADERS);
    buf_printf(&with, "%s://%s%s", request->scheme, request->host, request->target);
    buf_printf(&without, "%s://%.*s%s", request->scheme, (int)host_length(request->host),
               request->host, request->target);
    /* Ports are chosen anew by every run: what follows from a URL must not depend on them. */
    hash = origin_hash(buf_str(&without));
    plan->status = 200;
    plan->seed = hash;
    if (!sizes_find(origin->sizes, buf_str(&with), buf_str(&without), &plan->size))
        plan->size =
            origin->size_min + hash64_uint(hash) % (origin->size_max - origin->size_min + 1);
    plan->delay_us = draw_latency(origin, hash);
    buf_free(&with);
    buf_free(&without);
    if (!request->keep_alive)
        plan->ending = END_CLOSE;
    apply_faults(plan, request);
    if (plan->echo)
        plan->size = request->head.len;
    if (plan->framing == FRAMED_BY_CLOSE && plan->ending == END_KEEP)
        plan->ending = END_CLOSE;
    if (plan->status < 200 || plan->status == 204 || plan->status == 304)
        plan->size = 0;
}

void
plan_free(struct plan *plan)
{
    buf_free(&plan->headers);
    free(plan->length_text);
    memset(plan, 0, sizeof(*plan));
}

static const char *
reason(unsigned status)
{
    static const struct {
        unsigned status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Scripted";
}

void
plan_write_head(const struct plan *plan, const struct request *request, const struct origin *origin,
                struct evbuffer *out)
{
    for (unsigned i = 0; i < plan->interim; i++)
        evbuffer_add_printf(out, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
    evbuffer_add_printf(out, "HTTP/1.1 %u %s\r\n", plan->status, reason(plan->status));
    evbuffer_add_printf(out, "Server: sunproxy-origin\r\n");
    if (plan->size && !plan->echo && !strstr(buf_str(&plan->headers), "Content-Type:"))
        evbuffer_add_printf(out, "Content-Type: text/plain\r\n");
    if (plan->length_text)
        evbuffer_add_printf(out, "Content-Length: %s\r\n", plan->length_text);
    else if (plan->framing == FRAMED_BY_CHUNKS)
        evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
    else if (plan->framing == FRAMED_BY_LENGTH && plan->status >= 200 && plan->status != 204)
        evbuffer_add_printf(out, "Content-Length: %lld\r\n",
                            (long long)plan->size + (long long)plan->more);
    if (plan->coding != CODED_NOT)
        evbuffer_add_printf(out, "Content-Encoding: gzip\r\n");
    if (plan->ending == END_CLOSE && !plan->cut && plan->more == 0)
        evbuffer_add_printf(out, "Connection: close\r\n");
    (void)request;
    evbuffer_add(out, buf_str(&origin->headers), origin->headers.len);
    evbuffer_add(out, buf_str(&plan->headers), plan->headers.len);
    evbuffer_add(out, "\r\n", 2);
}
