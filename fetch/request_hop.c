/* A hop of a request: where it may connect to, its transfer, and the call-backs of that. */
#include <stdio.h>

#include "base/clock.h"
#include "fetch/request_parts.h"

/* ---- call-backs of the transfer ------------------------------------------------------ */

static void
on_hop(void *context, const struct fetch_hop *hop)
{
    struct request *r = context;

    if (r->sink.hop && !request_is_cancelled(r))
        r->sink.hop(r->context, hop);
}

static void
on_interim(void *context, unsigned status, struct span lines)
{
    struct request *r = context;

    if (r->sink.interim && !request_is_cancelled(r))
        r->sink.interim(r->context, status, lines);
}

/* A resume that came before this call-back began does not end the pause that it may begin. */
static enum fetch_flow
on_head(void *context, const struct fetch_head *head)
{
    struct request *r = context;

    if (request_is_cancelled(r))
        return FETCH_ABORT;
    atomic_store(&r->resume_receive, false);
    return r->sink.head(r->context, head);
}

static enum fetch_flow
on_body(void *context, const void *bytes, size_t len)
{
    struct request *r = context;

    if (request_is_cancelled(r))
        return FETCH_ABORT;
    atomic_store(&r->resume_receive, false);
    return r->sink.body(r->context, bytes, len);
}

static enum fetch_supply
on_supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct request *r = context;

    if (request_is_cancelled(r))
        return FETCH_SUPPLY_FAILED;
    atomic_store(&r->resume_send, false);
    return r->sink.supply(r->context, buffer, size, len);
}

static void
on_stage(void *context, enum transfer_stage stage)
{
    struct request *r = context;

    if (stage >= TRANSFER_ANSWERING)
        queue_stream(r->loop->queue, &r->item);
    else if (stage == TRANSFER_ASKED)
        queue_reopen(r->loop->queue, &r->item);
    request_enter_stage(r, REQUEST_TRANSFER);
}

static void
on_pause(void *context)
{
    struct request *r = context;

    r->paused = true;
    TAILQ_INSERT_TAIL(&r->loop->paused, r, paused_link);
}

static void
on_hold(void *context)
{
    struct request *r = context;

    /* A client that is slow to send takes no slot of the fetches that wait for their servers. */
    queue_stream(r->loop->queue, &r->item);
    if (r->held)
        return;
    r->held = true;
    r->held_since_us = clock_monotonic_us();
    memory_charge_anyway(r->loop->settings.config.memory, MEMORY_FETCHES, FETCH_BUFFER_BYTES);
    request_arm_timer(r);
}

/* The loop ends it soon: not from inside libcurl. */
static void
on_complete(void *context)
{
    struct request *r = context;

    r->complete = true;
    request_arm_timer(r);
}

/* ---- the way to its connection ------------------------------------------------------ */

/* What final_url says: the URL as it was asked for, unless a redirect led elsewhere. */
static struct span
current_url(const struct request *r)
{
    return r->redirects ? span_str(r->target.text) : r->asked.url;
}

static bool
charge(struct request *r)
{
    bool supplied = r->asked.body.kind == FETCH_BODY_SUPPLIED;
    size_t bytes = FETCH_BYTES + (supplied ? FETCH_BUFFER_BYTES : 0);

    if (!memory_charge(r->loop->settings.config.memory, MEMORY_FETCHES, bytes))
        return false;
    r->charged = bytes;
    return true;
}

static void
connect_to(struct request *r, struct resolved *addresses)
{
    struct fetch_loop *loop = r->loop;
    struct transfer_owner owner = {
        .context = r,
        .hop = on_hop,
        .interim = on_interim,
        .head = on_head,
        .body = on_body,
        .supply = on_supply,
        .stage = on_stage,
        .pause = on_pause,
        .begin_hold = on_hold,
        .complete = on_complete,
        .received = &loop->received,
        .poller = &loop->poller,
        .turn = &loop->turn,
        .connections = &loop->connections,
    };
    bool started;

    if (!r->charged && r->sink.begin)
        r->sink.begin(r->context);
    if (!r->charged && !charge(r)) {
        request_finish(r, FETCH_OVERLOADED, "there is no memory for another fetch now; try again");
        return;
    }
    started = transfer_start(&r->transfer, loop->multi, &loop->settings, &r->target, &r->route,
                             addresses, &r->asked, !r->left_origin, current_url(r), &owner);
    if (!started && memory_reclaim(loop->settings.config.memory, FETCH_BYTES))
        started = transfer_start(&r->transfer, loop->multi, &loop->settings, &r->target, &r->route,
                                 addresses, &r->asked, !r->left_origin, current_url(r), &owner);
    if (started)
        request_enter_stage(r, REQUEST_TRANSFER);
    else
        request_finish(r, FETCH_INTERNAL, "out of memory");
}

