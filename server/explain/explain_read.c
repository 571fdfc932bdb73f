#include "server/explain/explain_read.h"

#include "base/container_of.h"
#include "proxy/demand.h"
#include "proxy/filling.h"
#include "proxy/proxy_rules.h"
#include "proxy/sharing.h"
#include "store/source.h"

static void
notify(struct object_waiter *waiter)
{
    struct explain_read *read = container_of(waiter, struct explain_read, waiter);

    net_worker_post(read->worker, &read->task);
}

/* source_request.later: it is not filled at once. */
static void
await(void *context)
{
    ((struct explain_read *)context)->waiter.notify = notify;
}

/* What others may not have by the options in force is not used, and stays for the next request to
 * remove it. */
static enum http_reason
review(const struct source_review *by, struct source_head *head)
{
    const struct request request = {.rules = by->rules, .flags = by->flags};

    return sharing_review(by->context, &request, head) ? HTTP_REASON_MEMORY : HTTP_REASON_NONE;
}

void
explain_read_take(struct explain_read *read)
{
    if (object_waiter_take(&read->waiter) & WAITER_END)
        read->object = object_retain(read->waiter.object);
    object_waiter_clear(&read->waiter);
    read->stage = EXPLAIN_READ_DONE;
}

/* That of this daemon alone. The fill is as cache_lookup() has made it if it does not have it. */
static enum source_filling
fill_from_store(struct explain_read *read, struct exchange *x, struct cache_fill *fill)
{
    struct source *const *sources = x->proxy->config.sources;
    const struct source_request request = {
        demand_fields(x),
        proxy_largest_page(x->proxy, x->request),
        await,
        read,
        x->worker,
        {review, x->proxy, x->request->rules, x->request->flags},
    };
    enum source_filling filling = SOURCE_HAS_NOT;

    for (unsigned i = 0; sources[i] && filling == SOURCE_HAS_NOT; i++)
        if (!sources[i]->ops->is_shared)
            filling = sources[i]->ops->fill(sources[i], fill, &request);
    return filling;
}

void
explain_read_begin(struct explain_read *read, struct exchange *x, struct span variant)
{
    const struct cache_key key = cache_key_of_variant(x->url, variant);
    struct cache_found found;

    read->stage = EXPLAIN_READ_DONE;
    read->waiter = (struct object_waiter){.notify = object_waiter_ignore};
    if (cache_lookup(x->proxy->config.cache, &key,
                     &(struct cache_request){
                         .waiter = &read->waiter, .fill_size = origin_fill_size(), .pass = true},
                     x->as_of_us, &found) != CACHE_PASS)
        return;
    switch (fill_from_store(read, x, found.fill)) {
    case SOURCE_FILLED:
        explain_read_take(read);
        break;
    case SOURCE_FILLS:
        read->stage = EXPLAIN_READ_ASKED;
        break;
    case SOURCE_HAS_NOT: /* perhaps not until it was to be read later */
        read->waiter.notify = object_waiter_ignore;
        cache_fill_fail(found.fill, 0, "", origin_fill_is_any, NULL);
        cache_fill_free(found.fill);
        explain_read_take(read);
        break;
    }
}

void
explain_read_end(struct explain_read *read)
{
    object_release(&read->object);
}
