#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

#include <inttypes.h>

#include "base/clock.h"
#include "client/exit_status.h"
#include "client/get.h"
#include "cli/output.h"

/* Answers wait for earlier ones; while more bytes than this wait, no fetch is begun. */
#define MAX_WAITING_BYTES (64u << 20)

/* The waits of --retry: as in curl, but bounded, since a server closes idle connections. */
#define FIRST_DELAY_US ((int64_t)1000000)
#define MOST_DOUBLINGS 6u

struct get_queue {
    struct rpc_client *client;
    const struct get_options *options;
    struct get_answer *answers;
    size_t count;
    size_t begun;
    size_t shown;
    size_t retrying;      /* answers that wait for a retry */
    size_t waiting_bytes; /* of answers that are not shown yet */
    bool lost;            /* the connection to the server, by the answer at `shown` */
};

static void
free_result(struct get_answer *answer)
{
    if (answer->rpc != RPC_CLIENT_OK)
        return;
    if (answer->api == 1)
        xdr_free((xdrproc_t)xdr_webpageResponse, &answer->result.v1);
    else
        xdr_free((xdrproc_t)xdr_proxy_fetch_result, &answer->result.v2);
    memset(&answer->result, 0, sizeof(answer->result));
}

static void
plan_retry(struct get_answer *answer, int64_t now_us)
{
    const struct get_options *options = answer->queue->options;
    unsigned doublings = answer->retries < MOST_DOUBLINGS ? answer->retries : MOST_DOUBLINGS;
    int64_t delay_us = FIRST_DELAY_US << doublings;

    answer->retries++;
    if (!options->silent)
        output_note("%s: %s; retry %u of %" PRIu64 " in %d s", answer->url,
                    get_answer_ok(answer) ? "the HTTP status may be temporary"
                                          : get_answer_sentence(answer),
                    answer->retries, options->retry, (int)(delay_us / 1000000));
    free_result(answer);
    answer->again_us = now_us + delay_us;
    answer->queue->retrying++;
}

static void
note_done(void *context, enum rpc_client_status status, void *result)
{
    struct get_answer *answer = context;
    int64_t now_us = clock_monotonic_us();

    (void)result;
    answer->rpc = status;
    answer->us = now_us - answer->begun_us;
    if (answer->retries < answer->queue->options->retry && get_answer_is_transient(answer)) {
        plan_retry(answer, now_us);
        return;
    }
    answer->done = true;
    answer->queue->waiting_bytes += get_answer_body(answer).len;
}

static enum rpc_client_status
call(struct get_queue *queue, struct get_answer *answer)
{
    const struct get_options *options = queue->options;
    char *url = (char *)(uintptr_t)answer->url; /* rpcgen knows no const */

    if (options->api == 1)
        return rpc_client_call(queue->client, PROXY_FETCHPROG, PROXY_FETCHVERS, PROXY_FETCH,
                               (xdrproc_t)xdr_wrapstring, &url, (xdrproc_t)xdr_webpageResponse,
                               &answer->result.v1, options->server.timeout_us, note_done, answer);

    proxy_fetch_args args = {
        .url = {.proxy_url_val = url, .proxy_url_len = (u_int)strlen(url)},
        .headers = {.proxy_headers_val = options->headers.data,
                    .proxy_headers_len = (u_int)options->headers.len},
        .flags = options->no_store ? PROXY_FLAG_NO_STORE : 0,
    };

    return rpc_client_call(queue->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET,
                           (xdrproc_t)xdr_proxy_fetch_args, &args,
                           (xdrproc_t)xdr_proxy_fetch_result, &answer->result.v2,
                           options->server.timeout_us, note_done, answer);
}

static void
begin(struct get_queue *queue)
{
    struct get_answer *answer = &queue->answers[queue->begun++];

    answer->begun_us = clock_monotonic_us();
    answer->rpc = call(queue, answer);
    answer->done = answer->rpc != RPC_CLIENT_OK;
}

