/* What HTTP's rules make of a response: whose it is, and what becomes of it. */
#include <errno.h>

#include "http/conditional.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "http/storing.h"
#include "http/update.h"
#include "http/variant.h"
#include "proxy/filling.h"
#include "proxy/proxy_rules.h"
#include "proxy/stored.h"
#include "rules/tag_rules.h"
#include "rules/rules.h"
#include "store/store.h"

#define PARTIAL_CONTENT 206u         /* RFC 9110 section 15.3.7 */
#define EDITED_MAX ((size_t)1 << 20) /* bytes of lines that rules have edited */
#define PROXY_CHALLENGE 407u         /* section 15.5.8 */

/* Does a line concern what its client has? */
enum line_kind {
    LINE_FOR_ALL,
    LINE_CONDITION, /* which selects between the whole response and one without content */
    LINE_PART,      /* or a part of it */
};

static enum line_kind
line_kind(struct span line)
{
    struct span name, value;

    if (!http_split_field(line, &name, &value))
        return LINE_FOR_ALL;
    if (http_name_is(name, "Range") || http_name_is(name, "If-Range"))
        return LINE_PART;
    return http_is_condition(name) ? LINE_CONDITION : LINE_FOR_ALL;
}

/* Appends the lines of a request that are of this kind; false if there are none. */
static bool
append_lines(struct span lines, enum line_kind kind, struct buf *out)
{
    struct span line;
    bool any = false;

    while (http_next_line(&lines, &line)) {
        if (line_kind(line) != kind)
            continue;
        buf_append(out, line.ptr, line.len);
        buf_append(out, "\r\n", 2);
        any = true;
    }
    return any;
}

static bool
has_line(struct span lines, enum line_kind kind)
{
    struct span line;

    while (http_next_line(&lines, &line))
        if (line_kind(line) == kind)
            return true;
    return false;
}

bool
origin_response_request(struct origin_fill *fill)
{
    const struct span fields = fill->request->fields;
    const struct object *previous = fill->base.previous;

    buf_init(&fill->lines, OBJECT_MAX_META);
    if (origin_fill_is_as_is(fill))
        buf_append(&fill->lines, fields.ptr, fields.len);
    else
        (void)append_lines(fields, LINE_FOR_ALL, &fill->lines);
    fill->plain = fill->lines.len;
    if (!origin_fill_is_as_is(fill)) {
        if (previous &&
            http_write_validation(object_fields(previous), proxy_wall_s(fill->proxy), &fill->lines))
            fill->conditions = CONDITIONS_OURS;
        else if (fill->purpose != ORIGIN_FILL_REFRESHES &&
                 append_lines(fields, LINE_CONDITION, &fill->lines))
            fill->conditions = CONDITIONS_CLIENTS;
    }
    return !buf_failed(&fill->lines);
}

/* ---- whose it is ----------------------------------------------------------------------------- */

void
origin_response_isolate(struct origin_fill *fill)
{
    /* What the request forbids says nothing about responses to others. */
    bool pass = !sharing_is_by_request(&fill->sharing);

    atomic_store(&fill->keeping, KEEPING_NOT);
    if (!origin_fill_bypasses(fill))
        cache_fill_restrict(&fill->base, FILL_PRIVATE,
                            pass ? proxy_now_us(fill->proxy) + ORIGIN_FILL_PASS_US : 0);
}

bool
origin_response_tags(const struct origin_fill *fill, struct span lines, struct buf *tags)
{
    const struct proxy_rules *rules = proxy_rules_of(fill->proxy, fill->request);

    if (!tags_read(lines, rules->tag_fields ? rules->tag_fields : tags_default_fields, tags))
        return false;
    return !rules->tag_rules ||
           (tag_rules_apply(rules->tag_rules, object_url(fill->base.object), tags) &&
            (!fill->request->target.len ||
             tag_rules_apply(rules->tag_rules, fill->request->target, tags)));
}

enum http_reason
origin_response_why_unstored(const struct origin_fill *fill, bool no_store)
{
    const struct sharing *sharing = &fill->sharing;

    if (origin_fill_bypasses(fill))
        return fill->passes;
    if (sharing->unshared)
        return sharing->unshared;
    if (sharing->refusal)
        return sharing->refusal;
    if (no_store)
        return HTTP_REASON_FRAMING;
    if (!cache_fill_may_store(&fill->base))
        return fill->passes ? fill->passes : HTTP_REASON_PURGED;
    return HTTP_REASON_NONE;
}

