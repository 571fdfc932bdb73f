#include "server/statistics.h"

#include <stdlib.h>
#include <string.h>

#include "proxy.h"
#include "proxy/control.h"
#include "server/service.h"

_Static_assert(METRICS_MAX_NAME <= PROXY_MAX_NAME + 1, "a sample's name can be sent");
_Static_assert((int)METRIC_KIND_COUNTER == PROXY_COUNTER && (int)METRIC_KIND_GAUGE == PROXY_GAUGE &&
                   (int)METRIC_KIND_HISTOGRAM == PROXY_HISTOGRAM,
               "kinds are sent as they are");

static size_t
charge_of(const struct statistics_answer *answer)
{
    return sizeof(*answer) + answer->len;
}

void
statistics_answer_free(void *answer)
{
    struct statistics_answer *of = answer;

    memory_uncharge(of->memory, MEMORY_REPLIES, charge_of(of));
    free(of);
}

static bool_t
put_answer(XDR *xdr, struct statistics_answer *answer)
{
    return xdr_opaque(xdr, answer->bytes, answer->len);
}

/* NULL without memory. */
static struct statistics_answer *
encode(struct memory_account *memory, proxy_stats *stats)
{
    u_int len = (u_int)xdr_sizeof((xdrproc_t)xdr_proxy_stats, stats);
    struct statistics_answer *answer = memory_calloc(memory, sizeof(*answer) + len);
    XDR xdr;

    if (!answer)
        return NULL;
    xdrmem_create(&xdr, answer->bytes, len, XDR_ENCODE);
    if (!xdr_proxy_stats(&xdr, stats)) {
        free(answer);
        return NULL;
    }
    answer->memory = memory;
    answer->len = len;
    memory_charge_anyway(memory, MEMORY_REPLIES, charge_of(answer));
    return answer;
}

static char *
unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* All pairs, named by the table; NULL without memory. */
static proxy_metric *
make_pairs(struct metrics *metrics, u_int *count)
{
    const struct metric_sample *samples;
    size_t sample_count = metrics_samples(metrics, &samples);
    uint64_t *values = calloc(sample_count, sizeof(*values));
    proxy_metric *pairs = values ? calloc(sample_count, sizeof(*pairs)) : NULL;

    if (pairs) {
        metrics_read(metrics, values);
        *count = 0;
        for (size_t i = 0; i < sample_count; i++)
            if (atomic_load_explicit(&samples[i].shown, memory_order_acquire))
                pairs[(*count)++] =
                    (proxy_metric){unconst(samples[i].name), samples[i].kind, values[i]};
    }
    free(values);
    return pairs;
}

struct statistics_answer *
statistics_answer_make(struct service *service, bool for_admin)
{
    char policy[POLICY_MAX_TEXT];
    struct cache_config config;
    struct statistics_answer *answer;
    proxy_stats stats;

    cache_get_config(service->cache, &config);
    proxy_fact facts[] = {
        {unconst("software"), unconst("sunproxyd " SUNPROXY_VERSION)},
        {unconst("policy"), unconst(policy_format(&config.policy, policy, sizeof(policy)))},
        {unconst("shard_choice"),
         unconst(control_shards_are_automatic(&service->proxy) ? "automatic" : "fixed")},
        /* For administrators. */
        {NULL, NULL},
        {NULL, NULL},
    };
    stats.facts.facts_val = facts;
    stats.facts.facts_len = 3;
    if (for_admin && service->request_db_path)
        facts[stats.facts.facts_len++] =
            (proxy_fact){unconst("request_db"), service->request_db_path};
    if (for_admin && service->store_path)
        facts[stats.facts.facts_len++] = (proxy_fact){unconst("store"), service->store_path};
    stats.metrics.metrics_val = make_pairs(service->metrics, &stats.metrics.metrics_len);
    if (!stats.metrics.metrics_val)
        return NULL;
    answer = encode(&service->memory, &stats);
    free(stats.metrics.metrics_val);
    return answer;
}

/* PROXY_STAT of version 2, for any caller. */
bool_t
proxy_stat_2_svc(void *args, proxy_stats *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(rpc);
    struct statistics_answer *answer =
        statistics_answer_make(service, service_is_admin(service, rpc_request_peer(rpc)));

    (void)args;
    (void)result; /* sent as bytes, below */
    if (!answer) {
        rpc_request_error(rpc, RPC_ERROR_SYSTEM_ERR);
        return FALSE;
    }
    rpc_request_hold(rpc, statistics_answer_free, answer);
    rpc_request_defer(rpc);
    rpc_request_reply(rpc, (xdrproc_t)put_answer, answer);
    return FALSE;
}
