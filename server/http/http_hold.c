#include "server/http/http_hold.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "server/http/http_exchange.h"
#include "server/http/http_stream.h"
#include "server/peers/peer_news.h"

struct http_hold {
    struct peer_news_wait wait;
    struct http_exchange *x; /* NULL: it has ended */
    struct net_worker *worker;
    struct net_task task;
    void (*go_on)(struct http_exchange *x);
};

static void
end(struct net_task *task)
{
    struct http_hold *hold = container_of(task, struct http_hold, task);
    void (*go_on)(struct http_exchange * x) = hold->go_on;
    struct http_exchange *x = hold->x;

    free(hold);
    if (!x)
        return;
    x->hold = NULL;
    if (x->stage == HTTP_PENDING)
        go_on(x);
}

static void
done(struct peer_news_wait *wait)
{
    struct http_hold *hold = container_of(wait, struct http_hold, wait);

    net_worker_post(hold->worker, &hold->task);
}

bool
http_hold(struct http_exchange *x, void (*go_on)(struct http_exchange *x))
{
    struct http_hold *hold;

    if (!x->config->peers.rows.count)
        return false;
    hold = calloc(1, sizeof(*hold));
    if (!hold)
        return false;
    hold->wait.done = done;
    hold->x = x;
    hold->worker = http_stream_net_worker(&x->stream);
    hold->task.run = end;
    hold->go_on = go_on;
    if (!peer_news_wait(http_service_of(x)->service->news, &hold->wait)) {
        free(hold);
        return false;
    }
    x->hold = hold;
    return true;
}

void
http_hold_cancel(struct http_exchange *x)
{
    struct http_hold *hold = x->hold;

    x->hold = NULL;
    if (!hold)
        return;
    hold->x = NULL;
    if (peer_news_cancel(http_service_of(x)->service->news, &hold->wait))
        free(hold);
}
