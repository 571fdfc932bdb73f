#include "client/replay/replay_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/container_of.h"
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
note_done(struct replay_exchange *exchange)
{
    struct replay_worker *worker = exchange->worker;

    exchange->status = exchange->page.rpc;
    exchange->done_us = clock_monotonic_us();
    exchange->next = NULL;
    if (worker->done)
        worker->last_done->next = exchange;
    else
        worker->done = exchange;
    worker->last_done = exchange;
}

/* Bodies are counted, and not kept. */
static void
note_piece(struct page *page)
{
    struct replay_exchange *exchange = container_of(page, struct replay_exchange, page);

    if (page->state == PAGE_PIECE) {
        exchange->bytes = page->offset + page->piece.len;
        page_next(page);
    }
    if (page->state != PAGE_WAITS)
        note_done(exchange);
}

void
replay_worker_send(struct replay_worker *worker, struct replay_exchange *exchange)
{
    const struct replay_plan *plan = worker->run->plan;
    struct span url = plan->trace->urls[plan->trace->ids[exchange->number]];

    exchange->worker = worker;
    exchange->bytes = 0;
    exchange->page = (struct page){
        .client = worker->client,
        .url = url,
        .flags = plan->want_victims ? PROXY_FLAG_WANT_VICTIMS : 0,
        .timeout_us = plan->timeout_us,
        .notify = note_piece,
    };
    if (page_begin(&exchange->page) != RPC_CLIENT_OK)
        note_done(exchange);
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
    if (!page->ending.stored)
        return REPLAY_UNCACHED;
    return page->ending.evicted ? REPLAY_EVICTED : REPLAY_MISS;
}

_Static_assert(REPLAY_LOG_VICTIMS == PROXY_MAX_VICTIMS, "the log names the victims of an answer");

static void
fill_from_page(struct replay_entry *entry, const struct replay_exchange *exchange,
               struct span *victims)
{
    const proxy_page *page = &exchange->page.result.proxy_fetch_result_u.page;
    const proxy_ending *ending = &page->ending;

    entry->outcome = outcome_of(page);
    entry->status = page->http_status;
    entry->bytes = exchange->bytes;
    entry->evicted = ending->evicted;
    entry->victims = victims;
    for (u_int i = 0; i < ending->victims.victims_len && i < REPLAY_LOG_VICTIMS; i++)
        victims[entry->victim_count++] = span_of(ending->victims.victims_val[i].proxy_url_val,
                                                 ending->victims.victims_val[i].proxy_url_len);
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
    const proxy_fetch_result *result = &exchange->page.result;
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
    } else if (result->status != PROXY_OK) {
        entry.error = proxy_status_name(result->status);
        note_failure(worker, exchange->number, entry.url, exit_of_proxy(result->status),
                     result->proxy_fetch_result_u.sentence);
    } else {
        fill_from_page(&entry, exchange, victims);
    }

    tally->requests++;
    tally->outcomes[entry.outcome]++;
    tally->evictions += entry.evicted;
    tally->bytes += entry.bytes;
    if (entry.outcome == REPLAY_HIT)
        tally->bytes_hit += entry.bytes;
    else if (entry.outcome == REPLAY_COALESCED)
        tally->bytes_coalesced += entry.bytes;
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
    page_free(&exchange->page);
    if (exchange->status == RPC_CLIENT_BAD_REPLY)
        *reconnect = true;
    return atomic_load(&run->status) == EX_OK;
}
