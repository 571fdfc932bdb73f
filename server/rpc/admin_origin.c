/* PROXY_ORIGIN: the members of the rows, and which of them get no requests. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proxy.h"
#include "server/logs/log.h"
#include "server/rpc/admin_caller.h"

/* An answer with what it refers to. */
struct listing {
    proxy_origin_result result;
    size_t count, most;
    proxy_member *members; /* owned, with their texts */
    bool failed;           /* for want of memory */
};

static void
free_listing(void *held)
{
    struct listing *listing = held;

    for (size_t i = 0; i < listing->count; i++) {
        free(listing->members[i].row);
        free(listing->members[i].url);
        free(listing->members[i].state);
        free(listing->members[i].reason);
    }
    free(listing->members);
    free(listing);
}

static char *
copy(struct listing *listing, struct span text)
{
    char *copied = strndup(text.ptr ? text.ptr : "", text.len);

    listing->failed = listing->failed || !copied;
    return copied;
}

/* The row's host and prefix, or which row of peers it is. */
static char *
copy_pattern(struct listing *listing, const struct config *config, const struct http_origin *row)
{
    const struct origin_route *route = &row->route;
    char *text, *end;

    if (row == config->peers.rows.rows)
        return copy(listing, span_str("peers"));
    text = malloc(row->host.len + route->prefix.len + 2);
    listing->failed = listing->failed || !text;
    if (!text)
        return NULL;
    end = span_put(span_put(text, row->host), route->prefix);
    if (route->below)
        *end++ = '/';
    *end = '\0';
    return text;
}

/* A peer that is this daemon is asked nothing. */
static const char *
state_of(const struct config *config, const struct http_origin *row, unsigned number,
         int64_t now_us, char state[32])
{
    if (row == config->peers.rows.rows && number == config->peers.group.self)
        return "this daemon";
    return origin_route_state(&row->route, number, now_us, state, 32);
}

static void
add(struct listing *listing, const struct config *config, struct http_origin *row, unsigned number)
{
    const struct origin_member *member = &row->route.members[number];
    const struct origin_server *server = member->server;
    const int64_t now_us = clock_monotonic_us();
    const int64_t failed_us = atomic_load(&server->failed_us);
    char state[32], reason[sizeof(server->reason.text)];
    proxy_member *listed;

    if (listing->count == listing->most || listing->failed)
        return;
    origin_reason_get(&server->reason, reason, sizeof(reason));
    listed = &listing->members[listing->count++];
    *listed = (proxy_member){
        .row = copy_pattern(listing, config, row),
        .url = copy(listing, member->url),
        .weight = member->weight ? member->weight : 1,
        .backup = member->backup,
        .state = copy(listing, span_str(state_of(config, row, number, now_us, state))),
        .reason = copy(listing, span_str(reason)),
        .max = atomic_load(&server->limit),
        .in_flight = atomic_load(&server->in_flight),
        .requests = atomic_load(&server->requests),
        .failed = atomic_load(&server->failed),
        .failed_us = failed_us ? now_us - failed_us : -1,
        .p50_us = origin_latency_percentile(&server->latency, 0.5, now_us),
        .p90_us = origin_latency_percentile(&server->latency, 0.9, now_us),
        .p99_us = origin_latency_percentile(&server->latency, 0.99, now_us),
    };
}

static void
drain(struct origin_member *member, bool drained)
{
    if (atomic_exchange(&member->server->drained, drained) != drained)
        log_info("%.*s is %s", (int)member->url.len, member->url.ptr,
                 drained ? "drained" : "enabled again");
}

/* NULL without memory. */
static struct listing *
make_listing(const struct config *config)
{
    struct listing *listing = calloc(1, sizeof(*listing));
    size_t count = 0;

    for (size_t i = 0; i < config->origins.count; i++)
        count += config->origins.rows[i].route.count;
    if (config->peers.rows.count)
        count += config->peers.group.route->count;
    if (!listing)
        return NULL;
    listing->most = count < PROXY_MAX_MEMBERS ? count : PROXY_MAX_MEMBERS;
    listing->members = calloc(listing->most + 1, sizeof(*listing->members));
    if (listing->members)
        return listing;
    free(listing);
    return NULL;
}

static void
serve_rows(struct listing *listing, const struct config *config, const struct http_origins *rows,
           const proxy_origin_args *args)
{
    for (size_t i = 0; i < rows->count; i++) {
        struct http_origin *row = &rows->rows[i];

        for (unsigned n = 0; n < row->route.count; n++) {
            struct origin_member *member = &row->route.members[n];

            if (args->action != PROXY_ORIGIN_LIST &&
                !span_equal(member->url, span_str(args->member)))
                continue;
            if (args->action != PROXY_ORIGIN_LIST)
                drain(member, args->action == PROXY_ORIGIN_DRAIN);
            add(listing, config, row, n);
        }
    }
}

/* Does what is asked for, and lists what that concerns. */
static struct listing *
serve(const struct config *config, const proxy_origin_args *args)
{
    struct listing *listing = make_listing(config);

    if (listing) {
        serve_rows(listing, config, &config->origins, args);
        serve_rows(listing, config, &config->peers.rows, args);
    }
    if (listing && listing->failed) {
        free_listing(listing);
        listing = NULL;
    }
    return listing;
}

bool_t
proxy_origin_2_svc(proxy_origin_args *args, proxy_origin_result *result, struct svc_req *call)
{
    static char none[] = "no row of --origin or --peers has such a member; 'sunproxy origin' lists them";
    static char unknown[] = "there is no such action";
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = admin_service(call);
    struct listing *listing;

    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->proxy_origin_result_u.sentence = admin_refusal;
        return TRUE;
    }
    if (args->action > PROXY_ORIGIN_ENABLE) {
        result->status = PROXY_BAD_VALUE;
        result->proxy_origin_result_u.sentence = unknown;
        return TRUE;
    }
    listing = serve(service_config(service), args);
    if (!listing) {
        rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        return FALSE;
    }
    rpc_request_hold(request, free_listing, listing);
    rpc_request_defer(request);
    if (args->action != PROXY_ORIGIN_LIST && !listing->count) {
        listing->result.status = PROXY_BAD_VALUE;
        listing->result.proxy_origin_result_u.sentence = none;
    } else {
        listing->result.proxy_origin_result_u.members.members_len = (u_int)listing->count;
        listing->result.proxy_origin_result_u.members.members_val = listing->members;
    }
    rpc_request_reply(request, (xdrproc_t)xdr_proxy_origin_result, &listing->result);
    return FALSE;
}
