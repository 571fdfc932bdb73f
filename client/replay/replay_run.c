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
#include "client/replay/replay_worker.h"

/* Sends one request and waits for its answer. False when the run is over. */
static bool
exchange_one(struct replay_worker *worker, struct replay_exchange *exchange)
{
    struct replay_run *run = worker->run;
    bool reconnect = false;

    exchange->from_us = clock_monotonic_us();
    replay_worker_send(worker, exchange);
    while (!worker->done && atomic_load(&run->status) == EX_OK)
        rpc_client_run(worker->client, REPLAY_LOOK_AGAIN_US);
    if (!replay_worker_take_done(worker))
        return false;
    return replay_worker_account(worker, exchange, &reconnect) &&
           (!reconnect || replay_worker_reconnect(worker));
}

/* Sends each request after the previous answer: a closed loop. */
static void
send_after_answers(struct replay_worker *worker)
{
    struct replay_run *run = worker->run;
    struct replay_exchange exchange = {.number = 0};

    while (atomic_load(&run->status) == EX_OK) {
        exchange.number = atomic_fetch_add(&run->next, 1);
        if (exchange.number >= run->plan->trace->request_count || !exchange_one(worker, &exchange))
            break;
    }
    /* Ends a request in flight, which refers to `exchange`. */
    rpc_client_close(worker->client);
    page_free(&exchange.page);
    worker->client = NULL;
    worker->done = NULL;
}

static void *
work(void *argument)
{
    struct replay_worker *worker = argument;
    struct replay_run *run = worker->run;
    uint64_t one = 1;

    if (run->plan->rate > 0)
        replay_worker_follow_schedule(worker);
    else
        send_after_answers(worker);
    atomic_fetch_sub(&run->working, 1);
    if (write(run->ended, &one, sizeof(one)) < 0)
        return NULL; /* only a full counter, which wakes as well */
    return NULL;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Waits for the threads, shows their progress, and ends the run at a signal. */
static void
wait_for_threads(struct replay_run *run)
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
            replay_end_run(run, EXIT_INTERRUPTED);
        if (atomic_load(&run->status) == EX_OK)
            progress_draw(&progress, atomic_load(&run->finished));
        else
            progress_clear(&progress);
    }
    progress_clear(&progress);
}

/* Connects before the first request, so that a refused connection is reported at once. */
static bool
connect_all(struct replay_worker *workers, const struct replay_plan *plan)
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
add_departures(struct replay_result *result, const struct replay_result *tally)
{
    if (tally->sent == 0)
        return;
    if (result->sent == 0 || tally->first_sent_us < result->first_sent_us)
        result->first_sent_us = tally->first_sent_us;
    if (tally->last_sent_us > result->last_sent_us)
        result->last_sent_us = tally->last_sent_us;
    if (tally->max_behind_us > result->max_behind_us)
        result->max_behind_us = tally->max_behind_us;
    result->sent += tally->sent;
    result->late += tally->late;
}

static void
sum_up(const struct replay_run *run, const struct replay_worker *workers,
       struct replay_result *result)
{
    size_t count = 0;

    for (unsigned i = 0; i < run->plan->jobs; i++) {
        const struct replay_result *tally = &workers[i].tally;

        result->requests += tally->requests;
        result->evictions += tally->evictions;
        result->bytes += tally->bytes;
        result->bytes_hit += tally->bytes_hit;
        result->bytes_coalesced += tally->bytes_coalesced;
        add_departures(result, tally);
        for (int outcome = 0; outcome < REPLAY_OUTCOMES; outcome++)
            result->outcomes[outcome] += tally->outcomes[outcome];
    }
    for (size_t i = 0; i < run->plan->trace->request_count; i++)
        if (run->times[i] != 0)
            run->times[count++] = run->times[i];
    statistics_of_times(run->times, count, &result->times);
}

static void
report_failures(const struct replay_worker *workers, unsigned jobs, struct replay_result *result)
{
    const struct replay_worker *first = NULL;

    for (unsigned i = 0; i < jobs; i++)
        if (workers[i].failed && (!first || workers[i].failed < first->failed))
            first = &workers[i];
    result->failure_status = first ? first->failure_status : EX_OK;
    if (first)
        output_complain("%" PRIu64 " of %" PRIu64 " requests failed, the first was %s",
                        result->outcomes[REPLAY_FAILED], result->requests, first->failure);
}

static void
run_threads(struct replay_run *run, struct replay_worker *workers)
{
    unsigned started = 0;

    atomic_store(&run->working, run->plan->jobs);
    while (started < run->plan->jobs &&
           thread_start(&workers[started].thread, work, &workers[started]) == 0)
        started++;
    if (started < run->plan->jobs) {
        atomic_fetch_sub(&run->working, run->plan->jobs - started);
        if (replay_end_run(run, EX_SOFTWARE))
            output_complain("only %u of %u threads could be started", started, run->plan->jobs);
    }
    wait_for_threads(run);
    for (unsigned i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
}

int
replay_run(const struct replay_plan *plan, struct replay_result *result)
{
    struct replay_run run = {.plan = plan};
    struct replay_worker *workers = calloc(plan->jobs, sizeof(*workers));
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
        run.begun_us = clock_monotonic_us();
        for (unsigned i = 0; i < plan->jobs; i++)
            workers[i].run = &run;
        run_threads(&run, workers);
        result->elapsed_us = clock_monotonic_us() - run.begun_us;
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
