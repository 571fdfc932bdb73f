#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "client/exit_status.h"
#include "cli/output.h"
#include "client/replay.h"

#define LOOK_AGAIN_US 100000 /* how soon an interrupt is noticed while an answer is awaited */

struct run {
    const struct replay_plan *plan;
    uint32_t *times; /* by request; 0: not finished, or failed */

    atomic_size_t next;     /* request to be handed out */
    atomic_size_t finished; /* for the progress line */
    atomic_int status;      /* anything but EX_OK ends the run */
    atomic_uint working;    /* threads */
    int ended;              /* eventfd: a thread is through */
};

struct worker {
    struct run *run;
    struct rpc_client *client;
    pthread_t thread;
    struct replay_result tally; /* the thread's own until it is joined */
    size_t failed;              /* its first request that failed, from 1; 0: none did */
    char failure[512];          /* its URL and why it failed */
    int failure_status;         /* its exit status */
};

/* A request under way. */
struct exchange {
    proxy_fetch_result result;
    enum rpc_client_status status;
    bool done;
};

/* ---- one request ----------------------------------------------------------------------------- */

static void
note_done(void *context, enum rpc_client_status status, void *result)
{
    struct exchange *exchange = context;

    (void)result;
    exchange->status = status;
    exchange->done = true;
}

/* Ends the run; true for the first who does. */
static bool
end_run(struct run *run, int status)
{
    int running = EX_OK;

    return atomic_compare_exchange_strong(&run->status, &running, status);
}

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

