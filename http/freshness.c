#include "http/freshness.h"

#include "http/cache_control.h"
#include "http/date.h"
#include "http/field.h"

#define US_A_SECOND ((int64_t)1000000)

/* What of a head matters here. */
struct head {
    struct http_cache_control control;
    struct span date, expires, age; /* of the first line each; no pointer: there is none */
    bool dates_differ;
    bool expires_twice;
    bool set_cookie;
    bool vary_any;
    bool malformed;
};

/* A member that is no field name is taken for the one that excludes everything. */
static bool
varies_by_anything(struct span value)
{
    struct span member;

    while (http_next_member(&value, &member))
        if (http_name_is(member, "*") || !http_is_token(member))
            return true;
    return false;
}

static void
read_field(struct head *head, struct span name, struct span value)
{
    if (http_name_is(name, "Cache-Control")) {
        http_cache_control_read(&head->control, value);
    } else if (http_name_is(name, "Set-Cookie") || http_name_is(name, "Set-Cookie2")) {
        head->set_cookie = true;
    } else if (http_name_is(name, "Vary")) {
        head->vary_any = head->vary_any || varies_by_anything(value);
    } else if (http_name_is(name, "Expires")) {
        head->expires_twice = head->expires.ptr != NULL;
        head->expires = value;
    } else if (http_name_is(name, "Date")) {
        head->dates_differ =
            head->dates_differ || (head->date.ptr && !span_equal(head->date, value));
        head->date = value;
    } else if (http_name_is(name, "Age") && !head->age.ptr) {
        head->age = value;
    }
}

static void
read_head(struct head *head, struct span lines)
{
    struct span line, name, value;

    *head = (struct head){0};
    http_cache_control_init(&head->control);
    while (http_next_line(&lines, &line)) {
        const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

        /* Without a colon, or folded (RFC 9112 section 5.2): what it belongs to is not known. */
        if (!colon || http_is_blank(line.ptr[0])) {
            head->malformed = true;
            continue;
        }
        /* Blanks before the colon are taken off (RFC 9112 section 5.1), and the field counts. */
        name = http_trim(span_of(line.ptr, (size_t)(colon - line.ptr)));
        value = http_trim(span_of(colon + 1, line.len - (size_t)(colon - line.ptr) - 1));
        if (http_is_token(name))
            read_field(head, name, value);
        else
            head->malformed = true;
    }
}

/*
 * How old the answer was on arrival: RFC 9111 section 4.2.3. A date that is none is taken for that
 * of the arrival (RFC 9110 section 6.6.1).
 */
static int64_t
initial_age_us(const struct head *head, const struct http_arrival *arrival, int64_t date_s)
{
    struct span ages = head->age, first;
    int64_t apparent_s = arrival->wall_s > date_s ? arrival->wall_s - date_s : 0;
    int64_t age_s = 0, age_us;

    /* The first member counts, and one that is no number does not (RFC 9111 section 5.1). */
    if (http_next_member(&ages, &first))
        (void)http_seconds_parse(first, &age_s);
    if (apparent_s > HTTP_SECONDS_MAX)
        apparent_s = HTTP_SECONDS_MAX;
    age_us = age_s * US_A_SECOND + arrival->waited_us;
    return age_us > apparent_s * US_A_SECOND ? age_us : apparent_s * US_A_SECOND;
}

/* The freshness lifetime of a shared cache: RFC 9111 section 4.2.1. False if none is stated. */
static bool
find_lifetime(const struct head *head, const struct http_arrival *arrival, int64_t date_s,
              int64_t *lifetime_s)
{
    int64_t expires_s;

    if (head->control.s_maxage != HTTP_SECONDS_ABSENT) {
        *lifetime_s = head->control.s_maxage;
    } else if (head->control.max_age != HTTP_SECONDS_ABSENT) {
        *lifetime_s = head->control.max_age;
    } else if (head->expires.ptr) {
        /* What is no date, "0" above all, has passed: RFC 9111 section 5.3. */
        if (head->expires_twice || !http_date_parse(head->expires, arrival->wall_s, &expires_s))
            *lifetime_s = 0;
        else
            *lifetime_s = expires_s - date_s;
        if (*lifetime_s > HTTP_SECONDS_MAX)
            *lifetime_s = HTTP_SECONDS_MAX;
    } else {
        return false;
    }
    return true;
}

enum http_sharing
http_response_sharing(struct span lines, const struct http_arrival *arrival, int64_t *fresh_us)
{
    struct head head;
    int64_t date_s, lifetime_s;

    *fresh_us = 0;
    read_head(&head, lines);
    if (head.malformed || head.control.malformed || head.dates_differ)
        return HTTP_MALFORMED;
    if (head.control.no_store)
        return HTTP_NO_STORE;
    if (head.control.is_private)
        return HTTP_PRIVATE;
    if (head.set_cookie)
        return HTTP_SET_COOKIE;
    if (head.vary_any)
        return HTTP_VARY_ANY;
    if (head.control.no_cache)
        return HTTP_NO_CACHE;
    if (!head.date.ptr || !http_date_parse(head.date, arrival->wall_s, &date_s))
        date_s = arrival->wall_s;
    if (!find_lifetime(&head, arrival, date_s, &lifetime_s)) {
        *fresh_us = HTTP_FRESH_UNSTATED;
        return HTTP_SHARED;
    }
    *fresh_us = lifetime_s * US_A_SECOND - initial_age_us(&head, arrival, date_s);
    if (lifetime_s > 0 && *fresh_us > 0)
        return HTTP_SHARED;
    *fresh_us = 0;
    return HTTP_STALE;
}

const char *
http_sharing_text(enum http_sharing sharing)
{
    static const char *const texts[] = {
        [HTTP_SHARED] = "shared",
        [HTTP_MALFORMED] = "malformed head",
        [HTTP_NO_STORE] = "no-store",
        [HTTP_PRIVATE] = "private",
        [HTTP_SET_COOKIE] = "sets a cookie",
        [HTTP_VARY_ANY] = "varies by anything",
        [HTTP_NO_CACHE] = "no-cache",
        [HTTP_STALE] = "stale",
    };

    return texts[sharing];
}
