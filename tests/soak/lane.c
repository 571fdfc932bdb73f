#include "tests/soak/lane.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "policies/policy.h"
#include "tests/soak/vanish.h"

#define BATCH 64u             /* requests that a lane takes at a time */
#define MAX_REPLY (24u << 20) /* bytes: a page of the greatest size, and its headers */
#define CONNECT_US (30 * 1000000)

struct lane;

/* A call under way. */
struct slot {
    struct lane *lane;
    struct mix_ask ask;
    union {
        struct proxy_fetch_result page;
        struct webpageResponse text;
        struct proxy_purge_result purge;
        struct proxy_set_result set;
        struct proxy_stats stats;
    } result;
    bool busy;
};

struct lane {
    struct lane_work *work;
    const struct lane_address *to;
    struct rpc_client *client;
    pthread_t thread;
    uint64_t random;
    uint64_t next, until; /* of the batch */
    struct slot slots[LANE_DEPTH];
};

void
lane_fail(struct lane_work *work, const struct mix_ask *ask, const char *what)
{
    pthread_mutex_lock(&work->lock);
    if (work->failures++ < LANE_MOST_FAILURES)
        fprintf(stderr, "soak: unexpected answer, row \"%s\", %s: %s\n", ask->row->name,
                ask->url[0] ? ask->url : "no URL", what);
    if (work->failures >= LANE_MOST_FAILURES)
        atomic_store(&work->stop, true);
    pthread_mutex_unlock(&work->lock);
}

