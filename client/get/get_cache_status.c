#include "client/get/get_cache_status.h"

#include "base/units.h"
#include "http/cache_control.h"
#include "http/field.h"

/* The parameters of a member that matter here. */
struct parameters {
    bool hit, stored, collapsed;
    struct span forwarded; /* fwd; empty: there is none */
    bool confirmed;        /* fwd-status=304 */
    bool erred;            /* fwd-status of 500 or more */
    bool expired;          /* ttl below 0 */
};

/* Takes the text up to the next ';' that is in no string off *rest, trimmed. */
static bool
next_parameter(struct span *rest, struct span *parameter)
{
    bool quoted = false;
    size_t len = 0;

    if (rest->len == 0)
        return false;
    for (; len < rest->len && (quoted || rest->ptr[len] != ';'); len++) {
        if (quoted && rest->ptr[len] == '\\' && len + 1 < rest->len)
            len++;
        else if (rest->ptr[len] == '"')
            quoted = !quoted;
    }
    *parameter = http_trim(span_of(rest->ptr, len));
    len += len < rest->len;
    *rest = span_of(rest->ptr + len, rest->len - len);
    return true;
}

static void
read_parameter(struct parameters *parameters, struct span parameter)
{
    const char *equals = memchr(parameter.ptr, '=', parameter.len);
    size_t len = equals ? (size_t)(equals - parameter.ptr) : parameter.len;
    struct span key = span_of(parameter.ptr, len);
    struct span value = equals ? span_of(equals + 1, parameter.len - len - 1) : span_of("", 0);
    bool true_flag = !equals || span_equal(value, span_str("?1"));

    if (span_equal(key, span_str("hit"))) {
        parameters->hit = true_flag;
    } else if (span_equal(key, span_str("stored"))) {
        parameters->stored = true_flag;
    } else if (span_equal(key, span_str("collapsed"))) {
        parameters->collapsed = true_flag;
    } else if (span_equal(key, span_str("fwd"))) {
        parameters->forwarded = value;
    } else if (span_equal(key, span_str("fwd-status"))) {
        parameters->confirmed = span_equal(value, span_str("304"));
        parameters->erred = span_starts_with(value, span_str("5"));
    } else if (span_equal(key, span_str("ttl"))) {
        parameters->expired = span_starts_with(value, span_str("-"));
    }
}

static int
source_of(const struct parameters *parameters, unsigned status)
{
    static const char *const bypasses[] = {"bypass", "method", "partial", NULL};

    if (parameters->hit)
        return parameters->expired ? PROXY_STALE : PROXY_HIT;
    if (parameters->forwarded.len == 0)
        return GET_SOURCE_UNKNOWN;
    if (parameters->confirmed)
        return PROXY_REVALIDATED;
    if (parameters->erred && status < 500)
        return PROXY_STALE;
    if (parameters->collapsed)
        return PROXY_COALESCED;
    return http_name_is_one_of(parameters->forwarded, bypasses) ? PROXY_BYPASS : PROXY_MISS;
}

static void
read_member(struct get_page *page, struct span member)
{
    struct parameters parameters = {.hit = false};
    struct span rest = member, parameter;

    next_parameter(&rest, &parameter); /* the name of the cache */
    while (next_parameter(&rest, &parameter))
        read_parameter(&parameters, parameter);
    page->source = source_of(&parameters, page->status);
    page->stored = parameters.stored;
    buf_reset(&page->cache_status);
    buf_append(&page->cache_status, member.ptr, member.len);
}

void
get_read_cache_status(struct get_page *page)
{
    struct span rest = buf_span(&page->head), line, value, member;
    int64_t seconds;

    while (http_next_line(&rest, &line)) {
        if (http_line_is(line, span_str("Cache-Status"), &value))
            while (http_next_member(&value, &member))
                read_member(page, member);
        else if (http_line_is(line, span_str("Age"), &value) && http_seconds_parse(value, &seconds))
            page->age = (unsigned)seconds;
    }
}
