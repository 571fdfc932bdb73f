/*
 * The procedures of version 2 that change the server, purging and setting, and the previews of
 * both, which change nothing: for administrators, over the AF_UNIX socket only.
 */
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"
#include "proxy.h"
#include "proxy/control.h"
#include "proxy/purging.h"
#include "server/logs/log.h"
#include "server/peers/peer_news.h"
#include "server/rpc/admin_caller.h"
#include "server/rpc/cursor.h"
#include "server/rpc/front_rules.h"
#include "server/service.h"

char admin_refusal[] =
    "only root, the daemon's own user and its --admin-uid may do this, over the AF_UNIX socket";

struct service *
admin_service(struct svc_req *call)
{
    const struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(request);

    return service_is_admin(service, rpc_request_peer(request)) ? service : NULL;
}

/* ---- PROXY_PURGE ----------------------------------------------------------------------------- */

static bool
purge_of(proxy_purge_kind wanted, enum control_purge *kind)
{
    switch (wanted) {
    case PROXY_PURGE_URL:
        *kind = CONTROL_PURGE_URL;
        return true;
    case PROXY_PURGE_PREFIX:
        *kind = CONTROL_PURGE_PREFIX;
        return true;
    case PROXY_PURGE_ALL:
        *kind = CONTROL_PURGE_ALL;
        return true;
    case PROXY_PURGE_TAG:
        *kind = CONTROL_PURGE_TAG;
        return true;
    }
    return false;
}

/* Why this is no tag to purge by, or NULL. Its pages are not counted (control_count()). */
static const char *
find_fault_of_tag(struct span tag, bool removes)
{
    if (!removes)
        return "how many pages a tag would remove is not counted";
    for (size_t i = 0; i < tag.len; i++)
        if ((unsigned char)tag.ptr[i] <= ' ' || tag.ptr[i] == ',' || tag.ptr[i] == 0x7f)
            return "a tag has neither blanks nor commas";
    return tag.len ? NULL : "the tag is empty";
}

struct removal {
    struct proxy *proxy;
    struct peer_news *news;
    enum control_purge kind;
    struct purging_marks *marks; /* get those of its purge; NULL: nothing is purged */
    uint64_t count;
};

static void
remove_key(void *context, struct span key)
{
    struct removal *removal = context;

    removal->count += removal->marks ? control_purge_marked(removal->proxy, removal->kind, false,
                                                            key, removal->marks)
                                     : control_count(removal->proxy, removal->kind, key);
    if (removal->marks)
        peer_news_tell(removal->news, &(struct peer_item){.kind = removal->kind, .name = key});
}

/* Without `marks` it is counted only what would be purged. */
static bool_t
purge(struct svc_req *call, const proxy_purge_args *args, proxy_purge_result *result,
      struct purging_marks *marks)
{
    const char *fault = NULL;
    struct span url = span_of(args->url.proxy_url_val, args->url.proxy_url_len);
    struct service *service = admin_service(call);
    enum control_purge kind;

    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->proxy_purge_result_u.sentence = admin_refusal;
        return TRUE;
    }
    if (!purge_of(args->kind, &kind))
        fault = "there is no such kind of purge";
    else if (kind == CONTROL_PURGE_TAG)
        fault = find_fault_of_tag(url, marks != NULL);
    if (fault) {
        result->status = PROXY_BAD_VALUE;
        result->proxy_purge_result_u.sentence = (char *)(uintptr_t)fault;
    } else {
        struct removal removal = {.proxy = &service->proxy,
                                  .news = service->news,
                                  .kind = kind,
                                  .marks = marks};

        remove_key(&removal, url);
        if (kind == CONTROL_PURGE_URL)
            front_rules_visit_keys(service, url, remove_key, &removal);
        result->status = service_uncounted(service, marks && kind == CONTROL_PURGE_URL)[0]
                             ? PROXY_PURGED_MORE
                             : PROXY_OK;
        result->proxy_purge_result_u.purged = removal.count;
    }
    return TRUE;
}

/* A purge whose answer waits, for peers and then for sources. In the request's memory. */
struct held_purge {
    struct purging_wait noted; /* first */
    struct peer_news_wait wait;
    struct net_task task;
    struct net_worker *worker;
    struct service *service;
    proxy_purge_result result; /* if it holds */
};

_Static_assert(sizeof(struct held_purge) <= FRONT_REQUEST_DATA, "it is in the request's memory");

static void
answer_purge(struct net_task *task)
{
    struct held_purge *held = container_of(task, struct held_purge, task);
    proxy_purge_result result = held->result;
    static char stopping[] = PURGED_FOR_NOW;
    static char here[] = PURGED_HERE;

    if (atomic_load(&held->noted.lost)) {
        result.status = PROXY_STOPPING;
        result.proxy_purge_result_u.sentence = stopping;
    } else if (atomic_load(&held->noted.untold)) {
        result.status = PROXY_PURGED_HERE;
        result.proxy_purge_result_u.sentence = here;
    }
    rpc_request_reply(rpc_request_of_data(held), (xdrproc_t)xdr_proxy_purge_result, &result);
}

static void
note(struct purging_wait *wait)
{
    struct held_purge *held = (struct held_purge *)wait;

    net_worker_post(held->worker, &held->task);
}

/* The peers that can be reached have taken it: answers when the sources have noted it. */
static void
await_sources(struct net_task *task)
{
    struct held_purge *held = container_of(task, struct held_purge, task);

    task->run = answer_purge;
    if (purging_is_noted(&held->service->proxy, &held->noted))
        answer_purge(task);
}

