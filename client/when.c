#include "client/when.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"

#define LATEST_SECOND 253402300799u /* 9999-12-31T23:59:59Z */

bool
when_parse(const char *text, int64_t *us)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M", "%Y-%m-%d"};
    uint64_t seconds;

    if (strlen(text) >= 5 && units_parse_uint(text, 0, LATEST_SECOND, &seconds)) {
        *us = (int64_t)seconds * 1000000;
        return true;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = {.tm_mday = 0}, check;
        const char *end = strptime(text, forms[i], &tm);
        time_t time;

        if (!end || (*end && strcmp(end, "Z") != 0))
            continue;
        check = tm;
        time = timegm(&check);
        /* timegm() makes March 2 of February 30. */
        if (check.tm_mday != tm.tm_mday || check.tm_mon != tm.tm_mon || time < 0)
            return false;
        *us = (int64_t)time * 1000000;
        return true;
    }
    return false;
}