/* Begins the retries that are due. Returns when the next one is; INT64_MAX: there is none. */
static int64_t
retry_due(struct get_queue *queue)
{
    int64_t next_us = INT64_MAX, now_us = clock_monotonic_us();

    for (size_t i = queue->shown; queue->retrying != 0 && i < queue->begun; i++) {
        struct get_answer *answer = &queue->answers[i];

        if (answer->again_us > now_us) {
            next_us = answer->again_us < next_us ? answer->again_us : next_us;
        } else if (answer->again_us != 0) {
            answer->again_us = 0;
            queue->retrying--;
            answer->rpc = call(queue, answer);
            answer->done = answer->rpc != RPC_CLIENT_OK;
        }
    }
    return next_us;
}

/* Waits for an answer, or until `until_us`. */
static void
wait_for_answer(struct get_queue *queue, int64_t until_us)
{
    int64_t left_us = until_us == INT64_MAX ? INT64_MAX : until_us - clock_monotonic_us();
    const struct timespec pause = {.tv_sec = left_us / 1000000,
                                   .tv_nsec = left_us % 1000000 * 1000};

    if (rpc_client_pending(queue->client) != 0)
        rpc_client_run(queue->client, left_us > 0 ? left_us : 0);
    else if (until_us != INT64_MAX && left_us > 0)
        nanosleep(&pause, NULL);
}

static void
free_answer(struct get_answer *answer)
{
    if (!answer->done)
        return;
    free_result(answer);
    answer->rpc = RPC_CLIENT_LOST;
}

/* After the server was lost: prints an object for each URL that has no answer. */
static int
put_the_rest(struct get_queue *queue, size_t from)
{
    for (size_t i = from; queue->options->json && i < queue->count; i++) {
        struct get_answer *answer = &queue->answers[i];

        if (!answer->done) {
            answer->rpc = RPC_CLIENT_LOST;
            answer->done = true;
        }
        if (get_put(answer, queue->options) == EX_IOERR)
            return EX_IOERR;
    }
    return EX_UNAVAILABLE;
}

/* Shows what is next in order and done. False when nothing more should be: *status says why. */
static bool
show_done(struct get_queue *queue, const struct server *server, int *status)
{
    while (queue->shown < queue->begun && queue->answers[queue->shown].done) {
        struct get_answer *answer = &queue->answers[queue->shown++];
        int one;

        if (answer->rpc == RPC_CLIENT_LOST) {
            output_complain("%s: the server was lost: %s", answer->url, server->name);
            queue->lost = true;
            queue->shown--;
            return false;
        }
        one = get_show(answer, queue->options);
        queue->waiting_bytes -= get_answer_body(answer).len;
        free_answer(answer);
        if (one == EX_IOERR) {
            *status = one;
            return false;
        }
        if (*status == EX_OK)
            *status = one;
    }
    return true;
}

static bool
may_begin(const struct get_queue *queue)
{
    if (queue->begun == queue->count || rpc_client_pending(queue->client) >= queue->options->jobs)
        return false;
    return queue->begun == queue->shown || queue->waiting_bytes < MAX_WAITING_BYTES;
}

int
get_run(struct rpc_client **client, const struct server *server, const struct get_options *options,
        const struct url_list *urls)
{
    static const struct get_failure no_memory = {EX_SOFTWARE, "no_memory", "out of memory"};
    struct get_queue queue = {.client = *client, .options = options, .count = urls->count};
    int status = EX_OK;

    queue.answers = calloc(urls->count, sizeof(*queue.answers));
    if (!queue.answers) {
        output_complain("out of memory");
        return get_fail(&no_memory, options, urls);
    }
    for (size_t i = 0; i < urls->count; i++) {
        queue.answers[i].queue = &queue;
        queue.answers[i].url = urls->urls[i];
        queue.answers[i].number = i + 1;
        queue.answers[i].api = options->api;
    }
    while (show_done(&queue, server, &status) && queue.shown < queue.count) {
        while (may_begin(&queue))
            begin(&queue);
        wait_for_answer(&queue, retry_due(&queue));
    }
    /* Ends the calls in flight; their answers are marked as lost. */
    rpc_client_close(queue.client);
    *client = NULL;
    if (queue.lost)
        status = put_the_rest(&queue, queue.shown);
    for (size_t i = 0; i < queue.begun; i++)
        free_answer(&queue.answers[i]);
    free(queue.answers);
    return status;
}
