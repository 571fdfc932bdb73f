#include "proxy/range_rules.h"

#include "http/known_fields.h"
#include "http/range.h"

enum range_wanted
range_rules_wanted(struct span request_lines)
{
    struct http_ranges ranges;
    const struct http_range *first = &ranges.of[0];

    if (!http_ranges_read(&ranges, request_lines))
        return RANGE_WHOLE;
    if (ranges.count == 1 && first->first >= 0 && first->first < (int64_t)RANGE_NEAR &&
        first->last == INT64_MAX)
        return RANGE_TO_END;
    return RANGE_PART;
}

bool
range_rules_are_near(struct span request_lines, const struct object *object)
{
    const struct span fields = object_fields(object);
    struct http_ranges requested, ranges;
    uint64_t length;

    if (object->status != 200 || !http_ranges_read(&requested, request_lines) ||
        !http_accepts_ranges(fields) || !http_known_length(fields, &length) ||
        http_ranges_resolve(&requested, (int64_t)length, &ranges) != HTTP_RANGE_PARTIAL)
        return true;
    return ranges.count == 1 && (uint64_t)ranges.of[0].first <= object_length(object) + RANGE_NEAR;
}
