/* The stages of a request with their time limits, and its end. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fetch/deadline.h"
#include "fetch/request_parts.h"

void
request_update_stats(struct fetch_loop *loop)
{
    atomic_store_explicit(&loop->active, queue_active(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->waiting, queue_opening(loop->queue), memory_order_relaxed);
    atomic_store_explicit(&loop->queued, queue_queued(loop->queue), memory_order_relaxed);
}

void
request_leave_paused(struct request *r)
{
    if (r->paused)
        TAILQ_REMOVE(&r->loop->paused, r, paused_link);
    r->paused = false;
}

void
request_end_hold(struct request *r)
{
    if (!r->held)
        return;
    r->held = false;
    r->held_us += clock_monotonic_us() - r->held_since_us;
    memory_uncharge(r->loop->settings.config.memory, MEMORY_FETCHES, FETCH_BUFFER_BYTES);
}

void
request_finish(struct request *r, enum fetch_error error, const char *sentence)
{
    struct fetch_loop *loop = r->loop;

    pthread_mutex_lock(&loop->lock);
    registry_remove(&loop->registry, r->id);
    if (r->signalled) {
        TAILQ_REMOVE(&loop->signals, r, signal_link);
        loop->signal_count--;
    }
    pthread_mutex_unlock(&loop->lock);
    timers_disarm(&loop->timers, &r->timer);
    resolver_cancel(loop->resolver, &r->query);
    resolved_release(&r->query.resolved);
    queue_remove(loop->queue, &r->item);
    TAILQ_REMOVE(&loop->all, r, link);
    request_leave_paused(r);
    request_update_stats(loop);
    r->sink.done(r->context, error, error ? sentence : "", clock_monotonic_us() - r->submitted_us);
    transfer_clear(&r->transfer, loop->multi);
    target_free(&r->target);
    request_end_hold(r);
    if (r->charged)
        memory_uncharge(loop->settings.config.memory, MEMORY_FETCHES, r->charged);
    for (unsigned i = 0; i < r->redirects; i++)
        free(r->visited[i]);
    free(r->visited);
    free(r);
}

void
request_finish_with(struct request *r, enum fetch_error error, const char *format, ...)
{
    char sentence[SENTENCE_MAX];
    va_list args;

    va_start(args, format);
    sentence_format(sentence, sizeof(sentence), format, args);
    va_end(args);
    request_finish(r, error, sentence);
}

void
request_deny(struct request *r, const char *reason)
{
    if (r->redirects)
        request_finish_with(r, FETCH_BAD_REDIRECT, "the redirect was %s", reason);
    else
        request_finish(r, FETCH_DENIED, reason);
}

/* ---- time limits --------------------------------------------------------------------- */

void
request_arm_timer(struct request *r)
{
    const char *what;

    timers_arm(&r->loop->timers, &r->timer, deadline_find(r, &what));
}

void
request_enter_stage(struct request *r, enum request_stage stage)
{
    r->stage = stage;
    r->stage_since_us = clock_monotonic_us();
    request_arm_timer(r);
}