void
origin_response_explain(struct origin_fill *fill, enum http_reason reason)
{
    if (fill->reason || !reason)
        return;
    fill->reason = reason;
    cache_fill_explain(&fill->base, reason);
}

/* ---- the head -------------------------------------------------------------------------------- */

/* A response to the operator's rules. */
static struct rules_response
to_rules(const struct origin_fill *fill, unsigned status, struct span lines)
{
    return (struct rules_response){
        .method = fill->request->method,
        .url = object_url(fill->base.object),
        .status = status,
        .lines = lines,
    };
}

/* Its lines as these have them, in `out` if they change any; without memory there as they are. */
static struct span
edit(const struct origin_fill *fill, const struct rules_response *response, enum rules_edit purpose,
     struct buf *out)
{
    const struct rules *rules = proxy_rules_of(fill->proxy, fill->request)->table;

    if (!rules || !rules_edit_response(rules, response, purpose, response->lines, out) ||
        buf_failed(out))
        return response->lines;
    return buf_span(out);
}

/* A response, or a stored one that a 304 has updated: what *about says beside request and arrival.
 */
static void
evaluate(struct origin_fill *fill, const struct http_received *about)
{
    const struct rules_response response = to_rules(fill, about->status, about->lines);
    struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->request, &response);
    struct http_received received = *about;
    struct buf edited;

    buf_init(&edited, EDITED_MAX);
    received.lines = edit(fill, &response, RULES_EDIT_BUT_CONTROL, &edited);
    rules.counts_age = fill->peer != NULL;
    received.method = HTTP_GET;
    received.request_lines = origin_fill_selecting(fill);
    received.arrival =
        (struct http_arrival){.wall_s = proxy_wall_s(fill->proxy), .waited_us = fill->waited_us};
    sharing_evaluate(&fill->sharing, &received, &rules, proxy_now_us(fill->proxy));
    buf_free(&edited);
}

/* The origin fails, perhaps for a while: RFC 5861 section 4. */
static bool
is_error(unsigned status)
{
    return status == 500 || status == 502 || status == 503 || status == 504;
}

/* May the previous object be used instead of the response? */
static bool
may_fall_back(const struct origin_fill *fill, enum staleness why)
{
    const struct proxy *proxy = fill->proxy;
    const struct object *previous = fill->base.previous;

    /* A stored error is no better than the one that has come. */
    if (why == STALENESS_IF_ERROR && previous && is_error(previous->status))
        return false;
    return !origin_fill_is_as_is(fill) && previous &&
           staleness_permits(proxy, previous, fill->request,
                             http_credentials_of(origin_fill_selecting(fill)), why, 0,
                             proxy_now_us(proxy));
}

/* Had the request, as the origin got it, the condition or the range that this status answers? */
static bool
was_asked(const struct origin_fill *fill, unsigned status)
{
    if (status == HTTP_CONDITION_NOT_MODIFIED)
        return fill->conditions || has_line(origin_fill_selecting(fill), LINE_CONDITION);
    return status != PARTIAL_CONTENT || has_line(origin_fill_selecting(fill), LINE_PART);
}

/*
 * The response was not asked for: it is passed on to its client alone, and what is stored stays.
 * Requests that wait look up again, and pass for a short time, since they would wait for each
 * other's in turn.
 */
static void
isolate_unasked(struct origin_fill *fill, unsigned status)
{
    struct sharing *sharing = &fill->sharing;
    bool marks = !origin_fill_is_as_is(fill) && !fill->base.previous;

    sharing->unshared = status == PARTIAL_CONTENT ? HTTP_REASON_PARTIAL : HTTP_REASON_STATUS;
    sharing->joinable = false;
    sharing->refusal = sharing->unshared;
    atomic_store(&fill->keeping, KEEPING_NOT);
    if (!origin_fill_bypasses(fill))
        cache_fill_restrict(&fill->base, FILL_PRIVATE,
                            marks ? proxy_now_us(fill->proxy) + ORIGIN_FILL_BRIEF_US : 0);
}

