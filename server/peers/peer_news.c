#include "server/peers/peer_news.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "origins/origin_probe.h"
#include "proxy/purging.h"
#include "server/peers/peer_log.h"
#include "server/peers/peer_message.h"
#include "server/service.h"

/* What one peer is told. */
struct outbox {
    char *url;          /* owned; NULL: the place is free */
    struct buf waiting; /* news that are not sent */
    uint64_t count;     /* of those */
    uint64_t taken;     /* the number of the last news that it has taken, or has missed */
    uint64_t sent;      /* of the last one that is under way */
    bool sending;
    bool lost;      /* meanwhile news that it does not get */
    bool left;      /* it is told that there are no more */
    bool reached;   /* it has taken the last message, or none was sent */
    int64_t due_us; /* when it is told the next one, if there are no news */
};

/* News that are told twice. */
struct batch {
    STAILQ_ENTRY(batch) link;
    uint64_t order;  /* a waiter for news up to this number, or a higher one, waits for them */
    uint64_t number; /* of the first time, */
    uint64_t again;  /* and of the second one; 0: it is to come */
    bool purged;     /* here, for the second time */
    size_t len;
    char text[];
};

STAILQ_HEAD(batches, batch);
TAILQ_HEAD(waits, peer_news_wait);

struct peer_news {
    struct service *service;
    struct clients *clients; /* owned: a table of one */
    struct client *client;   /* a reference: in whose turns messages are sent */
    struct peer_log log;     /* of what has come */
    pthread_mutex_t lock;
    /* protected by lock */
    uint64_t number; /* of the last news */
    bool leaving;    /* there are no more */
    struct outbox outboxes[ORIGIN_ROUTE_MEMBERS];
    struct batches batches;
    struct waits waits;
    struct peer_messages messages; /* under way */
    struct peer_news_stats stats;
};

struct peer_news *
peer_news_create(struct service *service)
{
    const struct clients_config config = {.inet_bits = CLIENT_INET_BITS,
                                          .inet6_bits = CLIENT_INET6_BITS};
    struct peer_news *news = calloc(1, sizeof(*news));

    if (!news)
        return NULL;
    news->service = service;
    news->clients = clients_create(&config);
    news->client = news->clients ? clients_find_uid(news->clients, 0, clock_monotonic_us()) : NULL;
    if (!news->client) {
        clients_destroy(news->clients);
        free(news);
        return NULL;
    }
    pthread_mutex_init(&news->lock, NULL);
    peer_log_init(&news->log);
    STAILQ_INIT(&news->batches);
    TAILQ_INIT(&news->waits);
    LIST_INIT(&news->messages);
    return news;
}

static void
clear_outbox(struct outbox *box)
{
    free(box->url);
    buf_free(&box->waiting);
    *box = (struct outbox){.url = NULL};
}

void
peer_news_destroy(struct peer_news *news)
{
    struct batch *batch;

    if (!news)
        return;
    while ((batch = STAILQ_FIRST(&news->batches))) {
        STAILQ_REMOVE_HEAD(&news->batches, link);
        free(batch);
    }
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
        clear_outbox(&news->outboxes[i]);
    peer_log_free(&news->log);
    client_release(&news->client);
    clients_destroy(news->clients);
    pthread_mutex_destroy(&news->lock);
    free(news);
}

/* ---- outboxes: under the lock ---------------------------------------------------------------- */

/* It will miss what it is not told: the next message shows that. */
static void
give_up(struct peer_news *news, struct outbox *box)
{
    news->stats.lost += box->url && box->taken != news->number;
    buf_reset(&box->waiting);
    box->count = 0;
    box->taken = news->number;
    box->reached = false;
    box->lost = box->sending;
}

static void
add_news(struct peer_news *news, struct span text)
{
    news->number++;
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        struct outbox *box = &news->outboxes[i];

        if (!box->url)
            continue;
        if (box->reached && buf_append(&box->waiting, text.ptr, text.len))
            box->count++;
        else
            give_up(news, box);
    }
}

static struct outbox *
find_outbox(struct peer_news *news, struct span url)
{
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
        if (news->outboxes[i].url && span_equal(span_str(news->outboxes[i].url), url))
            return &news->outboxes[i];
    return NULL;
}