static void
count(struct lane_work *work, const struct mix_row *row)
{
    atomic_fetch_add_explicit(&work->asked[row - mix_rows], 1, memory_order_relaxed);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void
note_cache(struct lane_work *work, const struct proxy_fetch_result *result)
{
    const struct proxy_page *page = &result->proxy_fetch_result_u.page;

    if (result->status != PROXY_OK)
        return;
    if (page->source == PROXY_HIT)
        atomic_fetch_add_explicit(&work->hits, 1, memory_order_relaxed);
    if (page->ending.stored && page->source == PROXY_MISS)
        atomic_fetch_add_explicit(&work->stored, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&work->evicted, page->ending.evicted, memory_order_relaxed);
}

static const char *
check_answer(struct slot *slot)
{
    const struct mix_ask *ask = &slot->ask;
    bool admin = slot->lane->to->admin;

    switch (ask->row->kind) {
    case MIX_GET:
    case MIX_NO_STORE:
    case MIX_HEADERS:
        note_cache(slot->lane->work, &slot->result.page);
        return mix_check_page(ask, &slot->result.page);
    case MIX_FETCH:
        return mix_check_text(ask, slot->result.text.webPageContents,
                              strlen(slot->result.text.webPageContents));
    case MIX_PURGE_URL:
    case MIX_PURGE_PREFIX:
    case MIX_PURGE_ALL:
        return mix_check_status(ask, admin, slot->result.purge.status);
    case MIX_SET_POLICY:
    case MIX_SET_CAPACITY:
        return mix_check_status(ask, admin, slot->result.set.status);
    default:
        return NULL;
    }
}

static xdrproc_t
result_of(enum mix_kind kind)
{
    switch (kind) {
    case MIX_FETCH:
        return (xdrproc_t)xdr_webpageResponse;
    case MIX_STAT:
        return (xdrproc_t)xdr_proxy_stats;
    case MIX_PURGE_URL:
    case MIX_PURGE_PREFIX:
    case MIX_PURGE_ALL:
        return (xdrproc_t)xdr_proxy_purge_result;
    case MIX_SET_POLICY:
    case MIX_SET_CAPACITY:
        return (xdrproc_t)xdr_proxy_set_result;
    default:
        return (xdrproc_t)xdr_proxy_fetch_result;
    }
}

static void
answered(void *context, enum rpc_client_status status, void *result)
{
    struct slot *slot = context;
    const struct mix_row *row = slot->ask.row;
    const char *wrong = NULL;

    if (status != row->rpc)
        wrong = rpc_client_strstatus(status);
    else if (status == RPC_CLIENT_OK)
        wrong = check_answer(slot);
    if (wrong)
        lane_fail(slot->lane->work, &slot->ask, wrong);
    else
        count(slot->lane->work, row);
    if (status == RPC_CLIENT_OK)
        xdr_free(result_of(row->kind), result);
    slot->busy = false;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The policies that a daemon can run, and none, by number. */
static const char *
policy_at(uint32_t number)
{
    uint32_t runnable = 1;

    for (size_t i = 0; policies[i]; i++)
        runnable += !policies[i]->needs_future;
    number %= runnable;
    for (size_t i = 0; policies[i]; i++)
        if (!policies[i]->needs_future && number-- == 0)
            return policies[i]->name;
    return "none";
}

static enum rpc_client_status
send_call(struct slot *slot, uint32_t version, uint32_t procedure, xdrproc_t encode, void *args)
{
    struct lane *lane = slot->lane;

    return rpc_client_call(lane->client, PROXY_FETCHPROG, version, procedure, encode, args,
                           result_of(slot->ask.row->kind), &slot->result, lane->work->timeout_us,
                           answered, slot);
}

static enum rpc_client_status
send_get(struct slot *slot)
{
    struct mix_ask *ask = &slot->ask;
    char header[] = "X-Soak: 1\r\n";
    struct proxy_fetch_args args = {
        .url = {.proxy_url_len = (u_int)strlen(ask->url), .proxy_url_val = ask->url}};

    if (ask->row->kind == MIX_NO_STORE)
        args.flags = PROXY_FLAG_NO_STORE;
    if (ask->row->kind == MIX_HEADERS) {
        args.headers.proxy_headers_val = header;
        args.headers.proxy_headers_len = sizeof(header) - 1;
    }
    return send_call(slot, PROXY_VERS2, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args, &args);
}

static enum rpc_client_status
send_purge(struct slot *slot, enum proxy_purge_kind kind)
{
    struct proxy_purge_args args = {
        .kind = kind,
        .url = {.proxy_url_len = (u_int)strlen(slot->ask.url), .proxy_url_val = slot->ask.url}};

    return send_call(slot, PROXY_VERS2, PROXY_PURGE, (xdrproc_t)xdr_proxy_purge_args, &args);
}

static enum rpc_client_status
send_set(struct slot *slot)
{
    char policy[PROXY_MAX_NAME] = "";
    struct proxy_set_args args = {.policy = policy};

    if (slot->ask.row->kind == MIX_SET_POLICY) {
        snprintf(policy, sizeof(policy), "%s", policy_at(slot->ask.draw));
    } else {
        args.set_capacity = true;
        uint32_t usual = slot->lane->work->capacity_urls;

        args.capacity_urls = usual * 2 / 5 + slot->ask.draw % (usual * 6 / 5);
        args.capacity_bytes = (4u + slot->ask.draw / 1200 % 8) << 20;
    }
    return send_call(slot, PROXY_VERS2, PROXY_SET, (xdrproc_t)xdr_proxy_set_args, &args);
}

static enum rpc_client_status
send_ask(struct slot *slot)
{
    char *url = slot->ask.url;

    switch (slot->ask.row->kind) {
    case MIX_FETCH:
        return send_call(slot, PROXY_FETCHVERS, PROXY_FETCH, (xdrproc_t)xdr_wrapstring, &url);
    case MIX_STAT:
        return send_call(slot, PROXY_VERS2, PROXY_STAT, NULL, NULL);
    case MIX_PURGE_URL:
        return send_purge(slot, PROXY_PURGE_URL);
    case MIX_PURGE_PREFIX:
        return send_purge(slot, PROXY_PURGE_PREFIX);
    case MIX_PURGE_ALL:
        return send_purge(slot, PROXY_PURGE_ALL);
    case MIX_SET_POLICY:
    case MIX_SET_CAPACITY:
        return send_set(slot);
    case MIX_NO_PROCEDURE:
        return send_call(slot, PROXY_VERS2, 99, NULL, NULL);
    case MIX_NO_VERSION:
        return send_call(slot, 77, PROXY_GET, NULL, NULL);
    case MIX_NO_ARGUMENTS:
        return send_call(slot, PROXY_VERS2, PROXY_GET, NULL, NULL);
    default:
        return send_get(slot);
    }
}

/* The next request's number; false if the phase has none left. */
static bool
take_number(struct lane *lane, uint64_t *number)
{
    uint64_t until = atomic_load(&lane->work->until);

    if (atomic_load(&lane->work->stop))
        return false;
    if (lane->next == lane->until) {
        lane->next = atomic_fetch_add(&lane->work->next, BATCH);
        lane->until = lane->next + BATCH < until ? lane->next + BATCH : until;
    }
    if (lane->next >= until) {
        lane->next = lane->until = 0;
        return false;
    }
    *number = lane->next++;
    return true;
}

static const struct mix_row *
row_of(struct lane *lane, uint64_t number)
{
    if (lane->work->rare)
        return mix_rare_at(number);
    return number < mix_count ? &mix_rows[number]
                              : mix_row_at(mix_random(&lane->random) % MIX_SHARES);
}

/* Sends one more request, or lets a client vanish. False if there is none, or no connection. */
static bool
ask_one(struct lane *lane, struct slot *slot)
{
    enum rpc_client_status status;
    uint64_t number;

    if (!take_number(lane, &number))
        return false;
    mix_draw(&slot->ask, row_of(lane, number), &lane->random);
    if (slot->ask.row->kind >= MIX_VANISH_IN_CALL) {
        const char *wrong = vanish(&slot->ask, lane->to);

        if (wrong)
            lane_fail(lane->work, &slot->ask, wrong);
        else
            count(lane->work, slot->ask.row);
        return true;
    }
    memset(&slot->result, 0, sizeof(slot->result));
    slot->busy = true;
    status = send_ask(slot);
    if (status == RPC_CLIENT_OK)
        return true;
    slot->busy = false;
    lane_fail(lane->work, &slot->ask, rpc_client_strstatus(status));
    return false;
}

static void *
run(void *argument)
{
    static const struct mix_row connecting = {.name = "connect"};
    const struct mix_ask ask = {.row = &connecting};
    struct lane *lane = argument;
    bool more = true;

    lane->client = rpc_client_connect((const struct sockaddr *)&lane->to->address, lane->to->len,
                                      CONNECT_US, MAX_REPLY);
    if (!lane->client) {
        lane_fail(lane->work, &ask, "no connection can be made");
        return NULL;
    }
    do {
        for (unsigned i = 0; more && i < LANE_DEPTH; i++)
            while (more && !lane->slots[i].busy)
                more = ask_one(lane, &lane->slots[i]);
        /* A connection that is lost has failed every call on it. */
        if (!rpc_client_run(lane->client, INT64_MAX))
            break;
    } while (more || rpc_client_pending(lane->client) > 0);
    rpc_client_close(lane->client);
    return NULL;
}

bool
lane_run_all(struct lane_work *work, unsigned count)
{
    struct lane *lanes = calloc(count, sizeof(*lanes));
    unsigned started = 0;

    for (; lanes && started < count; started++) {
        struct lane *lane = &lanes[started];

        lane->work = work;
        lane->to = started % 2 ? &work->tcp : &work->local;
        /* Other requests in each phase and on each lane. */
        lane->random = work->seed * 0x9e3779b97f4a7c15u + atomic_load(&work->until) + started + 1;
        for (unsigned i = 0; i < LANE_DEPTH; i++)
            lane->slots[i].lane = lane;
        if (pthread_create(&lane->thread, NULL, run, lane) != 0)
            break;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(lanes[i].thread, NULL);
    free(lanes);
    return started == count;
}
