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
    bool looks_up; /* its name, and sends nothing */
    uint64_t fetch;
    _Atomic int64_t begun_us; /* when its turn came; 0: it waits for that */
    unsigned status;          /* the fetcher's thread's; 0: there is no response yet */
};

#define MOST_BODY 65536 /* bytes of a body that is read, so that its connection can be kept */
#define MOST_BEGUN 64u  /* probes that begin in one look */

/* ---- the fetcher's calls --------------------------------------------------------------------- */

static void
begin(void *context)
{
    atomic_store(&((struct probe *)context)->begun_us, clock_monotonic_us());
}

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    ((struct probe *)context)->status = head->status;
    return head->content_length >= 0 && head->content_length <= MOST_BODY ? FETCH_CONTINUE
                                                                          : FETCH_ABORT;
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

/* A bound of the proxy's own that ends a fetch shows nothing about the member. */
static bool
is_of_member(enum fetch_error error, const struct probe *probe)
{
    return error != FETCH_STOPPING && error != FETCH_OVERLOADED && error != FETCH_DISPLACED &&
           error != FETCH_INTERNAL && atomic_load(&probe->begun_us);
}

static void
end_look_up(struct probe *probe, enum fetch_error error, const char *sentence)
{
    if (error == FETCH_RESOLVE_FAILED || error == FETCH_CONNECT_TIMED_OUT)
        origin_probe_unresolved(probe->route, probe->member, clock_monotonic_us(), sentence);
    free_probe(probe);
}

static void
done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    enum origin_probe_result result = ORIGIN_PROBE_UNKNOWN;
    struct probe *probe = context;
    char text[64];

    (void)total_us;
    if (probe->looks_up) {
        end_look_up(probe, error, sentence);
        return;
    }
    if (probe->status) {
        snprintf(text, sizeof(text), "the status of a probe is %u", probe->status);
        sentence = text;
        result = origin_probe_accepts(probe->route, probe->status) ? ORIGIN_PROBE_PASSED
                                                                   : ORIGIN_PROBE_FAILED;
    } else if (is_of_member(error, probe)) {
        result = ORIGIN_PROBE_FAILED;
        if (error == FETCH_CANCELLED)
            sentence = "a probe had no response in time";
    }
    origin_probe_end(probe->route, probe->member, clock_monotonic_us(), result, sentence);
    free_probe(probe);
}

static const struct fetch_sink sink = {
    .begin = begin, .head = take_head, .body = drop_body, .done = done};

/* ---- the main thread ------------------------------------------------------------------------- */

/* The URL that is probed: the member's with the path instead of what is behind the authority. */
static const struct request *
make_request(struct prober *prober, const struct origin_route *route, unsigned member,
             bool looks_up)
{
    const struct request asked = {.method = HTTP_GET,
                                  .method_name = {.ptr = "GET", .len = 3},
                                  .flags = REQUEST_CONFIGURED |
                                           (looks_up ? REQUEST_RESOLVE_ONLY : 0u)};
    char url[ORIGIN_ROUTE_URL];
    struct span rest, authority = origin_route_client(route->members[member].url, &rest);
    char *end = url;

    if (authority.len + route->probes.path.len > sizeof(url))
        return NULL;
    end = span_put(span_put(end, authority), route->probes.path);
    return request_keep(&asked, span_of(url, (size_t)(end - url)), prober->client,
                        &prober->service->memory);
}

/* A probe, or a look-up of its name. False: without memory. */
static bool
submit(struct prober *prober, struct config *config, const struct probe *asked)
{
    const struct request *request =
        make_request(prober, asked->route, asked->member, asked->looks_up);
    struct probe *probe = request ? calloc(1, sizeof(*probe)) : NULL;
    bool sent;

    if (probe) {
        *probe = *asked;
        probe->prober = prober;
        probe->config = shared_retain(&config->rules.shared);
        pthread_mutex_lock(&prober->lock);
        TAILQ_INSERT_TAIL(&prober->probes, probe, link);
        pthread_mutex_unlock(&prober->lock);
    }
    sent = probe && fetcher_submit(prober->service->fetcher, request, &sink, probe, &probe->fetch);
    if (probe && !sent)
        free_probe(probe);
    request_release(&request);
    return sent;
}

/* What is due of a member. Returns how much has begun. */
static unsigned
look_at(struct prober *prober, struct config *config, struct origin_route *route, unsigned member)
{
    struct probe asked = {.route = route, .member = member};
    const int64_t now_us = clock_monotonic_us();
    unsigned begun = 0;

    if (origin_probe_begin(route, member, now_us)) {
        /* Without memory the member is probed later. */
        if (!submit(prober, config, &asked))
            origin_probe_end(route, member, now_us, ORIGIN_PROBE_UNKNOWN, "");
        begun++;
    }
    asked.looks_up = true;
    if (origin_probe_look_up(route, member)) {
        (void)submit(prober, config, &asked);
        begun++;
    }
    return begun;
}

static void
cancel_late(struct prober *prober, int64_t now_us)
{
    const struct probe *probe;

    pthread_mutex_lock(&prober->lock);
    TAILQ_FOREACH(probe, &prober->probes, link)
    {
        int64_t begun_us = atomic_load(&probe->begun_us);

        if (begun_us && now_us - begun_us > ORIGIN_PROBE_TIMEOUT_US)
            fetcher_cancel(prober->service->fetcher, probe->fetch);
    }
    pthread_mutex_unlock(&prober->lock);
}

bool
prober_look(struct prober *prober)
{
    struct config *config = service_config(prober->service);
    const int64_t now_us = clock_monotonic_us();
    unsigned begun = 0;
    bool any = false;

    cancel_late(prober, now_us);
    for (size_t i = 0; i < config->origins.count; i++) {
        struct origin_route *route = &config->origins.rows[i].route;

        for (unsigned n = 0; n < route->count && begun < MOST_BEGUN; n++)
            begun += look_at(prober, config, route, n);
        any = any || route->probes.path.len;
    }
    return any || begun;
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