static bool
is_any_reached(const struct peer_news *news)
{
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
        if (news->outboxes[i].url && news->outboxes[i].reached)
            return true;
    return false;
}

static bool
is_any_told(const struct peer_news *news)
{
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
        if (news->outboxes[i].url)
            return true;
    return false;
}

/* The number of the last news that all have taken that can be reached. */
static uint64_t
find_taken_by_all(const struct peer_news *news)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        const struct outbox *box = &news->outboxes[i];

        if (box->url && box->reached && box->taken < least)
            least = box->taken;
    }
    return least;
}

static void
make_outbox(struct peer_news *news, struct span url)
{
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        struct outbox *box = &news->outboxes[i];

        if (box->url)
            continue;
        box->url = strndup(url.ptr, url.len);
        buf_init(&box->waiting, PEER_MESSAGE_WAITING);
        box->taken = news->number;
        box->reached = true;
        return;
    }
}

/* As the configuration has the peers. */
static void
follow_config(struct peer_news *news, const struct origin_peers *peers)
{
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        struct outbox *box = &news->outboxes[i];
        unsigned member = box->url && peers ? origin_peers_find(peers, span_str(box->url)) : 0;

        if (box->url && !box->sending &&
            (!peers || member == peers->route->count || member == peers->self))
            clear_outbox(box);
    }
    for (unsigned i = 0; peers && i < peers->route->count; i++)
        if (i != peers->self && !find_outbox(news, peers->route->members[i].url))
            make_outbox(news, peers->route->members[i].url);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void take_end(void *context, struct peer_message *message,
                     const struct peer_message_end *end);

/* A message for the peer, which is under way from now on. NULL: there is no peer of that URL any
 * more, or no memory. Under the lock. */
static struct peer_message *
make_message(struct peer_news *news, struct outbox *box, struct config *config)
{
    struct origin_peers *peers = config_peers_of(&config->peers);
    const unsigned member = peers ? origin_peers_find(peers, span_str(box->url)) : 0;
    struct peer_message *message;
    size_t len = 0;

    if (!peers || member == peers->route->count)
        return NULL;
    message = peer_message_create(config, member, take_end, news);
    if (!message)
        return NULL;
    box->left = news->leaving && !box->count;
    if (box->left)
        peer_message_leave(message, box->taken);
    box->sent = box->taken;
    if (!box->left)
        box->sent += peer_message_fill(message, box->taken, buf_span(&box->waiting), &len);
    if (buf_failed(&message->text)) {
        peer_message_free(message);
        return NULL;
    }
    if (len) {
        memmove(box->waiting.data, box->waiting.data + len, box->waiting.len - len);
        buf_truncate(&box->waiting, box->waiting.len - len);
    }
    box->count -= box->sent - box->taken;
    box->sending = true;
    box->due_us = clock_monotonic_us() + PEER_NEWS_PAUSE_US;
    LIST_INSERT_HEAD(&news->messages, message, link);
    return message;
}

/* Sends what waits, or is due. */
static void
send_due(struct peer_news *news)
{
    struct config *config = service_config(news->service);
    const int64_t now_us = clock_monotonic_us();

    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        struct outbox *box = &news->outboxes[i];
        struct peer_message *message = NULL;

        pthread_mutex_lock(&news->lock);
        if (box->url && !box->sending && !box->left && (box->count || box->due_us <= now_us)) {
            message = make_message(news, box, config);
            if (!message)
                give_up(news, box);
        }
        pthread_mutex_unlock(&news->lock);
        if (message)
            peer_message_send(message, news->service, news->client);
    }
}

/* ---- the second time ------------------------------------------------------------------------- */

/* The first of those that all have taken once, from now on told again. Under the lock. */
static struct batch *
next_to_purge(struct peer_news *news)
{
    const uint64_t taken = find_taken_by_all(news);
    struct batch *batch;

    STAILQ_FOREACH(batch, &news->batches, link)
    if (!batch->again && batch->number <= taken)
        return batch;
    return NULL;
}

static void
purge_text(struct peer_news *news, struct span text, struct buf *told)
{
    struct peer_item item;
    struct buf bytes;

    buf_init(&bytes, PEER_MESSAGE_WAITING);
    while (peer_item_read(&text, &item, &bytes))
        peer_item_purge(&news->service->proxy, &item, told);
    buf_free(&bytes);
}

