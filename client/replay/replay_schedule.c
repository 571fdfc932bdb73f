/*
 * A replay on a schedule: request N is sent N/rate seconds after the start, whether or not earlier
 * ones were answered (an open loop). A closed loop sends less when the server is slow, and so hides
 * the time that requests would have waited; here response times begin at the scheduled time.
 */
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "cli/output.h"
#include "client/replay/replay_worker.h"

/* Requests of a connection in flight; further ones are sent late. Bounds memory. */
#define MAX_UNDER_WAY 4096u

/* A request that is sent this long after its scheduled time is late. */
#define LATE_US 1000

struct schedule {
    struct replay_worker *worker;
    size_t next;   /* the request that this worker sends next, */
    bool has_next; /* if there is one */
    size_t under_way;
};

static void
take_next(struct schedule *schedule)
{
    struct replay_run *run = schedule->worker->run;

    schedule->next = atomic_fetch_add(&run->next, 1);
    schedule->has_next = schedule->next < run->plan->trace->request_count;
}

static int64_t
due_us(const struct schedule *schedule)
{
    const struct replay_run *run = schedule->worker->run;

    return run->begun_us + (int64_t)((double)schedule->next * 1e6 / run->plan->rate);
}

static void
note_departure(struct replay_result *tally, int64_t due, int64_t now_us)
{
    uint64_t behind_us = now_us > due ? (uint64_t)(now_us - due) : 0;

    if (tally->sent++ == 0)
        tally->first_sent_us = now_us;
    tally->last_sent_us = now_us;
    tally->late += behind_us > LATE_US;
    if (behind_us > tally->max_behind_us)
        tally->max_behind_us = behind_us;
}

/* Sends what is due. False without memory, which ends the run. */
static bool
send_due(struct schedule *schedule)
{
    struct replay_worker *worker = schedule->worker;

    while (schedule->has_next && schedule->under_way < MAX_UNDER_WAY) {
        int64_t due = due_us(schedule), now_us = clock_monotonic_us();
        struct replay_exchange *exchange;

        if (due > now_us)
            break;
        exchange = calloc(1, sizeof(*exchange));
        if (!exchange) {
            if (replay_end_run(worker->run, EX_SOFTWARE))
                output_complain("out of memory");
            return false;
        }
        note_departure(&worker->tally, due, now_us);
        exchange->number = schedule->next;
        exchange->from_us = due;
        schedule->under_way++;
        replay_worker_send(worker, exchange);
        take_next(schedule);
    }
    return true;
}

/* Waits for an answer or the next departure. */
static void
wait_for_event(const struct schedule *schedule)
{
    struct rpc_client *client = schedule->worker->client;
    int64_t wait_us = REPLAY_LOOK_AGAIN_US;

    if (schedule->has_next && schedule->under_way < MAX_UNDER_WAY) {
        int64_t left_us = due_us(schedule) - clock_monotonic_us();

        wait_us = left_us < 0 ? 0 : left_us < wait_us ? left_us : wait_us;
    }
    if (rpc_client_pending(client) != 0) {
        rpc_client_run(client, wait_us);
    } else if (!schedule->worker->done) {
        const struct timespec pause = {.tv_nsec = wait_us * 1000};

        nanosleep(&pause, NULL);
    }
}

/* False when the run is over. */
static bool
take_answers(struct schedule *schedule)
{
    struct replay_worker *worker = schedule->worker;
    struct replay_exchange *exchange;
    bool reconnect = false, goes_on = true;

    while (goes_on && (exchange = replay_worker_take_done(worker))) {
        goes_on = replay_worker_account(worker, exchange, &reconnect);
        schedule->under_way--;
        free(exchange);
    }
    return goes_on && (!reconnect || replay_worker_reconnect(worker));
}

void
replay_worker_follow_schedule(struct replay_worker *worker)
{
    struct schedule schedule = {.worker = worker};
    struct replay_exchange *exchange;

    take_next(&schedule);
    while ((schedule.has_next || schedule.under_way != 0) &&
           atomic_load(&worker->run->status) == EX_OK && send_due(&schedule)) {
        wait_for_event(&schedule);
        if (!take_answers(&schedule))
            break;
    }
    /* Requests in flight end here and are not counted. */
    rpc_client_close(worker->client);
    worker->client = NULL;
    while ((exchange = replay_worker_take_done(worker))) {
        page_free(&exchange->page);
        free(exchange);
    }
}
