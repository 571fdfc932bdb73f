#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "client/exit_status.h"
#include "client/get/get_output.h"
#include "client/get/get_progress.h"
#include "client/get/get_request.h"
#include "client/get/get_transport.h"
#include "cli/output.h"
#include "http/field.h"

/* Of answers that wait for an earlier one, this much is held; others are paused. */
#define MAX_HELD_BYTES (8u << 20)

/*
 * A connection is kept this long while nothing is read from it, then it is given up: it keeps the
 * server and the origin busy, and the server would end it some time.
 */
#define MAX_PAUSE_US ((int64_t)5000000)

/* A body that is not wanted is read to its end up to this size; otherwise the connection is given
 * up. */
#define MAX_SKIPPED_BYTES (64 << 10)

/* The waits of --retry: as in curl, but bounded, since a server closes idle connections. */
#define FIRST_DELAY_US ((int64_t)1000000)
#define MOST_DOUBLINGS 6u

struct get_queue {
    struct get_transport *transport;
    const struct get_options *options;
    const char *server;
    struct get_answer *answers;
    size_t count;
    size_t begun;
    size_t shown;      /* the index of the current answer, which is written as it arrives */
    size_t open;       /* fetches under way */
    size_t retrying;   /* answers that wait for a retry */
    size_t paused;     /* answers that the transport holds */
    size_t dropped;    /* answers whose fetch was given up until they are current */
    size_t held_bytes; /* of answers behind the current one */
    struct get_output output;
    struct get_progress progress;
    int status;
    bool over; /* no further URL is fetched: the server is lost, or the output cannot be written */
};

static bool
is_current(const struct get_queue *queue, const struct get_answer *answer)
{
    return answer == &queue->answers[queue->shown];
}

/* ---- reports of the transport ---------------------------------------------------------------- */

void
get_queue_message(struct get_answer *answer, char kind, struct span line)
{
    const struct get_options *options = answer->queue->options;

    if (!options->verbose || options->silent)
        return;
    /* What does not fit is left out. */
    buf_printf(&answer->messages, "%c%s%.*s\n", kind, line.len ? " " : "", (int)line.len,
               line.ptr ? line.ptr : "");
}

static bool
may_retry(const struct get_answer *answer)
{
    return answer->retries < answer->queue->options->retry && get_answer_is_transient(answer);
}

/* A gateway's 504 that no cache has stored: RFC 9111 section 5.2.1.7. */
static bool
is_not_cached(const struct get_answer *answer)
{
    return answer->queue->options->only_if_cached && answer->page.status == 504 &&
           answer->page.source != PROXY_HIT;
}

void
get_queue_head(struct get_answer *answer)
{
    static const struct get_failure not_cached = {
        .status = EXIT_NOT_CACHED,
        .code = "not_cached",
        .sentence = "the cache has no response that may be used, and --only-if-cached forbids "
                    "a request to the origin"};
    const struct get_options *options = answer->queue->options;

    answer->has_page = true;
    answer->head_us = clock_monotonic_us() - answer->begun_us;
    if (is_not_cached(answer))
        get_answer_fail(answer, &not_cached);
    answer->discards = answer->failure.status != EX_OK || may_retry(answer) ||
                       (options->fail && !options->json && get_answer_is_http_error(answer));
}

static enum get_take
hold(struct get_queue *queue, struct get_answer *answer, struct span piece)
{
    if (queue->held_bytes + piece.len <= MAX_HELD_BYTES &&
        buf_append(&answer->held, piece.ptr, piece.len)) {
        queue->held_bytes += piece.len;
        return GET_TAKEN;
    }
    if (!answer->paused) {
        answer->paused = true;
        answer->paused_us = clock_monotonic_us();
        queue->paused++;
    }
    return GET_PAUSE;
}

/* Prints the lines of --verbose about the current answer. */
static void
print_messages(struct get_queue *queue, struct get_answer *answer)
{
    struct span rest = buf_span(&answer->messages), line;

    if (rest.len)
        get_progress_clear(&queue->progress);
    while (http_next_line(&rest, &line))
        output_trace(line);
    buf_reset(&answer->messages);
}

static void
begin_output(struct get_queue *queue, struct get_answer *answer)
{
    print_messages(queue, answer);
    if (!queue->output.begun)
        get_output_begin(&queue->output, answer);
    if (queue->output.failed)
        queue->over = true;
}

enum get_take
get_queue_body(struct get_answer *answer, struct span piece)
{
    struct get_queue *queue = answer->queue;
    enum get_take take;

    if (answer->discards)
        return answer->page.length >= 0 && answer->page.length <= MAX_SKIPPED_BYTES ? GET_TAKEN
                                                                                    : GET_STOP;
    if (!is_current(queue, answer)) {
        take = hold(queue, answer, piece);
    } else {
        begin_output(queue, answer);
        take = get_output_body(&queue->output, answer, piece);
    }
    if (take == GET_TAKEN)
        answer->size += piece.len;
    return take;
}