/* Ends what all have taken twice, and those that wait for that. Under the lock. */
static void
end_batches(struct peer_news *news)
{
    const uint64_t taken = find_taken_by_all(news);
    struct peer_news_wait *wait, *next;
    uint64_t first = UINT64_MAX;
    struct batch *batch;

    while ((batch = STAILQ_FIRST(&news->batches)) && batch->purged && batch->again <= taken) {
        STAILQ_REMOVE_HEAD(&news->batches, link);
        free(batch);
    }
    STAILQ_FOREACH(batch, &news->batches, link)
    first = batch->order < first ? batch->order : first;
    for (wait = TAILQ_FIRST(&news->waits); wait; wait = next) {
        next = TAILQ_NEXT(wait, link);
        if (first <= wait->number)
            break;
        TAILQ_REMOVE(&news->waits, wait, link);
        wait->number = 0;
        wait->done(wait);
    }
}

/* One peer has taken more, or cannot be reached. */
static void
proceed(struct peer_news *news)
{
    struct batch *batch;

    pthread_mutex_lock(&news->lock);
    while ((batch = next_to_purge(news))) {
        const struct span text = span_of(batch->text, batch->len);

        add_news(news, text);
        batch->again = news->number;
        pthread_mutex_unlock(&news->lock);
        purge_text(news, text, NULL); /* it stays until it has been purged */
        pthread_mutex_lock(&news->lock);
        batch->purged = true;
    }
    end_batches(news);
    pthread_mutex_unlock(&news->lock);
    send_due(news);
}

/* ---- the fetcher's thread -------------------------------------------------------------------- */

static void tell(struct peer_news *news, const struct peer_item *item, bool all_wait);

/* A peer knows tags of what was written, which concern all. */
static void
tell_tags(struct peer_news *news, struct span text)
{
    struct peer_item item;
    struct buf bytes;

    buf_init(&bytes, PEER_MESSAGE_WAITING);
    while (peer_item_read(&text, &item, &bytes)) {
        peer_item_purge(&news->service->proxy, &item, NULL);
        tell(news, &item, true);
    }
    buf_free(&bytes);
}

/* Under the lock. */
static void
end_sending(struct peer_news *news, struct outbox *box, bool taken)
{
    box->sending = false;
    if (box->lost) {
        box->lost = false;
        box->due_us = 0;
    } else if (taken) {
        box->taken = box->sent;
        box->reached = true;
    } else {
        give_up(news, box);
    }
}