_Static_assert(REPLAY_LOG_VICTIMS == PROXY_MAX_VICTIMS, "the log names those that are told");

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
note_failure(struct worker *worker, size_t number, struct span url, int status,
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
account(struct worker *worker, size_t number, const struct exchange *exchange, int64_t us)
{
    struct run *run = worker->run;
    const struct trace *trace = run->plan->trace;
    struct replay_result *tally = &worker->tally;
    struct span victims[REPLAY_LOG_VICTIMS];
    struct replay_entry entry = {.run = run->plan->run,
                                 .number = number + 1,
                                 .url = trace->urls[trace->ids[number]],
                                 .outcome = REPLAY_FAILED,
                                 .us = us > 0 ? (uint64_t)us : 1};
    int error;

    if (exchange->status != RPC_CLIENT_OK) {
        entry.error = rpc_status_name(exchange->status);
        note_failure(worker, number, entry.url, exit_of_rpc(exchange->status),
                     rpc_status_sentence(exchange->status));
    } else if (exchange->result.status != PROXY_OK) {
        entry.error = proxy_status_name(exchange->result.status);
        note_failure(worker, number, entry.url, exit_of_proxy(exchange->result.status),
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
        run->times[number] = entry.us > UINT32_MAX ? UINT32_MAX : (uint32_t)entry.us;
    atomic_fetch_add_explicit(&run->finished, 1, memory_order_relaxed);
    if (run->plan->log && (error = replay_log_write(run->plan->log, &entry)) &&
        end_run(run, EX_IOERR))
        output_complain("cannot write the log: %s", strerror(error));
}

/* Does this status say that no request will get through any more? */
static bool
is_final(enum rpc_client_status status)
{
    return status == RPC_CLIENT_LOST || status == RPC_CLIENT_PROG_UNAVAIL ||
           status == RPC_CLIENT_PROG_MISMATCH || status == RPC_CLIENT_PROC_UNAVAIL ||
           status == RPC_CLIENT_DENIED || status == RPC_CLIENT_NO_MEMORY;
}

static enum rpc_client_status
send_request(struct worker *worker, struct span url, struct exchange *exchange)
{
    const struct replay_plan *plan = worker->run->plan;
    proxy_fetch_args args = {
        .url = {.proxy_url_val = (char *)(uintptr_t)url.ptr, .proxy_url_len = (u_int)url.len},
        .flags = plan->want_victims ? PROXY_FLAG_WANT_VICTIMS : 0,
    };

    return rpc_client_call(worker->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET,
                           (xdrproc_t)xdr_proxy_fetch_args, &args,
                           (xdrproc_t)xdr_proxy_fetch_result, &exchange->result, plan->timeout_us,
                           note_done, exchange);
}

/* Sends one request and waits. False when the run is over. */
static bool
exchange_one(struct worker *worker, size_t number, struct exchange *exchange)
{
    struct run *run = worker->run;
    const struct trace *trace = run->plan->trace;
    int64_t begun_us = clock_monotonic_us();

    memset(exchange, 0, sizeof(*exchange));
    exchange->status = send_request(worker, trace->urls[trace->ids[number]], exchange);
    exchange->done = exchange->status != RPC_CLIENT_OK;
    while (!exchange->done && atomic_load(&run->status) == EX_OK)
        rpc_client_run(worker->client, LOOK_AGAIN_US);
    if (!exchange->done)
        return false;
    if (is_final(exchange->status)) {
        if (end_run(run, exit_of_rpc(exchange->status)))
            output_complain("the server at %s was lost at request %zu of %zu: %s",
                            run->plan->server->name, number + 1, trace->request_count,
                            rpc_status_sentence(exchange->status));
        return false;
    }
    account(worker, number, exchange, clock_monotonic_us() - begun_us);
    if (exchange->status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_fetch_result, &exchange->result);
    /* After a broken record the connection is of no use, though the server may be. */
    if (exchange->status == RPC_CLIENT_BAD_REPLY) {
        rpc_client_close(worker->client);
        worker->client = server_connect(run->plan->server, run->plan->timeout_us);
        if (!worker->client && end_run(run, EX_UNAVAILABLE))
            output_complain("%s: %s", run->plan->server->name, strerror(errno));
    }
    return worker->client != NULL;
}

static void *
work(void *argument)
{
    struct worker *worker = argument;
    struct run *run = worker->run;
    struct exchange exchange;
    uint64_t one = 1;

    while (atomic_load(&run->status) == EX_OK) {
        size_t number = atomic_fetch_add(&run->next, 1);

        if (number >= run->plan->trace->request_count || !exchange_one(worker, number, &exchange))
            break;
    }
    /* Ends a request that is still under way; `exchange` must be there for it. */
    rpc_client_close(worker->client);
    worker->client = NULL;
    atomic_fetch_sub(&run->working, 1);
    if (write(run->ended, &one, sizeof(one)) < 0)
        return NULL; /* only a full counter, which wakes as well */
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Waits for the threads, shows their progress, and ends the run at a signal. */
static void
wait_for_threads(struct run *run)
{
    struct pollfd wait[] = {{.fd = run->ended, .events = POLLIN},
                            {.fd = run->plan->signals, .events = POLLIN}};
    struct progress progress;
    char label[32] = "replay";

    if (run->plan->runs > 1)
        snprintf(label, sizeof(label), "run %u/%u", run->plan->run, run->plan->runs);
    progress_begin(&progress, label, run->plan->trace->request_count);
    while (atomic_load(&run->working) != 0) {
        uint64_t count;

        poll(wait, 2, progress.shown ? 200 : -1);
        if ((wait[0].revents & POLLIN) && read(run->ended, &count, sizeof(count)) < 0)
            continue;
        if ((wait[1].revents & POLLIN) && interrupt_came())
            end_run(run, EXIT_INTERRUPTED);
        if (atomic_load(&run->status) == EX_OK)
            progress_draw(&progress, atomic_load(&run->finished));
        else
            progress_clear(&progress);
    }
    progress_clear(&progress);
}

/* Connects first, so that a server that takes no more connections is told before anything is sent.
 */
static bool
connect_all(struct worker *workers, const struct replay_plan *plan)
{
    for (unsigned i = 0; i < plan->jobs; i++) {
        workers[i].client = server_connect(plan->server, plan->timeout_us);
        if (!workers[i].client) {
            output_complain("%s: connection %u of %u: %s", plan->server->name, i + 1, plan->jobs,
                            strerror(errno));
            return false;
        }
    }
    return true;
}

static void
sum_up(const struct run *run, const struct worker *workers, struct replay_result *result)
{
    size_t count = 0;

    for (unsigned i = 0; i < run->plan->jobs; i++) {
        const struct replay_result *tally = &workers[i].tally;

        result->requests += tally->requests;
        result->evictions += tally->evictions;
        result->bytes += tally->bytes;
        result->bytes_hit += tally->bytes_hit;
        for (int outcome = 0; outcome < REPLAY_OUTCOMES; outcome++)
            result->outcomes[outcome] += tally->outcomes[outcome];
    }
    for (size_t i = 0; i < run->plan->trace->request_count; i++)
        if (run->times[i] != 0)
            run->times[count++] = run->times[i];
    statistics_of_times(run->times, count, &result->times);
}

static void
report_failures(const struct worker *workers, unsigned jobs, struct replay_result *result)
{
    const struct worker *first = NULL;

    for (unsigned i = 0; i < jobs; i++)
        if (workers[i].failed && (!first || workers[i].failed < first->failed))
            first = &workers[i];
    result->failure_status = first ? first->failure_status : EX_OK;
    if (first)
        output_complain("%" PRIu64 " of %" PRIu64 " requests failed, the first was %s",
                        result->outcomes[REPLAY_FAILED], result->requests, first->failure);
}

static void
run_threads(struct run *run, struct worker *workers)
{
    unsigned started = 0;

    atomic_store(&run->working, run->plan->jobs);
    while (started < run->plan->jobs &&
           thread_start(&workers[started].thread, work, &workers[started]) == 0)
        started++;
    if (started < run->plan->jobs) {
        atomic_fetch_sub(&run->working, run->plan->jobs - started);
        if (end_run(run, EX_SOFTWARE))
            output_complain("only %u of %u threads could be started", started, run->plan->jobs);
    }
    wait_for_threads(run);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
}

int
replay_run(const struct replay_plan *plan, struct replay_result *result)
{
    struct run run = {.plan = plan};
    struct worker *workers = calloc(plan->jobs, sizeof(*workers));
    int status;

    memset(result, 0, sizeof(*result));
    run.ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    run.times = calloc(plan->trace->request_count, sizeof(*run.times));
    if (!workers || !run.times || run.ended < 0) {
        output_complain("out of memory or descriptors");
        status = EX_SOFTWARE;
    } else if (!connect_all(workers, plan)) {
        status = EX_UNAVAILABLE;
    } else {
        int64_t begun_us = clock_monotonic_us();

        for (unsigned i = 0; i < plan->jobs; i++)
            workers[i].run = &run;
        run_threads(&run, workers);
        result->elapsed_us = clock_monotonic_us() - begun_us;
        sum_up(&run, workers, result);
        report_failures(workers, plan->jobs, result);
        status = atomic_load(&run.status);
    }
    for (unsigned i = 0; workers && i < plan->jobs; i++)
        rpc_client_close(workers[i].client);
    if (run.ended >= 0)
        close(run.ended);
    free(run.times);
    free(workers);
    return status;
}
