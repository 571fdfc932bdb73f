#include "client/when.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "base/units.h"

#define LATEST_SECOND 253402300799u /* 9999-12-31T23:59:59Z */

/* Two digits, at most `most`. */
static bool
take_two(const char **at, int most, int *value)
{
    const char *p = *at;

    if (!isdigit((unsigned char)p[0]) || !isdigit((unsigned char)p[1]))
        return false;
    *value = (p[0] - '0') * 10 + (p[1] - '0');
    *at += 2;
    return *value <= most;
}

/* ".5", or nothing; digits beyond microseconds count for nothing. */
static bool
take_fraction(const char **at, int64_t *us)
{
    *us = 0;
    if (**at != '.')
        return true;
    if (!isdigit((unsigned char)*++*at))
        return false;
    for (int64_t worth = 100000; isdigit((unsigned char)**at); worth /= 10)
        *us += (*(*at)++ - '0') * worth;
    return true;
}

/* "Z", "+02:00", "-0530", or nothing, which is UTC: how far the clock there is ahead. */
static bool
take_zone(const char **at, int64_t *seconds)
{
    bool behind = **at == '-';
    int hours, minutes;

    *seconds = 0;
    if (**at == 'Z' || **at == 'z')
        ++*at;
    else if (**at == '+' || behind) {
        ++*at;
        if (!take_two(at, 23, &hours))
            return false;
        if (**at == ':')
            ++*at;
        if (!take_two(at, 59, &minutes))
            return false;
        *seconds = (behind ? -1 : 1) * (hours * 3600 + minutes * 60);
    }
    return true;
}

/* What was told; mktime's kin would make March 2 of February 30. */
static bool
to_seconds(struct tm *tm, int64_t *seconds)
{
    struct tm check = *tm;

    *seconds = timegm(&check);
    return check.tm_mday == tm->tm_mday && check.tm_mon == tm->tm_mon;
}

bool
when_parse(const char *text, int64_t *us)
{
    static const struct {
        const char *form;
        bool has_seconds;
    } forms[] = {{"%Y-%m-%dT%H:%M:%S", true},
                 {"%Y-%m-%d %H:%M:%S", true},
                 {"%Y-%m-%dT%H:%M", false},
                 {"%Y-%m-%d %H:%M", false},
                 {"%Y-%m-%d", false}};
    uint64_t since_1970;

    if (strlen(text) >= 5 && units_parse_uint(text, 0, LATEST_SECOND, &since_1970)) {
        *us = (int64_t)since_1970 * 1000000;
        return true;
    }
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        struct tm tm = {.tm_mday = 0};
        const char *end = strptime(text, forms[i].form, &tm);
        int64_t seconds, fraction = 0, ahead;

        if (!end || (forms[i].has_seconds && !take_fraction(&end, &fraction)) ||
            !take_zone(&end, &ahead) || *end)
            continue;
        if (!to_seconds(&tm, &seconds) || seconds - ahead < 0)
            return false;
        *us = (seconds - ahead) * 1000000 + fraction;
        return true;
    }
    return false;
}