void
origin_response_arrived(struct origin_fill *fill, const struct fetch_response *response)
{
    fill->waited_us = response->waited_us;
    /* What a 304 means is known when it has updated the previous object. */
    if (fill->conditions == CONDITIONS_OURS && response->status == 304)
        return;
    evaluate(fill, &(struct http_received){.status = response->status, .lines = response->lines});
    if (!was_asked(fill, response->status)) {
        isolate_unasked(fill, response->status);
        return;
    }
    if (response->has_user && !fill->sharing.any) {
        fill->sharing.unshared = HTTP_REASON_USER_INFO;
    }
    /* The previous object stays where it may be used instead: origin_response_head() decides. */
    if (fill->sharing.unshared &&
        !(is_error(response->status) && may_fall_back(fill, STALENESS_IF_ERROR)))
        origin_response_isolate(fill);
}

unsigned
origin_response_notes(const struct fetch_head *head, struct span fields,
                      const struct sharing *sharing)
{
    return http_known_fields(fields) | (head->is_1_0 ? HTTP_KNOWN_VERSION_1_0 : 0u) |
           sharing->notes;
}

/* Those of the object; a bypass is not stored, and needs none. */
static void
read_tags(struct origin_fill *fill, struct span lines, struct buf *tags)
{
    if (origin_fill_bypasses(fill) || origin_response_tags(fill, lines, tags))
        return;
    /* It would not be purged for others. */
    fill->sharing.unshared = HTTP_REASON_TAGS;
    origin_response_isolate(fill);
    buf_reset(tags);
}

/* Adds those of the previous object whose field a rule has removed, unless the 304 states others.
 */
static void
recall_tags(struct origin_fill *fill, struct span validated_by, struct buf *tags)
{
    static const char *const names[] = {"Cache-Tag", NULL};
    const struct proxy_rules *rules = proxy_rules_of(fill->proxy, fill->request);
    const struct span before = object_tags(fill->base.previous);
    struct buf line;

    if (!rules->table || !before.len || fill->sharing.unshared)
        return;
    buf_init(&line, EDITED_MAX);
    if (!tags_read(validated_by, rules->tag_fields ? rules->tag_fields : tags_default_fields,
                   &line) ||
        line.len == 0) {
        buf_reset(&line);
        buf_printf(&line, "%s: %.*s\r\n", names[0], (int)before.len, before.ptr);
        if (buf_failed(&line) || !tags_read(buf_span(&line), names, tags))
            fill->sharing.unshared = HTTP_REASON_TAGS;
    }
    buf_free(&line);
    if (fill->sharing.unshared)
        origin_response_isolate(fill);
}

/* The challenge of a 407, which is no field of a stored response. */
static void
write_proxy_challenges(struct span lines, struct buf *fields)
{
    struct span line, name, value;

    while (http_next_line(&lines, &line))
        if (http_split_field(line, &name, &value) && http_name_is(name, "Proxy-Authenticate")) {
            buf_append(fields, line.ptr, line.len);
            buf_append_str(fields, "\r\n");
        }
}

/* The fields of its object, of these lines; false without memory. */
static bool
write_fields(struct origin_fill *fill, const struct fetch_head *head, struct span lines,
             const struct http_storing_rules *rules, struct buf *fields)
{
    if (http_stored_fields(lines, rules, proxy_wall_s(fill->proxy), fields)) {
        if (head->status == PROXY_CHALLENGE)
            write_proxy_challenges(lines, fields);
        return !buf_failed(fields);
    }
    if (buf_failed(fields))
        return false;
    fill->sharing.refusal = HTTP_REASON_FIELDS;
    buf_reset(fields);
    return buf_append(fields, lines.ptr, lines.len);
}

/* Is the Set-Cookie left out for all clients that a rule overrides? */
static bool
drops_cookie(const struct origin_fill *fill)
{
    return fill->sharing.notes & HTTP_KNOWN_NO_SET_COOKIE && !fill->sharing.unshared &&
           !origin_fill_bypasses(fill);
}

