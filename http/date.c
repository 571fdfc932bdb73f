#include "http/date.h"

#include <stdio.h>
#include <strings.h>

#define SECONDS_A_DAY 86400
#define EARLIEST INT64_C(-62167219200) /* 0000-01-01 00:00:00 */
#define LATEST INT64_C(253402300799)   /* 9999-12-31 23:59:59 */

/* What a date says, before it is known to be one. */
struct civil {
    int64_t year;
    unsigned month; /* 1 to 12 */
    unsigned day;
    unsigned hour, minute, second;
};

static const char *const months[] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
};

static const char *const weekdays[] = {
    "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
};

/* ---- reading ahead: each takes what it reads off *text, or returns false and takes nothing
 * -------------- */

static bool
take(struct span *text, const char *word, size_t len)
{
    if (text->len < len || strncasecmp(text->ptr, word, len) != 0)
        return false;
    *text = span_of(text->ptr + len, text->len - len);
    return true;
}

static bool
take_text(struct span *text, const char *word)
{
    return take(text, word, strlen(word));
}

/* Exactly that many digits. */
static bool
take_digits(struct span *text, unsigned count, unsigned *value)
{
    unsigned n = 0;

    if (text->len < count)
        return false;
    for (unsigned i = 0; i < count; i++) {
        char c = text->ptr[i];

        if (c < '0' || c > '9')
            return false;
        n = n * 10 + (unsigned)(c - '0');
    }
    *value = n;
    *text = span_of(text->ptr + count, text->len - count);
    return true;
}

/* `letters` of the name of a weekday, 0: all of it. */
static bool
take_weekday(struct span *text, size_t letters)
{
    for (size_t i = 0; i < sizeof(weekdays) / sizeof(weekdays[0]); i++)
        if (take(text, weekdays[i], letters ? letters : strlen(weekdays[i])))
            return true;
    return false;
}

static bool
take_month(struct span *text, unsigned *month)
{
    for (unsigned i = 0; i < 12; i++)
        if (take_text(text, months[i])) {
            *month = i + 1;
            return true;
        }
    return false;
}

static bool
take_time(struct span *text, struct civil *c)
{
    return take_digits(text, 2, &c->hour) && take_text(text, ":") &&
           take_digits(text, 2, &c->minute) && take_text(text, ":") &&
           take_digits(text, 2, &c->second);
}

static bool
take_year(struct span *text, struct civil *c)
{
    unsigned year;

    if (!take_digits(text, 4, &year))
        return false;
    c->year = year;
    return true;
}

/* ---- the three formats ----------------------------------------------------------------------- */

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool
read_preferred(struct span text, struct civil *c)
{
    return take_weekday(&text, 3) && take_text(&text, ", ") && take_digits(&text, 2, &c->day) &&
           take_text(&text, " ") && take_month(&text, &c->month) && take_text(&text, " ") &&
           take_year(&text, c) && take_text(&text, " ") && take_time(&text, c) &&
           take_text(&text, " GMT") && text.len == 0;
}

/* Sunday, 06-Nov-94 08:49:37 GMT; the century is still missing. */
static bool
read_rfc850(struct span text, struct civil *c)
{
    unsigned year = 0;
    bool read = take_weekday(&text, 0) && take_text(&text, ", ") &&
                take_digits(&text, 2, &c->day) && take_text(&text, "-") &&
                take_month(&text, &c->month) && take_text(&text, "-") &&
                take_digits(&text, 2, &year) && take_text(&text, " ") && take_time(&text, c) &&
                take_text(&text, " GMT") && text.len == 0;

    c->year = year;
    return read;
}

/* Sun Nov  6 08:49:37 1994 */
static bool
read_asctime(struct span text, struct civil *c)
{
    return take_weekday(&text, 3) && take_text(&text, " ") && take_month(&text, &c->month) &&
           take_text(&text, " ") &&
           (take_text(&text, " ") ? take_digits(&text, 1, &c->day)
                                  : take_digits(&text, 2, &c->day)) &&
           take_text(&text, " ") && take_time(&text, c) && take_text(&text, " ") &&
           take_year(&text, c) && text.len == 0;
}

/* ---- the calendar ---------------------------------------------------------------------------- */

static bool
is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Months from 0. */
static unsigned
days_in_month(int64_t year, unsigned month)
{
    static const unsigned days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month] + (month == 1 && is_leap(year));
}

static bool
is_valid(const struct civil *c)
{
    return c->day >= 1 && c->day <= days_in_month(c->year, c->month - 1) && c->hour <= 23 &&
           c->minute <= 59 && c->second <= 60;
}

/* Days from 1970-01-01 to the first day of a year, which is not negative. */
static int64_t
days_to_year(int64_t year)
{
    int64_t before = year - 1;

    if (year == 0)
        return -719528;
    return 365 * (year - 1970) + (before / 4 - before / 100 + before / 400) -
           (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static int64_t
to_seconds(const struct civil *c)
{
    static const unsigned before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    int64_t days = days_to_year(c->year) + before[c->month - 1] + (c->day - 1) +
                   (c->month > 2 && is_leap(c->year));
    unsigned second = c->second == 60 ? 59 : c->second;

    return days * SECONDS_A_DAY + c->hour * 3600 + c->minute * 60 + second;
}

/* The latest century in which the date is at most 50 years ahead: RFC 9110 section 5.6.7. */
static void
find_century(struct civil *c, int64_t now_s)
{
    unsigned two_digits = (unsigned)c->year;

    for (c->year = 9900 + two_digits; c->year >= 100; c->year -= 100) {
        struct civil fifty_before = *c;

        fifty_before.year -= 50;
        if (to_seconds(&fifty_before) <= now_s)
            return;
    }
}

bool
http_date_parse(struct span text, int64_t now_s, int64_t *seconds)
{
    struct civil c = {0};

    if (read_rfc850(text, &c))
        find_century(&c, now_s);
    else if (!read_preferred(text, &c) && !read_asctime(text, &c))
        return false;
    if (!is_valid(&c))
        return false;
    *seconds = to_seconds(&c);
    return true;
}

/* The year of a day, from an estimate that is some years off at most. */
static int64_t
year_of(int64_t days)
{
    int64_t year = 1970 + days / 366;

    while (year > 0 && days_to_year(year) > days)
        year--;
    while (days_to_year(year + 1) <= days)
        year++;
    return year;
}

void
http_date_format(int64_t seconds, char text[HTTP_DATE_SIZE])
{
    int64_t days, year;
    unsigned day, month = 0, second;

    if (seconds < EARLIEST)
        seconds = EARLIEST;
    if (seconds > LATEST)
        seconds = LATEST;
    days = seconds / SECONDS_A_DAY - (seconds % SECONDS_A_DAY < 0);
    second = (unsigned)(seconds - days * SECONDS_A_DAY);
    year = year_of(days);
    day = (unsigned)(days - days_to_year(year));
    while (day >= days_in_month(year, month))
        day -= days_in_month(year, month++);
    /* 1970 began on a Thursday, which is index 3. */
    snprintf(text, HTTP_DATE_SIZE, "%.3s, %02u %s %04u %02u:%02u:%02u GMT",
             weekdays[((days + 3) % 7 + 7) % 7], (day + 1) % 100, months[month],
             (unsigned)year % 10000, second / 3600 % 100, second / 60 % 60, second % 60);
}
