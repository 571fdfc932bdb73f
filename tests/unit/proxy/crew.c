#include "tests/unit/proxy/crew.h"

#include <stdlib.h>

struct crew_worker crew_workers[CREW_WORKERS];
char crew_pattern[256 + CREW_PATTERN];

static _Atomic unsigned running;

bool
crew_is_running(void)
{
    return atomic_load(&running) != 0;
}

void
crew_wake(struct exchange *exchange)
{
    struct crew_request *request = (struct crew_request *)exchange;
    struct crew_worker *worker = request->worker;

    pthread_mutex_lock(&worker->lock);
    STAILQ_INSERT_TAIL(&worker->woken, request, woken);
    pthread_cond_signal(&worker->wakes);
    pthread_mutex_unlock(&worker->lock);
}

void
crew_end(struct crew_request *request)
{
    exchange_end(&request->exchange);
    request->busy = false;
    request->worker->under_way--;
    request->worker->ends++;
}

void
crew_request_init(struct crew_worker *worker, struct crew_request *request,
                  const struct front *front, const char *url, uint32_t client)
{
    memset(request, 0, worker->crew->request_size);
    request->worker = worker;
    request->busy = true;
    request->exchange.proxy = &scene.proxy;
    request->exchange.front = front;
    request->exchange.request = &request->asked;
    request->asked = (struct request){.url = span_str(url),
                                      .client = unit_client(client),
                                      .flags = front->more ? REQUEST_STREAMS : 0u,
                                      .waiting_bytes = 100,
                                      .arrived_us = scene.now_us};
    request->exchange.worker = worker->number;
    worker->started++;
    worker->under_way++;
}

static void
run_woken(struct crew_worker *worker)
{
    struct crew_request *request;

    pthread_mutex_lock(&worker->lock);
    while (STAILQ_EMPTY(&worker->woken))
        pthread_cond_wait(&worker->wakes, &worker->lock);
    request = STAILQ_FIRST(&worker->woken);
    STAILQ_REMOVE_HEAD(&worker->woken, woken);
    pthread_mutex_unlock(&worker->lock);
    exchange_run(&request->exchange);
}

static void *
work(void *context)
{
    struct crew_worker *worker = context;
    const struct crew *crew = worker->crew;
    char *requests = calloc(crew->at_once, crew->request_size);

    REQUIRE(requests != NULL);
    while (worker->started < crew->requests || worker->under_way) {
        for (unsigned i = 0; i < crew->at_once && worker->started < crew->requests; i++) {
            void *request = requests + i * crew->request_size;

            if (!((struct crew_request *)request)->busy)
                crew->start(worker, request);
        }
        if (worker->under_way)
            run_woken(worker);
    }
    free(requests);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void
start_worker(struct crew_worker *worker, const struct crew *crew, unsigned number)
{
    *worker = (struct crew_worker){.crew = crew, .number = number, .draws = number + 1};
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->wakes, NULL);
    STAILQ_INIT(&worker->woken);
    ck_assert_int_eq(pthread_create(&worker->thread, NULL, work, worker), 0);
}

void
crew_run(const struct crew *crew)
{
    pthread_t disturber;
    uint64_t draws = 9;

    for (size_t i = 0; i < sizeof(crew_pattern); i++)
        crew_pattern[i] = (char)i;
    atomic_store(&running, CREW_WORKERS);
    for (unsigned i = 0; i < CREW_WORKERS; i++)
        start_worker(&crew_workers[i], crew, i);
    if (crew->disturb)
        ck_assert_int_eq(pthread_create(&disturber, NULL, crew->disturb, NULL), 0);
    /* Fetches of cancelled requests go on without waiters. */
    while (crew_is_running() || scene_fetches()) {
        struct scene_fetch *fetch = scene_find(NULL);

        if (fetch)
            crew->respond(fetch, &draws);
        else
            usleep(100);
    }
    for (unsigned i = 0; i < CREW_WORKERS; i++) {
        struct crew_worker *worker = &crew_workers[i];

        pthread_join(worker->thread, NULL);
        ck_assert_uint_eq(worker->ends, crew->requests);
        pthread_mutex_destroy(&worker->lock);
        pthread_cond_destroy(&worker->wakes);
    }
    if (crew->disturb)
        pthread_join(disturber, NULL);
}
