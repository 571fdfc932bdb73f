#include "server/rpc/front_rules.h"

#include <stdio.h>

#include "fetch/fetch.h"
#include "proxy.h"
#include "rules/rules.h"

static const struct rules *
table_of(const struct front_exchange *front)
{
    return front_config(front)->table;
}

static struct rules_request
to_rules(struct front_exchange *front, uint32_t has)
{
    return (struct rules_request){
        .method = front->request.method,
        .url = front->before_rules,
        .lines = front->own_fields,
        .has = has,
        .now_us = front->request.arrived_us,
        .client = (const struct sockaddr *)&rpc_request_peer(front_request(front))->address,
    };
}

/* A URL that rules have rewritten, until the next one of this thread. */
static _Thread_local char ruled_url[PROXY_MAX_URL + RULES_LOCATION_MAX];

static enum failure
explain(const struct rules_answer *answer, const char **why)
{
    static _Thread_local char sentence[256];

    *why = sentence;
    switch (answer->verdict) {
    case RULES_GO_ON:
        return 0;
    case RULES_DENY:
        *why = "this server refuses such requests";
        return FAILURE_DENIED;
    case RULES_LIMIT:
        *why = "there are too many such requests; try again";
        return FAILURE_OVERLOADED;
    case RULES_REDIRECT:
        break;
    }
    snprintf(sentence, sizeof(sentence), "the resource is at another URL: %.*s",
             (int)(answer->location.len < 200 ? answer->location.len : 200), answer->location.ptr);
    return FAILURE_REDIRECT;
}

/* What rules match is spelt as HTTP has it. */
static void
spell_url(struct front_exchange *front)
{
    static _Thread_local char normal[FETCH_NORMAL_SIZE];

    front->before_rules = front->request.url;
    /* Otherwise it is already spelt so. */
    if (!front->exchange.proxy->config.follows_http)
        front->before_rules = fetch_normal_url(front->request.url, normal, sizeof(normal));
    if (!front->before_rules.ptr)
        front->before_rules = front->request.url;
}

bool
front_rules_demand_user(struct front_exchange *front)
{
    const struct config *config = front_config(front);
    struct rules_request request;

    if (!config_asks_users(config) || config->origins.count ||
        rpc_request_peer(front_request(front))->has_uid)
        return false;
    if (!config->table)
        return true;
    spell_url(front);
    request = to_rules(front, ~front->request.lacks);
    return rules_demand_user(config->table, &request);
}

enum failure
front_rules_apply(struct front_exchange *front, const char **why)
{
    const struct rules *rules = table_of(front);
    struct rules_request request;
    struct rules_answer answer;

    /* That of the URL before a redirect. */
    if (front->request.passes == HTTP_REASON_RULE)
        front->request.passes = HTTP_REASON_NONE;
    if (!rules)
        return 0;
    spell_url(front);
    request = to_rules(front, ~front->request.lacks);
    rules_apply(rules, &request, ruled_url, sizeof(ruled_url), &answer);
    if (answer.verdict != RULES_GO_ON)
        return explain(&answer, why);
    if (!span_equal(answer.url, request.url))
        front->request.url = answer.url;
    front->edits = answer.edits;
    front->request.lacks = ~answer.has;
    if (answer.passes && !front->request.passes)
        front->request.passes = HTTP_REASON_RULE;
    return 0;
}

struct span
front_rules_edit(struct front_exchange *front, char *fields, size_t len, size_t size)
{
    const struct rules_request request = to_rules(front, UINT32_MAX);
    struct buf lines;

    if (!front->edits)
        return span_of(fields, len);
    buf_init(&lines, size);
    buf_append(&lines, fields, len);
    rules_edit_fields(table_of(front), &request, &lines);
    /* Without memory none is sent, rather than one that a rule removes. */
    len = buf_failed(&lines) ? 0 : lines.len;
    span_put(fields, span_of(lines.data, len));
    buf_free(&lines);
    return span_of(fields, len);
}

void
front_rules_visit_keys(const struct service *service, struct span url,
                       void (*visit)(void *context, struct span key), void *context)
{
    static _Thread_local char copy[FETCH_NORMAL_SIZE];
    const struct rules *rules = service_config(service)->table;
    const struct span normal = proxy_normal_url(&service->proxy, url);

    if (!rules || normal.len > sizeof(copy))
        return;
    /* A purge normalises a URL, too. */
    span_put(copy, normal);
    rules_visit_keys(rules, span_of(copy, normal.len), ruled_url, sizeof(ruled_url), visit,
                     context);
}
