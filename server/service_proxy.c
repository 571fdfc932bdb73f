/* The proxy of the service, as the options say, and what it reports to the log. */
#include "base/clock.h"
#include "http/field.h"
#include "proxy.h"
#include "server/logs/log.h"
#include "server/logs/origin_report.h"
#include "server/service.h"
#include "server/service_metrics.h"

/* ---- tags ------------------------------------------------------------------------------------ */

/* A response has no field of another name: its tags would be missed silently. */
static bool
check_fields(const struct option_list *list, struct buf *why)
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        if (http_is_token(span_str(list->items[i])))
            continue;
        buf_end_line(why);
        buf_printf(why, "%stag-field: \"%s\" is not the name of a field", option_place(list, i),
                   list->items[i]);
        ok = false;
    }
    return ok;
}

static bool
read_rules(struct tag_rules *rules, const struct option_list *list, const char *option,
           struct buf *why)
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        size_t before;

        buf_end_line(why);
        before = why->len;
        buf_printf(why, "%s%s: ", option_place(list, i), option);
        if (tag_rules_add(rules, list->items[i], why))
            buf_truncate(why, before);
        else
            ok = false;
    }
    return ok;
}

bool
service_read_tag_rules(struct service *service, struct buf *why)
{
    const struct options *options = service->options;

    bool ok = check_fields(&options->tag_field, why);

    ok = read_rules(&service->tag_rules, &options->tag_rule, "tag-rule", why) && ok;
    return read_rules(&service->write_rules, &options->write_rule, "write-rule", why) && ok;
}

/* ---- the log --------------------------------------------------------------------------------- */

/* Failures for the operator, and every fetch for the log at its most verbose level. */
static void
report_fetched(void *context, const struct proxy_fetched *fetched)
{
    struct origin_report *report = context;

    if (fetched->failure)
        origin_report_failed(report, fetched->member.len ? fetched->member : fetched->url,
                             fetched->failure, fetched->repeated ? NULL : fetched->sentence);
    log_debug("fetched %.*s in %lld us: %s%s%s%s%s", (int)fetched->url.len, fetched->url.ptr,
              (long long)fetched->total_us,
              fetched->failure ? failure_word(fetched->failure) : "ok",
              fetched->failure ? ", " : "", fetched->failure ? fetched->sentence : "",
              fetched->reason ? ", reason: " : "", http_reason_word(fetched->reason));
}

/* At most a line for each time that a member is left. */
static void
log_member(const struct origin_change *member)
{
    if (member->left_us)
        log_warning("%.*s fails and is left for %lld s: %s", (int)member->url.len, member->url.ptr,
                    (long long)(member->left_us / 1000000), member->reason);
    else
        log_info("%.*s responds and is used again", (int)member->url.len, member->url.ptr);
}

/* A lifetime that follows from Last-Modified alone is a guess: RFC 9111 section 4.2.2. */
#define HEURISTIC_MAX_US ((int64_t)86400 * 1000000)

static struct http_storing_rules
storing_rules(const struct options *options)
{
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.heuristic_percent = (unsigned)options->heuristic_lifetime;
    rules.heuristic_max_us = HEURISTIC_MAX_US;
    rules.redirect_max_us = options->redirect_lifetime;
    rules.negative_max_us = options->error_lifetime;
    rules.set_cookie = options->store_cookies;
    rules.client_errors = options->store_client_errors;
    return rules;
}

bool
service_make_proxy(struct service *service)
{
    const struct options *options = service->options;

    service->metrics = metrics_create(service->workers);
    if (!service->metrics || !service_metrics_register(service->metrics, service))
        return false;
    for (size_t i = 0; i < service->origins.count; i++)
        service->origins.rows[i].route.changed = log_member;
    service->storing = storing_rules(options);
    service->has_proxy = proxy_init(
        &service->proxy, &(struct proxy_config){
                             .cache = service->cache,
                             .account = &service->memory,
                             .metrics = service->metrics,
                             .origin = {.ops = &origin_fetcher, .context = service->fetcher},
                             .clock = proxy_clock_system,
                             .follows_http = options->freshness == FRESHNESS_ON,
                             .max_age_us = options->max_age,
                             .storing = &service->storing,
                             .tag_fields = (const char *const *)options->tag_field.items,
                             .tag_rules = &service->tag_rules,
                             .write_rules = &service->write_rules,
                             .invalidates_early = options->invalidate_early,
                             .max_body = PROXY_MAX_PAGE,
                             .max_page = options->max_page,
                             .range_fill = options->range_fill_size,
                             .max_waiters = (unsigned)options->max_waiters,
                             .workers = service->workers,
                             .shards_automatic = options->shards == 0,
                             .fetched = report_fetched,
                             .fetched_context = service->report,
                         });
    return service->has_proxy;
}