static void
plan_retry(struct get_queue *queue, struct get_answer *answer, int64_t now_us)
{
    const struct get_options *options = queue->options;
    unsigned doublings = answer->retries < MOST_DOUBLINGS ? answer->retries : MOST_DOUBLINGS;
    int64_t delay_us = FIRST_DELAY_US << doublings;

    answer->retries++;
    get_progress_clear(&queue->progress);
    if (!options->silent)
        output_note("%s: %s; retry %u of %" PRIu64 " in %d s", answer->url,
                    answer->failure.status == EX_OK ? "the HTTP status may be temporary"
                                                    : answer->failure.sentence,
                    answer->retries, options->retry, (int)(delay_us / 1000000));
    get_answer_reset(answer);
    answer->again_us = now_us + delay_us;
    queue->retrying++;
}

/* True if some of it was written, which cannot be taken back. */
static bool
is_being_written(const struct get_queue *queue, const struct get_answer *answer)
{
    return is_current(queue, answer) && queue->output.begun;
}

void
get_queue_done(struct get_answer *answer, const struct get_failure *failure)
{
    struct get_queue *queue = answer->queue;
    int64_t now_us = clock_monotonic_us();

    queue->open--;
    if (answer->paused)
        queue->paused--;
    answer->paused = false;
    answer->us = now_us - answer->begun_us;
    if (failure && answer->failure.status == EX_OK)
        get_answer_fail(answer, failure);
    if (may_retry(answer) && !is_being_written(queue, answer)) {
        queue->held_bytes -= answer->held.len;
        plan_retry(queue, answer, now_us);
        return;
    }
    answer->done = true;
}

/* Is there an answer that waits, and may it be asked for again? */
static bool
may_drop(const struct get_queue *queue)
{
    const char *method = get_request_method(queue->options);

    return queue->paused != 0 && queue->transport->drop && queue->options->data.count == 0 &&
           (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
}

/*
 * Ends the fetches that were paused for too long, if they can be repeated. Nothing of them was
 * written.
 */
static void
drop_paused(struct get_queue *queue)
{
    int64_t before_us = clock_monotonic_us() - MAX_PAUSE_US;

    if (!may_drop(queue))
        return;
    for (size_t i = queue->shown + 1; i < queue->begun; i++) {
        struct get_answer *answer = &queue->answers[i];

        if (!answer->paused || answer->paused_us > before_us)
            continue;
        queue->transport->drop(queue->transport, answer);
        queue->open--;
        queue->paused--;
        queue->held_bytes -= answer->held.len;
        answer->paused = false;
        answer->dropped = true;
        queue->dropped++;
        get_answer_reset(answer);
        buf_free(&answer->messages);
    }
}

/* ---- in the order of the list ---------------------------------------------------------------- */

static void
begin(struct get_queue *queue, struct get_answer *answer)
{
    queue->open++;
    queue->transport->begin(queue->transport, answer);
}

/* Writes what is there of the current answer. */
static void
write_current(struct get_queue *queue, struct get_answer *answer)
{
    if (answer->dropped) {
        answer->dropped = false;
        queue->dropped--;
        begin(queue, answer);
    }
    print_messages(queue, answer);
    if (!answer->has_page || answer->discards)
        return;
    begin_output(queue, answer);
    if (answer->held.len) {
        queue->held_bytes -= answer->held.len;
        /* If no more is wanted, the rest of it meets the same answer. */
        get_output_body(&queue->output, answer, buf_span(&answer->held));
        buf_free(&answer->held);
    }
    if (answer->paused) {
        answer->paused = false;
        queue->paused--;
        queue->transport->resume(queue->transport, answer);
    }
}

/* The current answer is done. */
static void
finish_current(struct get_queue *queue, struct get_answer *answer)
{
    int one;

    get_progress_clear(&queue->progress);
    if (answer->failure.lost) {
        output_complain("%s: %s: %s", answer->url,
                        strcmp(answer->failure.code, "lost") == 0 ? "the server was lost"
                                                                  : answer->failure.sentence,
                        queue->server);
        queue->status = EX_UNAVAILABLE;
        queue->over = true;
        get_output_write_out(&queue->output, answer);
        return;
    }
    one = get_output_end(&queue->output, answer);
    queue->shown++;
    get_answer_free(answer);
    if (queue->output.failed)
        queue->over = true;
    if (one == EX_IOERR)
        queue->status = one;
    else if (queue->status == EX_OK)
        queue->status = one;
}

/* Writes what is next in order. */
static void
show_done(struct get_queue *queue)
{
    while (!queue->over && queue->shown < queue->begun) {
        struct get_answer *answer = &queue->answers[queue->shown];

        write_current(queue, answer);
        if (queue->over || !answer->done)
            break;
        finish_current(queue, answer);
    }
    if (queue->output.failed)
        queue->status = EX_IOERR;
}

/* After the server was lost: prints an object for each URL that has no answer. */
static void
put_the_rest(struct get_queue *queue)
{
    const struct get_failure *lost = &queue->answers[queue->shown].failure;

    for (size_t i = queue->shown; queue->options->json && i < queue->count; i++) {
        struct get_answer *answer = &queue->answers[i];

        if (!answer->done)
            get_answer_fail(answer, lost);
        if (get_output_put(&queue->output, answer, buf_span(&answer->held)) == EX_IOERR) {
            queue->status = EX_IOERR;
            return;
        }
    }
}

/* ---- fetches --------------------------------------------------------------------------------- */

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
            begin(queue, answer);
        }
    }
    return next_us;
}

