#include "server/config/reload_desk.h"

#include <signal.h>
#include <string.h>

void
reload_desk_init(struct reload_desk *desk)
{
    pthread_mutex_init(&desk->lock, NULL);
    desk->open = false;
    TAILQ_INIT(&desk->calls);
}

void
reload_desk_open(struct reload_desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    desk->main = pthread_self();
    desk->open = true;
    pthread_mutex_unlock(&desk->lock);
}

bool
reload_desk_leave(struct reload_desk *desk, struct reload_call *call)
{
    bool open;

    pthread_mutex_lock(&desk->lock);
    open = desk->open;
    if (open) {
        TAILQ_INSERT_TAIL(&desk->calls, call, link);
        pthread_kill(desk->main, SIGHUP);
    }
    pthread_mutex_unlock(&desk->lock);
    return open;
}

void
reload_desk_take(struct reload_desk *desk, struct reload_calls *calls)
{
    TAILQ_INIT(calls);
    pthread_mutex_lock(&desk->lock);
    TAILQ_CONCAT(calls, &desk->calls, link);
    pthread_mutex_unlock(&desk->lock);
}

void
reload_desk_answer(struct reload_calls *calls, bool done, const char *text)
{
    struct reload_call *call;

    while ((call = TAILQ_FIRST(calls))) {
        TAILQ_REMOVE(calls, call, link);
        call->done = done;
        call->text = strdup(text);
        net_worker_post(call->worker, &call->task);
    }
}

void
reload_desk_close(struct reload_desk *desk, const char *text)
{
    struct reload_calls calls;

    pthread_mutex_lock(&desk->lock);
    desk->open = false;
    pthread_mutex_unlock(&desk->lock);
    reload_desk_take(desk, &calls);
    reload_desk_answer(&calls, false, text);
}
