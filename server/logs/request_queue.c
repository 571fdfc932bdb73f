#include "server/logs/request_queue.h"

#include <string.h>

#include "base/clock.h"

/* A request in a queue; method and URL follow. */
struct queued {
    int64_t time_us;
    int64_t duration_us;
    int64_t fetch_us;
    uint64_t bytes;
    const char *protocol, *outcome, *reason; /* static */
    struct access_client client;
    unsigned status;
    uint32_t method_len, user_len, url_len;
    char text[];
};

bool
request_queue_add(struct ring *queue, const struct access_entry *entry)
{
    struct span method = entry->http ? entry->http->method : span_str("GET");
    struct queued *queued = ring_reserve(queue, sizeof(*queued) + method.len +
                                                     entry->user.len + entry->url.len);

    if (!queued)
        return false;
    *queued = (struct queued){
        .time_us = clock_wall_us() - entry->us,
        .duration_us = entry->us,
        .fetch_us = entry->fetch_us,
        .bytes = entry->bytes,
        .protocol = entry->protocol,
        .outcome = entry->outcome,
        .reason = entry->reason,
        .client = access_client_of(entry->peer),
        .status = entry->status,
        .method_len = (uint32_t)method.len,
        .user_len = (uint32_t)entry->user.len,
        .url_len = (uint32_t)entry->url.len,
    };
    span_put(span_put(span_put(queued->text, method), entry->user), entry->url);
    ring_publish(queue);
    return true;
}

bool
request_queue_read(struct ring *queue, struct request_row *row)
{
    size_t len;
    const struct queued *queued = ring_read(queue, &len);

    if (!queued)
        return false;
    *row = (struct request_row){
        .time_us = queued->time_us,
        .duration_us = queued->duration_us,
        .fetch_us = queued->fetch_us,
        .bytes = queued->bytes,
        .protocol = queued->protocol,
        .outcome = queued->outcome,
        .reason = queued->reason,
        .status = queued->status,
        .client = queued->client,
        .method = span_of(queued->text, queued->method_len),
        .user = span_of(queued->text + queued->method_len, queued->user_len),
        .url = span_of(queued->text + queued->method_len + queued->user_len, queued->url_len),
    };
    return true;
}