static void
end_wait(struct peer_news_wait *wait)
{
    struct held_purge *held = container_of(wait, struct held_purge, wait);

    net_worker_post(held->worker, &held->task);
}

bool_t
proxy_purge_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(request);
    const bool has_peers = service_config(service)->peers.rows.count != 0;
    struct held_purge *held = rpc_request_data(request);
    struct purging_marks marks = {0};

    (void)purge(call, args, result, &marks);
    if ((result->status != PROXY_OK && result->status != PROXY_PURGED_MORE) ||
        (!has_peers && !service->proxy.config.sources[0]))
        return TRUE;
    *held = (struct held_purge){
        /* Once all peers have taken it, it is purged here again. */
        .noted = {.notify = note, .marks = has_peers ? purging_all_marks() : marks},
        .wait.done = end_wait,
        .task.run = await_sources,
        .worker = rpc_request_worker(request),
        .service = service,
        .result = *result,
    };
    rpc_request_defer(request);
    if (!has_peers || !peer_news_wait(service->news, &held->wait))
        await_sources(&held->task);
    return FALSE;
}

bool_t
proxy_purge_preview_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *call)
{
    return purge(call, args, result, NULL);
}

/* ---- PROXY_RELOAD ---------------------------------------------------------------------------- */

_Static_assert(sizeof(struct reload_call) <= FRONT_REQUEST_DATA, "it is in the request's memory");

static void
answer_reload(struct net_task *task)
{
    static char no_memory[] = "out of memory";
    struct reload_call *call = container_of(task, struct reload_call, task);
    char *text = call->text;
    proxy_reload_result result = {
        .status = call->done ? PROXY_OK : PROXY_BAD_VALUE,
        .text = text ? text : no_memory,
    };

    if (text && strlen(text) > PROXY_MAX_LINES)
        text[PROXY_MAX_LINES] = '\0';
    rpc_request_reply(rpc_request_of_data(call), (xdrproc_t)xdr_proxy_reload_result, &result);
    free(text);
}

bool_t
proxy_reload_2_svc(void *nothing, proxy_reload_result *result, struct svc_req *call)
{
    static char closed[] = "the daemon is starting or stopping";
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = admin_service(call);
    struct reload_call *left = rpc_request_data(request);

    (void)nothing;
    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->text = admin_refusal;
        return TRUE;
    }
    *left = (struct reload_call){
        .worker = rpc_request_worker(request),
        .task.run = answer_reload,
    };
    rpc_request_defer(request);
    if (!reload_desk_leave(&service->desk, left)) {
        left->text = strdup(closed);
        net_worker_post(left->worker, &left->task);
    }
    return FALSE;
}

/* ---- PROXY_SET ------------------------------------------------------------------------------- */

/* Results are encoded on this thread before it handles another call. */
static _Thread_local char sentence[CONTROL_SENTENCE];
static _Thread_local char policy_text[POLICY_MAX_TEXT];

_Static_assert(CONTROL_SHARDS_AUTOMATIC == PROXY_SHARDS_AUTOMATIC, "sent as it is");

static struct control_change
change_of(const proxy_set_args *args)
{
    return (struct control_change){
        .policy = args->policy,
        .set_capacity = args->set_capacity,
        .capacity_pages = args->capacity_urls,
        .capacity_bytes = args->capacity_bytes,
        .shards = args->shards,
        .cold = args->cold,
    };
}

static proxy_status
status_of(enum control_status status)
{
    switch (status) {
    case CONTROL_OK:
        return PROXY_OK;
    case CONTROL_BAD_VALUE:
        return PROXY_BAD_VALUE;
    case CONTROL_NO_MEMORY:
        break;
    }
    return PROXY_INTERNAL;
}

bool_t
proxy_set_2_svc(proxy_set_args *args, proxy_set_result *result, struct svc_req *call)
{
    const struct control_change change = change_of(args);
    struct service *service = admin_service(call);
    char text[CONTROL_CACHE_TEXT];
    struct cache_config config;
    struct cache_stats stats;

    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->proxy_set_result_u.sentence = admin_refusal;
        return TRUE;
    }
    result->status =
        status_of(control_configure(&service->proxy, &change, &config, sentence, sizeof(sentence)));
    if (result->status != PROXY_OK) {
        result->proxy_set_result_u.sentence = sentence;
        return TRUE;
    }
    log_info("the cache is now: %s%s", control_describe_cache(&config, text, sizeof(text)),
             change.cold ? "; emptied" : "");
    cache_get_stats(service->cache, &stats);
    result->proxy_set_result_u.kept = stats.pages;
    return TRUE;
}

bool_t
proxy_set_preview_2_svc(proxy_set_args *args, proxy_set_preview_result *result,
                        struct svc_req *call)
{
    proxy_set_state *state = &result->proxy_set_preview_result_u.state;
    const struct control_change change = change_of(args);
    struct service *service = admin_service(call);
    struct cache_config config;

    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->proxy_set_preview_result_u.sentence = admin_refusal;
        return TRUE;
    }
    result->status =
        status_of(control_preview(&service->proxy, &change, &config, sentence, sizeof(sentence)));
    if (result->status != PROXY_OK) {
        result->proxy_set_preview_result_u.sentence = sentence;
        return TRUE;
    }
    state->policy = policy_text;
    policy_format(&config.policy, policy_text, sizeof(policy_text));
    state->capacity_urls = config.capacity_pages;
    state->capacity_bytes = config.capacity_bytes;
    state->shards = config.shards;
    return TRUE;
}
