/*
 * The head of a response, read for whether it may be stored and for how long: what must not be
 * stored is not stored whatever else stands in the head, under any rules.
 */
#include "http/storing.h"
#include "base/buf.h"
#include "tests/fuzz/fuzz.h"

#define LONGEST_US (((int64_t)1 << 32) * 1000000)

static void
evaluate(struct span lines, const struct http_storing_rules *rules, struct http_storing *storing)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_str("Accept: */*\r\n"),
        .status = 200,
        .lines = lines,
        .arrival = {.wall_s = 1000000000, .waited_us = 1500000},
    };

    http_evaluate_response(&received, rules, storing);
}

/* The same head with a line of ours, in front or behind. */
static enum http_reason
evaluate_with(struct span lines, const struct http_storing_rules *rules, const char *line,
              bool in_front)
{
    struct http_storing storing;
    struct buf head;

    buf_init(&head, lines.len + 128);
    if (in_front)
        buf_append_str(&head, line);
    buf_append(&head, lines.ptr, lines.len);
    if (!in_front)
        buf_append_str(&head, line);
    FUZZ_CHECK(!buf_failed(&head));
    evaluate(buf_span(&head), rules, &storing);
    buf_free(&head);
    return storing.refusal;
}

static void
check(struct span lines, const struct http_storing_rules *rules)
{
    /* The last one only where nothing is validated. */
    static const char *const never[] = {"Set-Cookie: a=b\r\n", "Vary: *\r\n",
                                        "Cache-Control: private\r\n",
                                        "Cache-Control: no-cache\r\n"};
    size_t count = sizeof(never) / sizeof(never[0]) - rules->validates;
    bool whole = lines.len == 0 || lines.ptr[lines.len - 1] == '\n';
    struct http_storing storing;

    evaluate(lines, rules, &storing);
    FUZZ_CHECK(!http_reason_word(storing.refusal)[0] == (storing.refusal == HTTP_REASON_NONE));
    FUZZ_CHECK(storing.lifetime_us >= 0 && storing.lifetime_us <= LONGEST_US);
    FUZZ_CHECK(storing.age_us >= 1500000 && storing.age_us <= LONGEST_US);
    FUZZ_CHECK(storing.lifetime != HTTP_LIFETIME_UNSTATED || storing.lifetime_us == 0);
    FUZZ_CHECK(storing.may_be_stale ||
               (storing.stale_while_revalidate_us == 0 && storing.stale_if_error_us == 0));
    if (storing.refusal == HTTP_REASON_NONE && !rules->validates)
        FUZZ_CHECK(storing.lifetime == HTTP_LIFETIME_UNSTATED ||
                   storing.lifetime_us > storing.age_us);
    for (size_t i = 0; i < count; i++) {
        /* CDN-Cache-Control, where it counts, replaces Cache-Control. */
        if (rules->cdn_cache_control && i >= 2)
            continue;
        FUZZ_CHECK(evaluate_with(lines, rules, never[i], true) != HTTP_REASON_NONE);
        FUZZ_CHECK(!whole || evaluate_with(lines, rules, never[i], false) != HTTP_REASON_NONE);
    }
    FUZZ_CHECK(evaluate_with(lines, rules, "X-Unknown: a, b\r\n", true) == storing.refusal);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_storing_rules rules = {.any_status = true};

    check(span_of(data, size), &rules);
    http_storing_rules_init(&rules);
    check(span_of(data, size), &rules);
    rules.cdn_cache_control = true;
    rules.heuristic_percent = 10;
    check(span_of(data, size), &rules);
    return 0;
}
