#include "cli/when.h"

#include <string.h>

#include "base/units.h"
#include "trace/formats/fields.h"

#define LATEST_SECOND 253402300799u /* 9999-12-31T23:59:59Z */

bool
when_parse(const char *text, int64_t *us)
{
    uint64_t since_1970;

    if (strlen(text) >= 5 && units_parse_uint(text, 0, LATEST_SECOND, &since_1970)) {
        *us = (int64_t)since_1970 * 1000000;
        return true;
    }
    return fields_iso_date(span_str(text), us) && *us >= 0;
}
