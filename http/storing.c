#include "http/storing.h"

#include "http/cache_control.h"
#include "http/conditional.h"
#include "http/date.h"
#include "http/field.h"

#define US_A_SECOND ((int64_t)1000000)

/* What of a head matters here. */
struct head {
    struct http_cache_control control;
    struct span date, expires, age; /* of the first line each; no pointer: there is none */
    struct span last_modified;
    bool has_etag;
    bool dates_differ;
    bool expires_twice;
    bool set_cookie;
    bool malformed;
};

void
http_storing_rules_init(struct http_storing_rules *rules)
{
    *rules = (struct http_storing_rules){
        .validates = true,
        .heuristic_max_us = HTTP_UNLIMITED,
        .redirect_max_us = HTTP_UNLIMITED,
        .negative_max_us = HTTP_UNLIMITED,
    };
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static void
read_field(struct head *head, struct span name, struct span value)
{
    if (http_name_is(name, "Cache-Control")) {
        http_cache_control_read(&head->control, value);
    } else if (http_name_is(name, "Set-Cookie") || http_name_is(name, "Set-Cookie2")) {
        head->set_cookie = true;
    } else if (http_name_is(name, "Expires")) {
        head->expires_twice = head->expires.ptr != NULL;
        head->expires = value;
    } else if (http_name_is(name, "Date")) {
        head->dates_differ =
            head->dates_differ || (head->date.ptr && !span_equal(head->date, value));
        head->date = value;
    } else if (http_name_is(name, "Age") && !head->age.ptr) {
        head->age = value;
    } else if (http_name_is(name, "Last-Modified")) {
        head->last_modified = value;
    } else if (http_name_is(name, "ETag")) {
        head->has_etag = true;
    }
}

/* Splits a line of a response. False if what it belongs to is not known. */
static bool
split_line(struct span line, struct span *name, struct span *value)
{
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

    /* Without a colon, or folded: RFC 9112 section 5.2. */
    if (!colon || http_is_blank(line.ptr[0]))
        return false;
    /* Blanks before the colon are taken off (RFC 9112 section 5.1), and the field counts. */
    *name = http_trim(span_of(line.ptr, (size_t)(colon - line.ptr)));
    *value = http_trim(span_of(colon + 1, line.len - (size_t)(colon - line.ptr) - 1));
    return http_is_token(*name);
}

static void
read_head(struct head *head, struct span lines)
{
    struct span line, name, value;

    *head = (struct head){0};
    http_cache_control_init(&head->control);
    while (http_next_line(&lines, &line)) {
        if (split_line(line, &name, &value))
            read_field(head, name, value);
        else
            head->malformed = true;
    }
    head->malformed = head->malformed || head->control.malformed || head->dates_differ;
}

/* The first Age of a message, as its head has it. */
static struct span
find_age(struct span lines)
{
    struct span line, name, value;

    while (http_next_line(&lines, &line))
        if (split_line(line, &name, &value) && http_name_is(name, "Age"))
            return value;
    return span_of(NULL, 0);
}

unsigned
http_credentials_of(struct span request_lines)
{
    struct span line, name, value;
    unsigned credentials = 0;

    while (http_next_line(&request_lines, &line)) {
        if (!split_line(line, &name, &value))
            continue;
        if (http_name_is(name, "Cookie"))
            credentials |= HTTP_FOR_COOKIE;
        else if (http_name_is(name, "Authorization"))
            credentials |= HTTP_FOR_AUTHORIZATION;
    }
    return credentials;
}

/* ---- age and lifetime -------------------------------------------------------------------------
 */

/*
 * How old the response was on arrival: RFC 9111 section 4.2.3. A date that is none is taken for
 * that of the arrival (RFC 9110 section 6.6.1).
 */
static int64_t
initial_age_us(struct span ages, const struct http_arrival *arrival, int64_t date_s)
{
    struct span first;
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

/* The explicit freshness lifetime of a shared cache: RFC 9111 section 4.2.1. */
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
        if (head->expires_twice || !http_date_parse(head->expires, arrival->wall_s, &expires_s) ||
            expires_s < date_s)
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

/* RFC 9111 section 4.2.2. */
static bool
find_heuristic(const struct head *head, const struct http_received *received,
               const struct http_storing_rules *rules, int64_t date_s, struct http_storing *storing)
{
    int64_t modified_s, since_s;

    if (rules->heuristic_percent == 0 || storing->made_for || head->set_cookie ||
        !head->last_modified.ptr ||
        !(http_status_is_heuristic(received->status) || head->control.is_public) ||
        !http_date_parse(head->last_modified, received->arrival.wall_s, &modified_s) ||
        modified_s >= date_s)
        return false;
    since_s = date_s - modified_s;
    if (since_s > HTTP_SECONDS_MAX)
        since_s = HTTP_SECONDS_MAX;
    storing->lifetime_us = since_s * (US_A_SECOND / 100) * rules->heuristic_percent;
    if (storing->lifetime_us > rules->heuristic_max_us)
        storing->lifetime_us = rules->heuristic_max_us;
    return true;
}

static int64_t
limit_of(unsigned status, const struct http_storing_rules *rules)
{
    if (status >= 400)
        return rules->negative_max_us;
    return status >= 300 ? rules->redirect_max_us : HTTP_UNLIMITED;
}

static int64_t
limited(int64_t us, int64_t limit_us)
{
    return us < limit_us ? us : limit_us;
}

/* RFC 5861's windows, and whether what stands in the response forbids them; or the operator's. */
static void
set_staleness(const struct head *head, const struct http_storing_rules *rules,
              struct http_storing *storing, int64_t limit_us)
{
    const struct http_cache_control *control = &head->control;

    /* What others may have by the response's terms alone keeps them. */
    if (rules->decided & HTTP_DECIDED_GRACE && !storing->made_for) {
        storing->may_be_stale = !storing->always_validate && rules->grace_us > 0;
        storing->stale_while_revalidate_us = storing->may_be_stale ? rules->grace_us : 0;
        storing->stale_if_error_us = storing->stale_while_revalidate_us;
        return;
    }

    storing->may_be_stale = !storing->always_validate && !control->must_revalidate &&
                            !control->proxy_revalidate && control->s_maxage == HTTP_SECONDS_ABSENT;
    if (!storing->may_be_stale)
        return;
    if (control->stale_while_revalidate > 0)
        storing->stale_while_revalidate_us =
            limited(control->stale_while_revalidate * US_A_SECOND, limit_us);
    if (control->stale_if_error > 0)
        storing->stale_if_error_us = limited(control->stale_if_error * US_A_SECOND, limit_us);
}

/* Is it kept although it states no lifetime? */
static bool
is_kept(const struct http_received *received, const struct http_storing_rules *rules,
        const struct http_storing *storing)
{
    unsigned status = received->status;

    return rules->keeps_unstated && !storing->always_validate &&
           (status == 200 || status == 301 || status == 308);
}

/*
 * The operator's lifetime begins when the response comes, however old that is. A response that was
 * made for credentials is others' by what it states alone: it is fresh no longer than that.
 */
static void
set_decided(const struct http_storing_rules *rules, struct http_storing *storing)
{
    const bool stated = storing->lifetime == HTTP_LIFETIME_EXPLICIT;
    const int64_t begin_us = rules->counts_age ? 0 : storing->age_us;
    int64_t decided_us;

    if (rules->decided & HTTP_DECIDED_LIFETIME)
        decided_us = rules->lifetime_us + begin_us;
    else if (rules->decided & HTTP_DECIDED_DEFAULT && storing->lifetime != HTTP_LIFETIME_EXPLICIT)
        decided_us = rules->default_us + begin_us;
    else
        return;
    if (stated && decided_us <= storing->lifetime_us)
        storing->lifetime_us = decided_us;
    if (stated && (decided_us <= storing->lifetime_us || storing->made_for))
        return;
    storing->lifetime = HTTP_LIFETIME_RULE;
    storing->lifetime_us = decided_us;
}

static void
set_times(const struct head *head, const struct http_received *received,
          const struct http_storing_rules *rules, struct http_storing *storing)
{
    const struct http_arrival *arrival = &received->arrival;
    int64_t limit_us = rules->any_status ? HTTP_UNLIMITED : limit_of(received->status, rules);
    int64_t date_s, lifetime_s;

    if (!head->date.ptr || !http_date_parse(head->date, arrival->wall_s, &date_s))
        date_s = arrival->wall_s;
    storing->age_us = initial_age_us(
        received->validated_by.ptr ? find_age(received->validated_by) : head->age, arrival, date_s);
    if (find_lifetime(head, arrival, date_s, &lifetime_s)) {
        storing->lifetime = HTTP_LIFETIME_EXPLICIT;
        storing->lifetime_us = lifetime_s * US_A_SECOND;
    } else if (is_kept(received, rules, storing)) {
        storing->lifetime_us = HTTP_UNLIMITED;
    } else if (find_heuristic(head, received, rules, date_s, storing)) {
        storing->lifetime = HTTP_LIFETIME_HEURISTIC;
    }
    storing->lifetime_us = limited(storing->lifetime_us, limit_us);
    set_decided(rules, storing);
    set_staleness(head, rules, storing, limit_us);
}

/* ---- what is refused --------------------------------------------------------------------------
 */

bool
http_status_is_heuristic(unsigned status)
{
    static const unsigned statuses[] = {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i] == status)
            return true;
    return false;
}

/*
 * Statuses whose caching requirements are met: must-understand (RFC 9111 section 5.2.2.3). They are
 * those of RFC 9110 except 206, which is not stored, and 304, which is not a response of its own.
 */
static bool
is_understood(unsigned status)
{
    static const unsigned statuses[] = {200, 201, 202, 203, 204, 205, 300, 301, 302, 303, 305,
                                        307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408,
                                        409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422,
                                        426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        if (statuses[i] == status)
            return true;
    return false;
}

/* States what became of the conditions, the range or the expectation of one request. */
static bool
is_of_one_request(unsigned status)
{
    return status == 304 || status == 412 || status == 416 || status == 417;
}

/*
 * Whatever lifetime the response states: RFC 6585 sections 3 to 6, and 407, whose
 * Proxy-Authenticate is not stored (RFC 9111 section 3.1).
 */
static bool
is_never_stored(unsigned status)
{
    return status == 407 || status == 428 || status == 429 || status == 431 || status == 511;
}

/* Has the request a condition or a range, which the origin may have evaluated? */
static bool
has_condition_or_range(struct span lines)
{
    struct span line, name, value;

    while (http_next_line(&lines, &line))
        if (split_line(line, &name, &value) &&
            (http_is_condition(name) || http_name_is(name, "Range")))
            return true;
    return false;
}

/* Caused by how a request was written, so that one client could have others receive it. */
static bool
is_client_error(unsigned status)
{
    return status == 400 || status == 413 || status == 414;
}

static bool
is_method_storable(const struct http_received *received, const struct http_storing *storing)
{
    if (received->method == HTTP_GET)
        return true;
    return received->own_location && storing->lifetime == HTTP_LIFETIME_EXPLICIT &&
           received->method == HTTP_POST;
}

/* By method and status: RFC 9111 section 3. */
static enum http_reason
refuse_status(const struct head *head, const struct http_received *received,
              const struct http_storing_rules *rules, const struct http_storing *storing)
{
    unsigned status = received->status;

    if (!is_method_storable(received, storing))
        return HTTP_REASON_METHOD;
    if (status == 206)
        return HTTP_REASON_PARTIAL;
    if (status < 200 || status > 599 || is_of_one_request(status) || is_never_stored(status) ||
        (status != 200 && has_condition_or_range(received->request_lines)) ||
        (is_client_error(status) && !rules->client_errors))
        return HTTP_REASON_STATUS;
    if (storing->lifetime == HTTP_LIFETIME_UNSTATED && !head->control.is_public &&
        !http_status_is_heuristic(status))
        return HTTP_REASON_UNSTATED;
    return HTTP_REASON_NONE;
}

static bool
names_cookie(const struct http_storing *storing)
{
    return http_name_is_among(span_str("Cookie"), storing->vary_names.names,
                              storing->vary_names.count);
}

/* Has it a lifetime that says that others may have it? */
static bool
lasts(const struct http_storing *storing)
{
    return storing->lifetime == HTTP_LIFETIME_EXPLICIT && storing->lifetime_us > 0;
}

/* RFC 9111 section 3.5. */
static bool
may_be_shared_despite_authorization(const struct head *head, const struct http_storing *storing)
{
    const struct http_cache_control *control = &head->control;

    return !storing->always_validate &&
           (control->is_public || (lasts(storing) && (control->must_revalidate ||
                                                      control->s_maxage != HTTP_SECONDS_ABSENT)));
}

static bool
may_be_shared_despite_cookie(const struct head *head, const struct http_storing *storing)
{
    return !storing->always_validate &&
           (lasts(storing) || head->control.is_public || names_cookie(storing));
}

/* By the request. */
static enum http_reason
refuse_request(const struct head *head, const struct http_received *received,
               const struct http_storing *storing)
{
    struct http_request_control control;

    http_request_control_read(&control, received->request_lines);
    if (control.no_store)
        return HTTP_REASON_REQUEST_NO_STORE;
    if ((storing->made_for & HTTP_FOR_AUTHORIZATION) &&
        !may_be_shared_despite_authorization(head, storing))
        return HTTP_REASON_AUTHORIZATION;
    return HTTP_REASON_NONE;
}

/* A response that no later request could be answered with, with or without a validation. */
static enum http_reason
refuse_useless(const struct http_storing_rules *rules, const struct http_storing *storing)
{
    if (storing->lifetime == HTTP_LIFETIME_UNSTATED) {
        if (!rules->validates || storing->has_validator || storing->lifetime_us)
            return HTTP_REASON_NONE;
        return HTTP_REASON_UNSTATED;
    }
    if (storing->lifetime_us > storing->age_us)
        return HTTP_REASON_NONE;
    if (rules->validates && (storing->has_validator || storing->stale_while_revalidate_us > 0 ||
                             storing->stale_if_error_us > 0))
        return HTTP_REASON_NONE;
    return HTTP_REASON_STALE;
}

static enum http_reason
refuse(const struct head *head, const struct http_received *received,
       const struct http_storing_rules *rules, const struct http_storing *storing)
{
    const struct http_cache_control *control = &head->control;
    enum http_reason refusal;

    if (head->malformed)
        return HTTP_REASON_MALFORMED;
    if (control->no_store && !(control->must_understand && is_understood(received->status)))
        return HTTP_REASON_NO_STORE;
    if (control->is_private || (control->names_private && !rules->drops_named_fields))
        return HTTP_REASON_PRIVATE;
    if (head->set_cookie && !(rules->set_cookie && lasts(storing) && !storing->always_validate))
        return HTTP_REASON_SET_COOKIE;
    if (storing->vary == HTTP_VARY_ANY)
        return HTTP_REASON_VARY_ANY;
    if (storing->always_validate && !rules->validates)
        return HTTP_REASON_NO_CACHE;
    refusal = refuse_request(head, received, storing);
    if (refusal == HTTP_REASON_NONE && !rules->any_status)
        refusal = refuse_status(head, received, rules, storing);
    if (refusal == HTTP_REASON_NONE)
        refusal = refuse_useless(rules, storing);
    /* At last: most requests have a cookie, and what is stored for none of them says more. */
    if (refusal == HTTP_REASON_NONE && (storing->made_for & HTTP_FOR_COOKIE) &&
        !may_be_shared_despite_cookie(head, storing))
        refusal = HTTP_REASON_COOKIE;
    return refusal;
}

/* What the operator has overridden is not there. */
static void
override(struct head *head, unsigned overrides)
{
    struct http_cache_control *control = &head->control;

    if (overrides & HTTP_OVERRIDE_NO_STORE)
        control->no_store = false;
    if (overrides & HTTP_OVERRIDE_PRIVATE)
        control->is_private = control->names_private = false;
    if (overrides & HTTP_OVERRIDE_NO_CACHE)
        control->no_cache = control->names_no_cache = false;
    if (overrides & HTTP_OVERRIDE_SET_COOKIE)
        head->set_cookie = false;
}

static unsigned
overridden_credentials(unsigned overrides)
{
    return (overrides & HTTP_OVERRIDE_COOKIE ? (unsigned)HTTP_FOR_COOKIE : 0) |
           (overrides & HTTP_OVERRIDE_AUTHORIZATION ? (unsigned)HTTP_FOR_AUTHORIZATION : 0);
}

/* What is overridden by the rule whose lifetime the response has. */
static unsigned
overrides_in_force(const struct head *head, const struct http_storing_rules *rules)
{
    const bool stated = head->control.s_maxage != HTTP_SECONDS_ABSENT ||
                        head->control.max_age != HTTP_SECONDS_ABSENT || head->expires.ptr;

    if (rules->decided & HTTP_DECIDED_LIFETIME)
        return rules->overrides;
    return rules->decided & HTTP_DECIDED_DEFAULT && !stated ? rules->default_overrides : 0;
}

/* To whom it would not be given if it were the response to a request of theirs. */
static unsigned
not_for(const struct head *head, unsigned overrides, const struct http_storing *storing)
{
    unsigned credentials = HTTP_FOR_COOKIE | HTTP_FOR_AUTHORIZATION;

    if (storing->lifetime != HTTP_LIFETIME_HEURISTIC && storing->lifetime != HTTP_LIFETIME_RULE)
        return 0;
    if (storing->lifetime == HTTP_LIFETIME_RULE) {
        credentials &= ~overridden_credentials(overrides);
        if (head->control.is_public)
            credentials = 0;
        else if (names_cookie(storing))
            credentials &= ~(unsigned)HTTP_FOR_COOKIE;
    }
    return credentials;
}

void
http_evaluate_response(const struct http_received *received, const struct http_storing_rules *rules,
                       struct http_storing *storing)
{
    struct head head;
    unsigned overrides;

    *storing = (struct http_storing){0};
    read_head(&head, received->lines);
    /* RFC 9213 section 2.2: in place of Cache-Control and Expires. */
    if (rules->cdn_cache_control && http_cdn_cache_control_read(&head.control, received->lines))
        head.expires = span_of(NULL, 0);
    overrides = overrides_in_force(&head, rules);
    storing->lets_in_cookie = head.set_cookie && overrides & HTTP_OVERRIDE_SET_COOKIE;
    override(&head, overrides);
    storing->vary = http_vary_extend(&storing->vary_names,
                                     http_vary_read(&storing->vary_names, received->lines),
                                     rules->key_names, rules->key_count);
    storing->has_validator = head.has_etag || head.last_modified.ptr != NULL;
    storing->always_validate =
        head.control.no_cache || (head.control.names_no_cache && !rules->drops_named_fields);
    storing->made_for = (received->made_for | http_credentials_of(received->request_lines)) &
                        ~overridden_credentials(overrides);
    set_times(&head, received, rules, storing);
    storing->refusal = refuse(&head, received, rules, storing);
    storing->not_for = not_for(&head, overrides, storing);
}