/* What the object of a response with this head has; false without memory. */
static bool
write_parts(struct origin_fill *fill, const struct fetch_head *head, struct response_parts *parts)
{
    const struct rules_response response = to_rules(fill, head->status, head->headers);
    struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->request, &response);
    struct buf edited;
    struct span lines;
    bool written;

    read_tags(fill, head->headers, &parts->tags);
    rules.drops_set_cookie = drops_cookie(fill);
    buf_init(&edited, EDITED_MAX);
    lines = edit(fill, &response, RULES_EDIT_ALL, &edited);
    written = !buf_failed(&edited) && write_fields(fill, head, lines, &rules, &parts->fields);
    buf_free(&edited);
    return written;
}

/* By which fields of requests a response is selected: by Vary, and by the operator's rules. */
static enum http_vary_kind
read_vary(const struct origin_fill *fill, unsigned status, struct span lines,
          struct http_vary *vary)
{
    const struct rules_response response = to_rules(fill, status, lines);
    const struct http_storing_rules rules =
        proxy_storing_rules(fill->proxy, fill->request, &response);

    return http_vary_extend(vary, http_vary_read(vary, lines), rules.key_names, rules.key_count);
}

/* Adds what is known of the origin's codings for this URL, from before and by this response. */
static void
learn_codings(struct origin_fill *fill, const struct fetch_head *head, struct http_vary *vary)
{
    struct object *names = cache_fill_names(&fill->base);

    if (names)
        http_vary_recall(vary, object_fields(names));
    object_release(&names);
    http_vary_observe(vary, origin_fill_selecting(fill), head->status, head->headers);
}

/*
 * If the response varies, its object is that of a variant, which the lines of the request select.
 * Without memory, and where what selects it is too long, it goes to its client only.
 */
static void
select_variant(struct origin_fill *fill, const struct fetch_head *head)
{
    struct http_vary vary = {.count = 0};
    struct buf names, variant;
    bool selected;

    /* What is stored stays unless this may replace it. */
    if (fill->purpose == ORIGIN_FILL_SEPARATES && fill->sharing.refusal)
        return;
    if (!fill->sharing.any)
        (void)read_vary(fill, head->status, head->headers, &vary);
    /* Without Vary the response is that of all variants. */
    if (vary.count == 0 && object_variant(fill->base.object).len == 0)
        return;
    learn_codings(fill, head, &vary);
    buf_init(&names, HTTP_VARY_TEXT);
    buf_init(&variant, OBJECT_MAX_VARIANT);
    http_vary_write(&vary, &names);
    stored_vary(fill, head->status, buf_span(&names));
    selected =
        (vary.count == 0 || http_variant_key(&vary, origin_fill_selecting(fill), &variant)) &&
        !buf_failed(&names) && cache_fill_vary(&fill->base, buf_span(&names), buf_span(&variant));
    buf_free(&names);
    buf_free(&variant);
    if (!selected) {
        fill->sharing.unshared = HTTP_REASON_FIELDS;
        origin_response_isolate(fill);
    }
}

/*
 * Unless requests that wait may have the response, they look up again, and no later one joins. It
 * is stored nevertheless if it may be, to be validated later. `marks`: meanwhile requests pass,
 * since they would wait for each other in turn, and an object that the response replaces is
 * removed. But not of a peer's response that may be stored: the few requests until that is done
 * here (ORIGIN_FILL_HOT) ask the peer, and not the origin.
 */
static void
keep_apart(struct origin_fill *fill, bool marks)
{
    const struct sharing *sharing = &fill->sharing;
    int64_t marked_us = sharing->refusal ? ORIGIN_FILL_PASS_US : ORIGIN_FILL_BRIEF_US;

    marks = marks && (sharing->refusal || !fill->peer);
    if (sharing->unshared)
        origin_response_isolate(fill);
    else if (!sharing->joinable && !origin_fill_bypasses(fill))
        cache_fill_restrict(&fill->base, sharing->refusal ? FILL_PRIVATE : FILL_VALIDATE,
                            marks ? proxy_now_us(fill->proxy) + marked_us : 0);
}

/* Are responses with these lines selected by the same fields of requests? */
static bool
varies_alike(const struct origin_fill *fill, struct span before, struct span after)
{
    const unsigned status = fill->base.previous->status;
    struct http_vary vary[2];

    return fill->sharing.any ||
           (read_vary(fill, status, before, &vary[0]) == read_vary(fill, status, after, &vary[1]) &&
            http_vary_equal(&vary[0], &vary[1]));
}

