#include "client/replay_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "cli/output.h"
#include "client/exit_status.h"

bool
replay_end_run(struct replay_run *run, int status)
{
    int running = EX_OK;

    return atomic_compare_exchange_strong(&run->status, &running, status);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void
note_done(void *context, enum rpc_client_status status, void *result)
{
    struct replay_exchange *exchange = context;
    struct replay_worker *worker = exchange->worker;

    (void)result;
    exchange->status = status;
    exchange->done_us = clock_monotonic_us();
    exchange->next = NULL;
    if (worker->done)
        worker->last_done->next = exchange;
    else
        worker->done = exchange;
    worker->last_done = exchange;
}

void
replay_worker_send(struct replay_worker *worker, struct replay_exchange *exchange)
{
    const struct replay_plan *plan = worker->run->plan;
    struct span url = plan->trace->urls[plan->trace->ids[exchange->number]];
    proxy_fetch_args args = {
        .url = {.proxy_url_val = (char *)(uintptr_t)url.ptr, .proxy_url_len = (u_int)url.len},
        .flags = plan->want_victims ? PROXY_FLAG_WANT_VICTIMS : 0,
    };
    enum rpc_client_status status;

    exchange->worker = worker;
    memset(&exchange->result, 0, sizeof(exchange->result));
    status =
        rpc_client_call(worker->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET,
                        (xdrproc_t)xdr_proxy_fetch_args, &args, (xdrproc_t)xdr_proxy_fetch_result,
                        &exchange->result, plan->timeout_us, note_done, exchange);
    if (status != RPC_CLIENT_OK)
        note_done(exchange, status, NULL);
}

struct replay_exchange *
replay_worker_take_done(struct replay_worker *worker)
{
    struct replay_exchange *exchange = worker->done;

    if (exchange)
        worker->done = exchange->next;
    return exchange;
}

bool
replay_worker_reconnect(struct replay_worker *worker)
{
    const struct replay_plan *plan = worker->run->plan;

    rpc_client_close(worker->client);
    worker->client = server_connect(plan->server, plan->timeout_us);
    if (!worker->client && replay_end_run(worker->run, EX_UNAVAILABLE))
        output_complain("%s: %s", plan->server->name, strerror(errno));
    return worker->client != NULL;
}

/* ---- accounting ------------------------------------------------------------------------------ */

static enum replay_outcome
outcome_of(const proxy_page *page)
{
    switch (page->source) {
    case PROXY_HIT:
    case PROXY_REVALIDATED:
    case PROXY_STALE:
        return REPLAY_HIT;
    case PROXY_COALESCED:
        return REPLAY_COALESCED;
    case PROXY_BYPASS:
        return REPLAY_BYPASS;
    case PROXY_MISS:
        break;
    }
    if (!page->stored)
        return REPLAY_UNCACHED;
    return page->evicted ? REPLAY_EVICTED : REPLAY_MISS;
}

_Static_assert(REPLAY_LOG_VICTIMS == PROXY_MAX_VICTIMS, "the log names the victims of an answer");

static void
fill_from_page(struct replay_entry *entry, const proxy_page *page, struct span *victims)
{
    entry->outcome = outcome_of(page);
    entry->status = page->http_status;
    entry->bytes = page->body.body_len;
    entry->evicted = page->evicted;
    entry->victims = victims;
    for (u_int i = 0; i < page->victims.victims_len && i < REPLAY_LOG_VICTIMS; i++)
        victims[entry->victim_count++] = span_of(page->victims.victims_val[i].proxy_url_val,
                                                 page->victims.victims_val[i].proxy_url_len);
}

/* Keeps the first failure: of many, most have the same cause. */
static void
note_failure(struct replay_worker *worker, size_t number, struct span url, int status,
             const char *sentence)
{
    if (worker->failed)
        return;
    worker->failed = number + 1;
    worker->failure_status = status;
    snprintf(worker->failure, sizeof(worker->failure), "%.*s: %s",
             (int)(url.len < 200 ? url.len : 200), url.ptr, sentence);
}

static void
count_and_log(struct replay_worker *worker, const struct replay_exchange *exchange)
{
    struct replay_run *run = worker->run;
    const struct trace *trace = run->plan->trace;
    struct replay_result *tally = &worker->tally;
    struct span victims[REPLAY_LOG_VICTIMS];
    int64_t us = exchange->done_us - exchange->from_us;
    struct replay_entry entry = {.run = run->plan->run,
                                 .number = exchange->number + 1,
                                 .url = trace->urls[trace->ids[exchange->number]],
                                 .outcome = REPLAY_FAILED,
                                 .us = us > 0 ? (uint64_t)us : 1};
    int error;

    if (exchange->status != RPC_CLIENT_OK) {
        entry.error = rpc_status_name(exchange->status);
        note_failure(worker, exchange->number, entry.url, exit_of_rpc(exchange->status),
                     rpc_status_sentence(exchange->status));
    } else if (exchange->result.status != PROXY_OK) {
        entry.error = proxy_status_name(exchange->result.status);
        note_failure(worker, exchange->number, entry.url, exit_of_proxy(exchange->result.status),
                     exchange->result.proxy_fetch_result_u.sentence);
    } else {
        fill_from_page(&entry, &exchange->result.proxy_fetch_result_u.page, victims);
    }

    tally->requests++;
    tally->outcomes[entry.outcome]++;
    tally->evictions += entry.evicted;
    tally->bytes += entry.bytes;
    if (entry.outcome == REPLAY_HIT)
        tally->bytes_hit += entry.bytes;
    if (entry.outcome != REPLAY_FAILED)
        run->times[exchange->number] = entry.us > UINT32_MAX ? UINT32_MAX : (uint32_t)entry.us;
    atomic_fetch_add_explicit(&run->finished, 1, memory_order_relaxed);
    if (run->plan->log && (error = replay_log_write(run->plan->log, &entry)) &&
        replay_end_run(run, EX_IOERR))
        output_complain("cannot write the log: %s", strerror(error));
}

/* After these, no further request can succeed. */
static bool
is_final(enum rpc_client_status status)
{
    return status == RPC_CLIENT_LOST || status == RPC_CLIENT_PROG_UNAVAIL ||
           status == RPC_CLIENT_PROG_MISMATCH || status == RPC_CLIENT_PROC_UNAVAIL ||
           status == RPC_CLIENT_DENIED || status == RPC_CLIENT_NO_MEMORY;
}

bool
replay_worker_account(struct replay_worker *worker, struct replay_exchange *exchange,
                      bool *reconnect)
{
    struct replay_run *run = worker->run;

    if (is_final(exchange->status)) {
        if (replay_end_run(run, exit_of_rpc(exchange->status)))
            output_complain("the server at %s was lost at request %zu of %zu: %s",
                            run->plan->server->name, exchange->number + 1,
                            run->plan->trace->request_count, rpc_status_sentence(exchange->status));
        return false;
    }
    count_and_log(worker, exchange);
    if (exchange->status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_fetch_result, &exchange->result);
    if (exchange->status == RPC_CLIENT_BAD_REPLY)
        *reconnect = true;
    return atomic_load(&run->status) == EX_OK;
}