static void
take_end(void *context, struct peer_message *message, const struct peer_message_end *end)
{
    struct peer_news *news = context;
    struct outbox *box;

    /* Before it counts as taken, so that its waiters wait for these as well. */
    if (end->taken)
        tell_tags(news, buf_span(&message->told));
    pthread_mutex_lock(&news->lock);
    LIST_REMOVE(message, link);
    box = find_outbox(news, message->route->members[message->member].url);
    if (box)
        end_sending(news, box, end->taken);
    pthread_mutex_unlock(&news->lock);
    if (end->result != ORIGIN_PROBE_UNKNOWN)
        origin_probe_end(message->route, message->member, clock_monotonic_us(), end->result,
                         end->reason);
    peer_message_free(message);
    proceed(news);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* `all_wait`: waiters for earlier news wait for this as well. */
static void
tell(struct peer_news *news, const struct peer_item *item, bool all_wait)
{
    struct batch *batch = NULL;
    struct buf text;

    buf_init(&text, PEER_MESSAGE_WAITING);
    peer_item_write(item, &text);
    if (!buf_failed(&text))
        batch = malloc(sizeof(*batch) + text.len);
    pthread_mutex_lock(&news->lock);
    news->stats.told += is_any_told(news);
    if (is_any_reached(news) && batch) {
        *batch = (struct batch){.len = text.len};
        memcpy(batch->text, text.data, text.len);
        add_news(news, buf_span(&text));
        batch->number = news->number;
        batch->order = all_wait ? 0 : batch->number;
        STAILQ_INSERT_TAIL(&news->batches, batch, link);
        batch = NULL;
    } else {
        add_news(news, span_of(NULL, 0));
        for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
            give_up(news, &news->outboxes[i]);
    }
    pthread_mutex_unlock(&news->lock);
    free(batch);
    buf_free(&text);
    send_due(news);
}

void
peer_news_tell(struct peer_news *news, const struct peer_item *item)
{
    if (news)
        tell(news, item, false);
}

bool
peer_news_wait(struct peer_news *news, struct peer_news_wait *wait)
{
    bool waits;

    pthread_mutex_lock(&news->lock);
    waits = !STAILQ_EMPTY(&news->batches);
    wait->number = news->number;
    if (waits)
        TAILQ_INSERT_TAIL(&news->waits, wait, link);
    pthread_mutex_unlock(&news->lock);
    return waits;
}

bool
peer_news_cancel(struct peer_news *news, struct peer_news_wait *wait)
{
    bool waited;

    pthread_mutex_lock(&news->lock);
    waited = wait->number != 0;
    if (waited)
        TAILQ_REMOVE(&news->waits, wait, link);
    pthread_mutex_unlock(&news->lock);
    return waited;
}

bool
peer_news_look(struct peer_news *news)
{
    struct origin_peers *peers = config_peers_of(&service_config(news->service)->peers);

    pthread_mutex_lock(&news->lock);
    follow_config(news, peers);
    peer_messages_cancel_late(&news->messages, &news->service->proxy.config.origin);
    pthread_mutex_unlock(&news->lock);
    proceed(news);
    return peers != NULL;
}

void
peer_news_get_stats(struct peer_news *news, struct peer_news_stats *stats)
{
    pthread_mutex_lock(&news->lock);
    *stats = news->stats;
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++)
        stats->reached += news->outboxes[i].url && news->outboxes[i].reached;
    pthread_mutex_unlock(&news->lock);
}

#define LEAVE_US ((int64_t)500000)

/* Is there still a peer that can be reached and is to be told? */
static bool
is_leaving(struct peer_news *news)
{
    bool any = false;

    pthread_mutex_lock(&news->lock);
    for (unsigned i = 0; i < ORIGIN_ROUTE_MEMBERS; i++) {
        struct outbox *box = &news->outboxes[i];

        if (!box->left)
            box->due_us = 0;
        any = any || (box->url && box->reached && (!box->left || box->sending));
    }
    news->leaving = true;
    pthread_mutex_unlock(&news->lock);
    return any;
}

void
peer_news_leave(struct peer_news *news)
{
    const int64_t until_us = clock_monotonic_us() + LEAVE_US;
    const struct timespec pause = {.tv_nsec = 5000000};

    while (is_leaving(news) && clock_monotonic_us() < until_us) {
        send_due(news);
        nanosleep(&pause, NULL);
    }
}

/* ---- what has come --------------------------------------------------------------------------- */

/* A peer that has come back is told at once, and used again when it has taken that. */
static void
answer(struct peer_news *news, struct span sender)
{
    struct outbox *box;

    pthread_mutex_lock(&news->lock);
    box = find_outbox(news, sender);
    if (box && !box->reached)
        box->due_us = 0;
    pthread_mutex_unlock(&news->lock);
    send_due(news);
}

bool
peer_news_take(struct peer_news *news, struct span sender, uint64_t incarnation,
               struct span message, struct buf *told)
{
    struct proxy *proxy = &news->service->proxy;
    struct peer_message_head head;
    bool missed;

    if (!peer_message_read(&message, &head))
        return false;
    missed = peer_log_misses(&news->log, sender, incarnation, head.before);
    pthread_mutex_lock(&news->lock);
    news->stats.missed += missed;
    news->stats.taken += head.last - head.before;
    pthread_mutex_unlock(&news->lock);
    if (missed)
        (void)purging_apply(proxy, &(struct purging){.by = CACHE_BY_PREFIX, .fate = CACHE_EXPIRED});
    purge_text(news, message, told);
    peer_log_take(&news->log, sender, incarnation, head.last, clock_monotonic_us());
    if (peer_message_is_leave(message))
        peer_log_leave(&news->log, sender, incarnation);
    answer(news, sender);
    return true;
}