/* Keeps of a name's addresses those that may be connected to. NULL without memory. */
static struct resolved *
keep_permitted(const struct address_policy *policy, const struct resolved *from)
{
    struct resolved *kept = resolved_create(from->count);

    if (!kept)
        return NULL;
    kept->count = 0;
    for (size_t i = 0; i < from->count; i++)
        if (address_policy_permits(policy, &from->list[i].any))
            kept->list[kept->count++] = from->list[i];
    return kept;
}

/* The name stands for these addresses. The reference is dropped. */
static void
connect_to_permitted(struct request *r, struct resolved *addresses)
{
    struct resolved *kept;
    char sentence[SENTENCE_MAX];

    if (r->route.by_operator) {
        connect_to(r, addresses);
        resolved_release(&addresses);
        return;
    }
    kept = keep_permitted(r->loop->settings.config.addresses, addresses);
    if (!kept) {
        request_finish(r, FETCH_INTERNAL, "out of memory");
    } else if (kept->count == 0) {
        request_deny(r,
                     sentence_refuse(sentence, sizeof(sentence), r->loop->settings.config.addresses,
                                     r->route.host, &addresses->list[0]));
    } else {
        connect_to(r, kept);
    }
    resolved_release(&kept);
    resolved_release(&addresses);
}

void
request_take_addresses(struct request *r)
{
    struct resolved *addresses = r->query.resolved;

    r->query.resolved = NULL;
    if (r->query.error)
        request_finish_with(r, r->query.error == EAI_MEMORY ? FETCH_INTERNAL : FETCH_RESOLVE_FAILED,
                            "%s cannot be resolved: %s", r->route.host,
                            gai_strerror(r->query.error));
    else
        connect_to_permitted(r, addresses);
}

/* Has the operator chosen where this hop leads? */
static bool
is_configured(const struct request *r)
{
    return r->asked.flags & FETCH_CONFIGURED && !r->left_origin;
}

void
request_start_hop(struct request *r)
{
    struct fetch_loop *loop = r->loop;
    const struct settings *settings = &loop->settings;
    struct resolved *one;
    union address literal;

    r->route = settings_route(settings, &r->target);
    if (is_configured(r))
        r->route.by_operator = r->route.own_port = true;
    if (!r->route.own_port && !settings_permit_port(settings, r->target.port)) {
        char sentence[SENTENCE_MAX];

        snprintf(sentence, sizeof(sentence),
                 "refused: port %u of %s is for another protocol (allow it with --allow-port %u)",
                 r->target.port, r->target.host, r->target.port);
        request_deny(r, sentence);
        return;
    }
    /* Behind a proxy a name is the proxy's to resolve, but an address can be checked here. */
    if (r->route.proxied && r->target.literal && !is_configured(r) &&
        !address_policy_permits(settings->config.addresses, &r->target.address.any)) {
        char sentence[SENTENCE_MAX];

        request_deny(r, sentence_refuse(sentence, sizeof(sentence), settings->config.addresses,
                                        r->target.host, &r->target.address));
        return;
    }
    if (address_parse(r->route.host, r->route.port, &literal)) {
        one = resolved_create(1);
        if (!one) {
            request_finish(r, FETCH_INTERNAL, "out of memory");
            return;
        }
        one->list[0] = literal;
        connect_to_permitted(r, one);
        return;
    }
    request_enter_stage(r, REQUEST_RESOLVING);
    switch (resolver_lookup(loop->resolver, &r->query, &r->asked.client, r->route.host)) {
    case RESOLVER_ANSWERED:
        request_take_addresses(r);
        break;
    case RESOLVER_PENDING:
        break;
    case RESOLVER_NO_MEMORY:
        request_finish(r, FETCH_INTERNAL, "out of memory");
        break;
    }
}
