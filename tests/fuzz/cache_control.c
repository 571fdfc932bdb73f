/*
 * Directives of Cache-Control in responses and requests, and of CDN-Cache-Control: what one line
 * forbids no other line permits, and numbers stay in their bounds. The input is field lines.
 */
#include "http/cache_control.h"
#include "base/buf.h"
#include "http/field.h"
#include "http/structured.h"
#include "tests/fuzz/fuzz.h"

static bool
in_bounds(int64_t seconds)
{
    return seconds >= HTTP_SECONDS_ABSENT && seconds <= HTTP_SECONDS_MAX;
}

static void
check_response(const struct http_cache_control *control)
{
    FUZZ_CHECK(in_bounds(control->max_age) && in_bounds(control->s_maxage));
    FUZZ_CHECK(in_bounds(control->stale_while_revalidate) && in_bounds(control->stale_if_error));
    FUZZ_CHECK(control->named_count <= HTTP_NAMED_FIELDS_MAX);
    for (size_t i = 0; i < control->named_count; i++) {
        FUZZ_CHECK(http_is_token(control->named[i]));
        FUZZ_CHECK(http_cache_control_names(control, control->named[i]));
    }
}

/* Never looser with further lines than without. */
static void
check_stricter(const struct http_cache_control *all, const struct http_cache_control *some)
{
    FUZZ_CHECK(all->no_store >= some->no_store && all->no_cache >= some->no_cache);
    FUZZ_CHECK(all->is_private >= some->is_private && all->malformed >= some->malformed);
    FUZZ_CHECK(all->must_revalidate >= some->must_revalidate);
    FUZZ_CHECK(some->max_age == HTTP_SECONDS_ABSENT || all->max_age <= some->max_age);
    FUZZ_CHECK(some->s_maxage == HTTP_SECONDS_ABSENT || all->s_maxage <= some->s_maxage);
}

static void
check_requests(struct span lines)
{
    struct http_request_control control;

    http_request_control_read(&control, lines);
    FUZZ_CHECK(in_bounds(control.max_age));
    FUZZ_CHECK(control.min_fresh >= 0 && control.min_fresh <= HTTP_SECONDS_MAX);
    FUZZ_CHECK(control.max_stale >= 0 &&
               (control.max_stale <= HTTP_SECONDS_MAX || control.max_stale == HTTP_SECONDS_ANY));
}

/* Each step takes something or ends, and what was taken is text of the value. */
static void
check_dictionary(struct span value)
{
    struct http_dictionary_member member;
    const char *end = value.ptr + value.len;
    size_t left = value.len;

    while (http_dictionary_next(&value, &member) == HTTP_DICTIONARY_MEMBER) {
        FUZZ_CHECK(value.len < left && value.ptr + value.len == end);
        FUZZ_CHECK(member.key.len > 0 && member.key.ptr + member.key.len <= end);
        left = value.len;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_cache_control all, so_far, before, cdn = {.max_age = 7};
    struct span lines = span_of(data, size), rest = lines, line, name, value;

    http_cache_control_read_lines(&all, lines);
    check_response(&all);
    http_cache_control_init(&so_far);
    while (http_next_line(&rest, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        check_dictionary(value);
        if (!http_name_is(name, "Cache-Control"))
            continue;
        before = so_far;
        http_cache_control_read(&so_far, value);
        check_stricter(&so_far, &before);
    }
    FUZZ_CHECK(all.max_age == so_far.max_age && all.named_count == so_far.named_count);
    if (http_cdn_cache_control_read(&cdn, lines))
        check_response(&cdn);
    else
        FUZZ_CHECK(cdn.max_age == 7);
    check_requests(lines);
    return 0;
}
