#include "proxy/exchange_wait.h"

#include <errno.h>

#include "base/container_of.h"
#include "proxy/demand.h"

void
exchange_uncount(struct exchange *x)
{
    if (x->counted)
        client_share_give_back(&x->proxy->waiting, atomic_load(&x->waiter.client), x->counted);
    x->counted = 0;
}

/* All call this under a lock that leaving takes, so that x is there until they have returned. */
static void
wake(struct exchange *x, unsigned by)
{
    if (atomic_fetch_or(&x->wakes, by) == 0)
        x->front->wake(x);
}

void
exchange_wake_by_source(struct exchange *x)
{
    wake(x, WOKEN_BY_SOURCE);
}

void
exchange_notify(struct object_waiter *waiter)
{
    wake(container_of(waiter, struct exchange, waiter.base), WOKEN_BY_CACHE);
}

static void
wake_by_relay(void *context)
{
    wake(context, WOKEN_BY_RELAY);
}

bool
exchange_leave(struct exchange *x, enum failure why, const char *sentence)
{
    x->stage = EXCHANGE_ENDS;
    x->ending = why;
    x->sentence = span_str(sentence);
    cache_leave(&x->waiter.base);
    relay_leave(&x->relay);
    return atomic_load(&x->wakes) == 0;
}

/* The client, of which a hit knows nothing where many share a connection. NULL with errno. */
static struct client *
find_client(struct exchange *x)
{
    struct client *client = x->request->client;

    errno = ENOMEM;
    if (!client) {
        client = x->front->client(x);
        atomic_store(&x->waiter.client, client);
    }
    return client;
}

bool
exchange_keep(struct exchange *x, struct span url, size_t beside)
{
    struct client *client = find_client(x);
    const struct request *before = x->kept;
    size_t bytes;

    (void)demand_fields(x);
    bytes = beside + request_size(x->request, url);
    if (!client || !client_share_take(&x->proxy->waiting, client, bytes))
        return false;
    x->counted = bytes;
    if (before && before->url.len >= url.len)
        return true;
    x->kept = request_keep(x->request, url, client, x->proxy->config.account);
    if (!x->kept) {
        x->kept = before;
        return false;
    }
    for (unsigned i = 0; before && i < REQUEST_MARKS; i++)
        request_note_mark(x->kept, i, request_mark(before, i));
    x->request = x->kept;
    request_release(&before);
    return true;
}

bool
exchange_make_relay(struct exchange *x)
{
    const struct proxy_config *config = &x->proxy->config;

    x->relay = relay_create(&(struct relay_config){.origin = &config->origin,
                                                   .account = config->account,
                                                   .has_body = request_has_body(x->request),
                                                   .wake = wake_by_relay,
                                                   .context = x});
    return x->relay != NULL;
}
