#include "server/prober.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "origins/origin_probe.h"

struct probe {
    TAILQ_ENTRY(probe) link;
    struct prober *prober;
    struct shared *config; /* a reference: of the row's */
    struct origin_route *route;
    unsigned member;
    uint64_t fetch;
    int64_t begun_us;
    unsigned status; /* the fetcher's thread's; 0: there is no response yet */
};

/* ---- the fetcher's calls --------------------------------------------------------------------- */

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    ((struct probe *)context)->status = head->status;
    return FETCH_CONTINUE;
}

static enum fetch_flow
drop_body(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return FETCH_CONTINUE;
}

static void
free_probe(struct probe *probe)
{
    struct prober *prober = probe->prober;

    pthread_mutex_lock(&prober->lock);
    TAILQ_REMOVE(&prober->probes, probe, link);
    pthread_mutex_unlock(&prober->lock);
    shared_release(&probe->config);
    free(probe);
}

static void
done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct probe *probe = context;
    const char *reason = NULL;
    char text[64];

    (void)total_us;
    if (error == FETCH_CANCELLED)
        reason = "a probe had no response in time";
    else if (error)
        reason = sentence;
    if (!reason && !origin_probe_accepts(probe->route, probe->status)) {
        snprintf(text, sizeof(text), "the status of a probe is %u", probe->status);
        reason = text;
    }
    /* What our own bounds end says nothing of the member. */
    if (error == FETCH_STOPPING || error == FETCH_OVERLOADED || error == FETCH_DISPLACED)
        reason = NULL;
    origin_probe_end(probe->route, probe->member, clock_monotonic_us(), reason);
    free_probe(probe);
}

static const struct fetch_sink sink = {.head = take_head, .body = drop_body, .done = done};

/* ---- the main thread ------------------------------------------------------------------------- */

/* The URL that is probed: the member's with the path instead of what is behind the authority. */
static const struct request *
make_request(struct prober *prober, const struct origin_route *route, unsigned member)
{
    const struct request asked = {.method = HTTP_GET,
                                  .method_name = {.ptr = "GET", .len = 3},
                                  .flags = REQUEST_CONFIGURED};
    char url[ORIGIN_ROUTE_URL];
    struct span rest, authority = origin_route_client(route->members[member].url, &rest);
    char *end = url;

    if (authority.len + route->probes.path.len > sizeof(url))
        return NULL;
    end = span_put(span_put(end, authority), route->probes.path);
    return request_keep(&asked, span_of(url, (size_t)(end - url)), prober->client,
                        &prober->service->memory);
}

/* Without memory the member is probed later. */
static void
send_probe(struct prober *prober, struct config *config, struct origin_route *route,
           unsigned member, int64_t now_us)
{
    const struct request *request = make_request(prober, route, member);
    struct probe *probe = request ? calloc(1, sizeof(*probe)) : NULL;

    if (probe) {
        *probe = (struct probe){.prober = prober,
                                .config = shared_retain(&config->rules.shared),
                                .route = route,
                                .member = member,
                                .begun_us = now_us};
        pthread_mutex_lock(&prober->lock);
        TAILQ_INSERT_TAIL(&prober->probes, probe, link);
        pthread_mutex_unlock(&prober->lock);
    }
    if (!probe ||
        !fetcher_submit(prober->service->fetcher, request, &sink, probe, &probe->fetch)) {
        origin_probe_end(route, member, now_us, NULL);
        if (probe)
            free_probe(probe);
    }
    request_release(&request);
}

static void
cancel_late(struct prober *prober, int64_t now_us)
{
    const struct probe *probe;

    pthread_mutex_lock(&prober->lock);
    TAILQ_FOREACH(probe, &prober->probes, link)
    if (now_us - probe->begun_us > ORIGIN_PROBE_TIMEOUT_US)
        fetcher_cancel(prober->service->fetcher, probe->fetch);
    pthread_mutex_unlock(&prober->lock);
}

bool
prober_look(struct prober *prober)
{
    struct config *config = service_config(prober->service);
    const int64_t now_us = clock_monotonic_us();
    bool any = false;

    cancel_late(prober, now_us);
    for (size_t i = 0; i < config->origins.count; i++) {
        struct origin_route *route = &config->origins.rows[i].route;

        for (unsigned n = 0; n < route->count; n++)
            if (origin_probe_begin(route, n, now_us))
                send_probe(prober, config, route, n, now_us);
        any = any || route->probes.path.len;
    }
    return any;
}

bool
prober_init(struct prober *prober, struct service *service)
{
    const struct clients_config config = {.inet_bits = CLIENT_INET_BITS,
                                          .inet6_bits = CLIENT_INET6_BITS};

    *prober = (struct prober){.service = service};
    TAILQ_INIT(&prober->probes);
    pthread_mutex_init(&prober->lock, NULL);
    prober->clients = clients_create(&config);
    prober->client =
        prober->clients ? clients_find_uid(prober->clients, 0, clock_monotonic_us()) : NULL;
    return prober->client != NULL;
}

void
prober_free(struct prober *prober)
{
    if (!prober->service)
        return;
    client_release(&prober->client);
    clients_destroy(prober->clients);
    pthread_mutex_destroy(&prober->lock);
    *prober = (struct prober){0};
}
