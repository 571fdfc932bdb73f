/*
 * A date of HTTP: what is read as one is the same moment when it is written in the preferred format
 * and read again.
 */
#include "http/date.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <time.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t now_s = 1800000000;
    int64_t seconds, again;
    char text[64];
    struct tm tm;
    time_t time;

    if (!http_date_parse(span_of(data, size), now_s, &seconds))
        return 0;
    time = (time_t)seconds;
    FUZZ_CHECK(gmtime_r(&time, &tm));
    FUZZ_CHECK(tm.tm_year + 1900 >= 0 && tm.tm_year + 1900 <= 9999);
    FUZZ_CHECK(strftime(text, sizeof(text), "%a, %d %b ", &tm) != 0);
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%04d %02d:%02d:%02d GMT",
             tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    FUZZ_CHECK(http_date_parse(span_str(text), now_s, &again));
    FUZZ_CHECK(again == seconds);
    return 0;
}