static bool
may_begin(const struct get_queue *queue)
{
    if (queue->begun == queue->count || queue->open >= queue->options->jobs)
        return false;
    return queue->begun == queue->shown ||
           (queue->paused == 0 && queue->dropped == 0 && queue->held_bytes < MAX_HELD_BYTES);
}

static void
begin_next(struct get_queue *queue)
{
    while (may_begin(queue)) {
        struct get_answer *answer = &queue->answers[queue->begun++];

        answer->begun_us = clock_monotonic_us();
        begin(queue, answer);
    }
}

/* Waits for an answer, a retry, or the next change of the progress line. */
static void
wait_for_answer(struct get_queue *queue, int64_t until_us)
{
    const struct get_answer *current = &queue->answers[queue->shown];
    int64_t left_us = until_us == INT64_MAX ? INT64_MAX : until_us - clock_monotonic_us();
    int64_t draw_us = get_progress_update(&queue->progress, current, queue->count);

    if (current->done || left_us < 0)
        left_us = 0;
    queue->transport->run(queue->transport, left_us < draw_us ? left_us : draw_us);
}

/* When drop_paused() has something to do. */
static int64_t
pause_due(const struct get_queue *queue)
{
    int64_t due_us = INT64_MAX;

    for (size_t i = queue->shown + 1; may_drop(queue) && i < queue->begun; i++) {
        const struct get_answer *answer = &queue->answers[i];

        if (answer->paused && answer->paused_us + MAX_PAUSE_US < due_us)
            due_us = answer->paused_us + MAX_PAUSE_US;
    }
    return due_us;
}

/* The output of the current page blocks. */
static void
keep_current(void *context)
{
    struct get_queue *queue = context;
    struct get_transport *transport = queue->transport;

    if (transport->keep)
        transport->keep(transport, &queue->answers[queue->shown]);
}

static void
run(struct get_queue *queue)
{
    while (show_done(queue), !queue->over && queue->shown < queue->count) {
        int64_t retry_us, pause_us;

        begin_next(queue);
        drop_paused(queue);
        retry_us = retry_due(queue);
        pause_us = pause_due(queue);
        wait_for_answer(queue, retry_us < pause_us ? retry_us : pause_us);
    }
    get_progress_clear(&queue->progress);
}

int
get_run(struct get_transport **transport, const char *server, const struct get_options *options,
        const struct url_list *urls)
{
    static const struct get_failure no_memory = {
        .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
    struct get_queue queue = {.transport = *transport,
                              .options = options,
                              .server = server,
                              .count = urls->count,
                              .status = EX_OK};

    queue.answers = calloc(urls->count, sizeof(*queue.answers));
    if (!queue.answers) {
        output_complain("out of memory");
        return get_fail(&no_memory, options, urls);
    }
    for (size_t i = 0; i < urls->count; i++) {
        get_answer_init(&queue.answers[i], urls->urls[i], i + 1);
        queue.answers[i].queue = &queue;
    }
    get_output_init(&queue.output, options);
    queue.output.blocked = keep_current;
    queue.output.context = &queue;
    get_progress_init(&queue.progress, options);
    run(&queue);
    queue.transport->close(queue.transport);
    *transport = NULL;
    if (queue.over && !queue.output.failed)
        put_the_rest(&queue);
    get_output_free(&queue.output);
    for (size_t i = queue.shown; i < urls->count; i++)
        get_answer_free(&queue.answers[i]);
    free(queue.answers);
    return queue.status;
}

int
get_fail(const struct get_failure *failure, const struct get_options *options,
         const struct url_list *urls)
{
    size_t count = urls->count ? urls->count : 1;
    struct get_output output;
    int status = failure->status;

    get_output_init(&output, options);
    for (size_t i = 0; options->json && i < count && status != EX_IOERR; i++) {
        struct get_answer answer;

        get_answer_init(&answer, urls->count ? urls->urls[i] : NULL, i + 1);
        get_answer_fail(&answer, failure);
        if (get_output_put(&output, &answer, span_of(NULL, 0)) == EX_IOERR)
            status = EX_IOERR;
        get_answer_free(&answer);
    }
    get_output_free(&output);
    return status;
}