/*
 * The origin has confirmed the previous object, whose updated fields are in *parts, and that has
 * been evaluated: RFC 9111 section 4.3.4. 0 or an errno.
 */
static int
refresh(struct origin_fill *fill, const struct fetch_head *head, struct response_parts *parts)
{
    const struct object *previous = fill->base.previous;
    const struct stored_offer offer = stored_begin_offer(fill);
    const unsigned unsaved = previous->notes & HTTP_KNOWN_UNSAVED;
    struct buf *fields = &parts->fields;
    enum cache_outcome outcome;
    bool storable;
    int error;

    /* One that is stored is there at once. */
    keep_apart(fill, fill->sharing.refusal != HTTP_REASON_NONE);
    read_tags(fill, buf_span(fields), &parts->tags);
    recall_tags(fill, head->headers, &parts->tags);
    origin_response_explain(fill, origin_response_why_unstored(fill, head->no_store));
    storable = !fill->sharing.refusal && !fill->sharing.unshared;
    error = cache_fill_refresh(
        &fill->base,
        &(struct object_head){.status = previous->status,
                              .notes = unsaved | origin_response_notes(head, buf_span(fields),
                                                                       &fill->sharing),
                              .fields = buf_span(fields),
                              .tags = buf_span(&parts->tags),
                              .fetched_us = fill->sharing.born_us,
                              .account = fill->proxy->config.account},
        storable, (uint64_t)fill->waited_us, fill->sharing.born_us,
        sharing_lifetime(&fill->sharing, fill->sharing.born_us), &outcome);
    if (error)
        stored_drop_offer(fill);
    else
        stored_filled(fill, storable, &offer);
    return error;
}

bool
origin_response_fall_back(struct origin_fill *fill, enum staleness why, unsigned number)
{
    if (!may_fall_back(fill, why))
        return false;
    origin_response_explain(fill, staleness_reason(why));
    cache_fill_fall_back(&fill->base, number);
    fill->stage = ORIGIN_FILL_ENDED;
    return true;
}

void
origin_response_back_off(struct origin_fill *fill)
{
    struct proxy *proxy = fill->proxy;

    if (!origin_fill_is_as_is(fill) && fill->base.previous)
        proxy_back_off(proxy, fill->base.key);
}

/* Without conditions the origin sends an object. */
static enum origin_response
repeat(struct origin_fill *fill)
{
    fill->conditions = CONDITIONS_NONE;
    return ORIGIN_RESPONSE_REPEAT;
}

/* The updated fields as the operator's rules have them. False without memory. */
static bool
edit_updated(const struct origin_fill *fill, struct buf *fields)
{
    const struct rules_response response =
        to_rules(fill, fill->base.previous->status, buf_span(fields));
    struct buf edited;
    struct span lines;
    bool failed;

    buf_init(&edited, fields->ceiling);
    lines = edit(fill, &response, RULES_EDIT_ALL, &edited);
    failed = buf_failed(&edited);
    if (!failed && lines.ptr != fields->data) {
        buf_reset(fields);
        buf_append(fields, lines.ptr, lines.len);
    }
    buf_free(&edited);
    return !failed && !buf_failed(fields);
}

/* The origin has confirmed the previous object, whose fields were `before` as it has sent them. */
static enum origin_response
update(struct origin_fill *fill, const struct fetch_head *head, struct span before,
       struct response_parts *parts, int *error)
{
    const struct object *previous = fill->base.previous;
    const struct rules_response response = to_rules(fill, previous->status, before);
    struct http_storing_rules rules = proxy_storing_rules(fill->proxy, fill->request, &response);
    struct buf *fields = &parts->fields;

