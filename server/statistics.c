/*
 * The procedure PROXY_STAT of version 2: the table of metrics as pairs of name and value, for any
 * caller.
 */
#include <stdlib.h>
#include <string.h>

#include "proxy.h"
#include "server/service.h"

_Static_assert(METRICS_MAX_NAME <= PROXY_MAX_NAME + 1, "a sample's name can be sent");
_Static_assert((int)METRIC_KIND_COUNTER == PROXY_COUNTER && (int)METRIC_KIND_GAUGE == PROXY_GAUGE &&
                   (int)METRIC_KIND_HISTOGRAM == PROXY_HISTOGRAM,
               "kinds are sent as they are");

/*
 * An encoded answer. The transport would copy its many small pieces into memory that it may be
 * refused when replies have used up their share, which is when statistics are wanted. So it is
 * encoded here, into one piece that is charged beyond the share and sent from where it stands.
 * Connections are read no further meanwhile, which bounds the number of such answers.
 */
struct answer {
    struct memory_account *memory;
    u_int len; /* a multiple of four */
    char bytes[];
};

static size_t
charge_of(const struct answer *answer)
{
    return sizeof(*answer) + answer->len;
}

static void
release_answer(void *held)
{
    struct answer *answer = held;

    memory_uncharge(answer->memory, MEMORY_REPLIES, charge_of(answer));
    free(answer);
}

static bool_t
put_answer(XDR *xdr, struct answer *answer)
{
    return xdr_opaque(xdr, answer->bytes, answer->len);
}

/* NULL without memory. */
static struct answer *
encode(struct memory_account *memory, proxy_stats *stats)
{
    u_int len = (u_int)xdr_sizeof((xdrproc_t)xdr_proxy_stats, stats);
    struct answer *answer = memory_calloc(memory, sizeof(*answer) + len);
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
        for (size_t i = 0; i < sample_count; i++)
            pairs[i] = (proxy_metric){unconst(samples[i].name), samples[i].kind, values[i]};
        *count = (u_int)sample_count;
    }
    free(values);
    return pairs;
}

static struct answer *
make_answer(struct service *service)
{
    char policy[POLICY_MAX_TEXT];
    struct cache_config config;
    struct answer *answer;
    proxy_stats stats;

    cache_get_config(service->cache, &config);
    proxy_fact facts[] = {
        {unconst("software"), unconst("sunproxyd " SUNPROXY_VERSION)},
        {unconst("policy"), unconst(policy_format(&config.policy, policy, sizeof(policy)))},
    };
    stats.facts.facts_val = facts;
    stats.facts.facts_len = sizeof(facts) / sizeof(facts[0]);
    stats.metrics.metrics_val = make_pairs(service->metrics, &stats.metrics.metrics_len);
    if (!stats.metrics.metrics_val)
        return NULL;
    answer = encode(&service->memory, &stats);
    free(stats.metrics.metrics_val);
    return answer;
}

bool_t
proxy_stat_2_svc(void *args, proxy_stats *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct answer *answer = make_answer(service_of(rpc));

    (void)args;
    (void)result; /* sent as bytes, below */
    if (!answer) {
        rpc_request_error(rpc, RPC_ERROR_SYSTEM_ERR);
        return FALSE;
    }
    rpc_request_hold(rpc, release_answer, answer);
    rpc_request_defer(rpc);
    rpc_request_reply(rpc, (xdrproc_t)put_answer, answer);
    return FALSE;
}
