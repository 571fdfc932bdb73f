/*
 * Conditions of clients against stored responses, and those that a cache makes of them. The input
 * is the field lines of a request, a zero byte, and those of a stored response.
 */
#include "http/conditional.h"
#include "base/buf.h"
#include "http/field.h"
#include "http/update.h"
#include "tests/fuzz/fuzz.h"

#define NOW INT64_C(1800000000)

/* What validates a stored response matches it, and it concerns itself. */
static void
check_validation(struct span stored)
{
    struct buf fields;

    buf_init(&fields, stored.len + 128);
    if (http_write_validation(stored, NOW, &fields)) {
        FUZZ_CHECK(!buf_failed(&fields));
        FUZZ_CHECK(http_has_condition(buf_span(&fields)));
        FUZZ_CHECK(!http_has_origin_condition(buf_span(&fields)));
        FUZZ_CHECK(http_evaluate_conditions(buf_span(&fields), UINT32_MAX, stored, NOW) ==
                   HTTP_CONDITION_NOT_MODIFIED);
    } else {
        FUZZ_CHECK(fields.len == 0);
    }
    FUZZ_CHECK(http_not_modified_concerns(stored, stored, NOW));
    buf_free(&fields);
}

/* Every line of it is one of the stored response, and none describes the content. */
static void
check_not_modified(struct span stored)
{
    struct span rest, line, name, value;
    struct buf fields;

    buf_init(&fields, 2 * stored.len + 128);
    http_write_not_modified(stored, &fields);
    FUZZ_CHECK(!buf_failed(&fields));
    for (rest = buf_span(&fields); http_next_line(&rest, &line);) {
        FUZZ_CHECK(http_split_field(line, &name, &value));
        FUZZ_CHECK(!http_name_is(name, "Content-Length") && !http_name_is(name, "Content-Type"));
    }
    buf_free(&fields);
}

/* A response that a 304 with its own fields updates is evaluated as before. */
static void
check_update(struct span stored, struct span update)
{
    struct http_storing_rules rules;
    struct span rest, line, name, value;
    struct buf first, second;

    http_storing_rules_init(&rules);
    buf_init(&first, 2 * (stored.len + update.len) + 128);
    buf_init(&second, 4 * (stored.len + update.len) + 256);
    if (http_update_fields(stored, update, &rules, NOW, &first)) {
        for (rest = buf_span(&first); http_next_line(&rest, &line);) {
            FUZZ_CHECK(http_split_field(line, &name, &value));
            FUZZ_CHECK(!http_name_is(name, "Age") && !http_name_is(name, "Connection"));
            FUZZ_CHECK(!http_name_is(name, "Transfer-Encoding"));
        }
        /* What is stored is stored as it is. */
        FUZZ_CHECK(http_stored_fields(buf_span(&first), &rules, NOW, &second));
        FUZZ_CHECK(span_equal(buf_span(&first), buf_span(&second)));
    }
    FUZZ_CHECK(!buf_failed(&first) && !buf_failed(&second));
    buf_free(&first);
    buf_free(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    struct span request = span_of(data, zero ? (size_t)(zero - data) : size);
    struct span stored = zero ? span_of(zero + 1, size - request.len - 1) : span_of(data + size, 0);
    enum http_condition result = http_evaluate_conditions(request, UINT32_MAX, stored, NOW);

    FUZZ_CHECK(result == HTTP_CONDITION_PROCEED || result == HTTP_CONDITION_NOT_MODIFIED ||
               result == HTTP_CONDITION_FAILED);
    if (!http_has_condition(request))
        FUZZ_CHECK(result == HTTP_CONDITION_PROCEED && http_if_range(request, stored, NOW));
    if (!http_has_origin_condition(request))
        FUZZ_CHECK(result != HTTP_CONDITION_FAILED);
    check_validation(stored);
    check_not_modified(stored);
    check_update(stored, request);
    return 0;
}