    if (!http_not_modified_concerns(head->headers, before, proxy_wall_s(fill->proxy)))
        return repeat(fill);
    /* Where the updated fields are too many, or too long, a new response may have fewer. */
    if (!http_update_fields(before, head->headers, &rules, proxy_wall_s(fill->proxy), fields))
        return repeat(fill);
    /* Under other names the object is not that of its variant: a new response is. */
    if (!varies_alike(fill, before, buf_span(fields)))
        return repeat(fill);
    evaluate(fill, &(struct http_received){.status = previous->status,
                                           .lines = buf_span(fields),
                                           .validated_by = head->headers,
                                           .made_for = sharing_made_for(previous->notes)});
    /*
     * The stored body may be that of another user: origins give the same entity tag to all. So it
     * is neither given to this request nor stored again, if it is one client's as updated. Nor are
     * cookies that --store-cookies had stored, for whatever reason it is.
     */
    if (http_is_for_credentials(fill->sharing.refusal) ||
        (fill->sharing.unshared &&
         (sharing_made_for(fill->sharing.notes) || http_first_value(before, "Set-Cookie").ptr ||
          http_first_value(before, "Set-Cookie2").ptr)))
        return repeat(fill);
    rules.drops_set_cookie = drops_cookie(fill);
    if (rules.drops_set_cookie) {
        buf_reset(fields);
        (void)http_update_fields(before, head->headers, &rules, proxy_wall_s(fill->proxy), fields);
    }
    *error = edit_updated(fill, fields) ? refresh(fill, head, parts) : ENOMEM;
    if (*error)
        return ORIGIN_RESPONSE_ERROR;
    proxy_end_backoff(fill->proxy, fill->base.key);
    fill->stage = ORIGIN_FILL_ENDED;
    return ORIGIN_RESPONSE_TAKEN;
}

/* A 304 to our own conditions. */
static enum origin_response
confirmed(struct origin_fill *fill, const struct fetch_head *head, struct response_parts *parts,
          int *error)
{
    struct span before = object_fields(fill->base.previous);
    enum origin_response response;
    struct buf restored;

    buf_init(&restored, EDITED_MAX);
    if (fill->base.previous->notes & HTTP_KNOWN_ORIGIN_CONTROL &&
        rules_restore_response(before, &restored))
        before = buf_span(&restored);
    response = buf_failed(&restored) ? repeat(fill) : update(fill, head, before, parts, error);
    buf_free(&restored);
    return response;
}

/* Is it the result of a condition, instead of the response? */
static bool
answers_conditions(unsigned status)
{
    return status == 304 || status == 412;
}

enum origin_response
origin_response_head(struct origin_fill *fill, const struct fetch_head *head,
                     struct response_parts *parts, int *error)
{
    struct proxy *proxy = fill->proxy;
    bool asked = was_asked(fill, head->status);

    *error = 0;
    if (origin_fill_writes(fill))
        invalidation_after(&fill->write, fill->member, head->status, head->headers);
    if (head->status == 304 && fill->conditions == CONDITIONS_OURS)
        return confirmed(fill, head, parts, error);
    /*
     * To a client of a forward proxy that challenge would be the proxy's own (RFC 9110 section
     * 11.7.1). In front of a server it is passed on, as other gateways do.
     */
    if (head->status == PROXY_CHALLENGE && !request_is_owned(fill->request))
        *error = EPERM;
    if (is_error(head->status)) {
        origin_response_back_off(fill);
        if (origin_response_fall_back(fill, STALENESS_IF_ERROR, head->status))
            return ORIGIN_RESPONSE_TAKEN;
        if (fill->sharing.unshared)
            origin_response_isolate(fill);
    }
    if (!asked)
        origin_response_back_off(fill);
    else if (!origin_fill_bypasses(fill) && !origin_fill_is_as_is(fill) && !is_error(head->status))
        proxy_end_backoff(proxy, fill->base.key);
    if (asked && fill->conditions == CONDITIONS_CLIENTS && answers_conditions(head->status)) {
        /* It says nothing about what others are to get, or what is stored. */
        atomic_store(&fill->keeping, KEEPING_NOT);
        cache_fill_restrict(&fill->base, FILL_PRIVATE, 0);
    } else if (asked && !origin_fill_bypasses(fill) && !*error) {
        select_variant(fill, head);
        /* An object may outlast errors of the origin, and what a user's request was answered. */
        keep_apart(fill, fill->purpose != ORIGIN_FILL_SEPARATES &&
                             (!is_error(head->status) || !fill->base.previous));
    }
    if (!*error && !write_parts(fill, head, parts))
        *error = ENOMEM;
    return *error ? ORIGIN_RESPONSE_ERROR : ORIGIN_RESPONSE_HEAD;
}
