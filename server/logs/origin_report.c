#include "server/logs/origin_report.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "server/logs/access_text.h"
#include "server/logs/log.h"
#include "server/logs/log_limit.h"

enum {
    ORIGINS = METRICS_SNAPSHOT_BYTES / sizeof(uint64_t), /* with the one for all others */
    ORIGIN_MAX = 62,                                     /* bytes of one with counters */
    KEY_MAX = 512,                                       /* bytes of any origin that is logged, */
    URL_SHOWN = 200,                                     /* and of a URL */
};

#define LABEL_MAX (sizeof("origin=\"\"") + ORIGIN_MAX)

/* A counter for each origin; the first one is for all others. */
struct family {
    _Atomic uint64_t counts[ORIGINS];
    struct metric_row rows[ORIGINS];
};

/* A server of the rows in force. */
struct watched {
    struct origin_server *server; /* a reference */
    unsigned origin;
};

struct origin_report {
    struct log_limit limit;
    struct metrics *metrics; /* once they are registered; not owned */
    _Atomic unsigned count;  /* of the origins, which stay */
    char origins[ORIGINS][ORIGIN_MAX + 1];
    char labels[ORIGINS][LABEL_MAX];
    struct family failures;
    struct family queued;
    pthread_mutex_t lock;
    /* protected by lock */
    struct watched *watched; /* owned */
    size_t watched_count;
    uint64_t left[ORIGINS]; /* requests of servers that are watched no more, modulo 2^64 */
    /* constant once they are registered */
    struct family requests;
    struct family in_flight;
};

struct origin_report *
origin_report_create(void)
{
    struct origin_report *report = calloc(1, sizeof(*report));

    if (!report)
        return NULL;
    log_limit_init(&report->limit);
    pthread_mutex_init(&report->lock, NULL);
    report->count = 1;
    snprintf(report->labels[0], LABEL_MAX, "origin=\"other\"");
    return report;
}

/* No server is watched any more; their requests stay counted. */
static void
forget(struct origin_report *report)
{
    for (size_t i = 0; i < report->watched_count; i++) {
        struct watched *watched = &report->watched[i];

        report->left[watched->origin] += atomic_load(&watched->server->requests);
        origin_server_release(&watched->server);
    }
    free(report->watched);
    report->watched = NULL;
    report->watched_count = 0;
}

void
origin_report_destroy(struct origin_report *report)
{
    if (!report)
        return;
    log_limit_free(&report->limit);
    forget(report);
    pthread_mutex_destroy(&report->lock);
    free(report);
}

/* ---- origins --------------------------------------------------------------------------------- */

/* The origin of a URL with its port: "https://example.com:443", as struct fetch_queued has it. */
static void
write_origin(struct buf *key, struct span url)
{
    const char *colon;

    access_text_origin(key, url);
    if (buf_failed(key) || key->len == 0)
        return;
    colon = memrchr(key->data, ':', key->len);
    /* That of the scheme, or of an IPv6 address. */
    if (!colon || colon[1] == '/' || memchr(colon, ']', (size_t)(key->data + key->len - colon)))
        buf_append_str(key, span_starts_with(buf_span(key), span_str("https:")) ? ":443" : ":80");
}

/* 0: it has no counters of its own. */
static unsigned
find(const struct origin_report *report, const char *origin)
{
    unsigned count = atomic_load_explicit(&report->count, memory_order_acquire);

    for (unsigned i = 1; i < count; i++)
        if (strcmp(report->origins[i], origin) == 0)
            return i;
    return 0;
}

/* The number of the server's origin, which gets counters of its own while there are any. */
static unsigned
find_or_add(struct origin_report *report, const struct origin_server *server)
{
    unsigned count = atomic_load_explicit(&report->count, memory_order_relaxed), found = 0;
    struct buf key;

    buf_init(&key, KEY_MAX);
    write_origin(&key, server->authority);
    if (!buf_failed(&key) && key.len)
        found = find(report, buf_str(&key));
    if (!found && !buf_failed(&key) && key.len && key.len <= ORIGIN_MAX && count < ORIGINS) {
        found = count;
        snprintf(report->origins[count], sizeof(report->origins[count]), "%s", buf_str(&key));
        snprintf(report->labels[count], LABEL_MAX, "origin=\"%s\"", buf_str(&key));
        atomic_store_explicit(&report->count, count + 1, memory_order_release);
    }
    buf_free(&key);
    return found;
}

/* Shows the counters of origins that were added. */
static void
show(struct origin_report *report)
{
    struct family *families[] = {&report->failures, &report->queued, &report->requests,
                                 &report->in_flight};

    for (unsigned i = 0; report->metrics && i < sizeof(families) / sizeof(families[0]); i++)
        metrics_show(report->metrics, families[i]->rows, atomic_load(&report->count));
}

/* In the order of the rows, as long as there are counters. */
static void
add_rows(struct origin_report *report, const struct http_origins *origins)
{
    for (size_t i = 0; i < origins->count; i++)
        for (unsigned n = 0; n < origins->rows[i].route.count; n++)
            (void)find_or_add(report, origins->rows[i].route.members[n].server);
}

/* Returns the number of them. */
static size_t
watch_servers(struct origin_report *report, const struct origin_servers *servers,
              struct watched *next)
{
    size_t count = 0;

    for (size_t i = 0; i < servers->size; i++)
        if (servers->slots[i])
            next[count++] =
                (struct watched){.server = origin_server_retain(servers->slots[i]),
                                 .origin = find_or_add(report, servers->slots[i])};
    return count;
}

void
origin_report_watch(struct origin_report *report, const struct http_origins *origins,
                    const struct http_origins *peers)
{
    struct watched *next =
        calloc(origins->servers.count + peers->servers.count + 1, sizeof(*next));
    size_t count;

    if (!next)
        return;
    pthread_mutex_lock(&report->lock);
    add_rows(report, origins);
    add_rows(report, peers);
    count = watch_servers(report, &origins->servers, next);
    count += watch_servers(report, &peers->servers, next + count);
    forget(report);
    report->watched = next;
    report->watched_count = count;
    for (size_t i = 0; i < count; i++)
        report->left[next[i].origin] -= atomic_load(&next[i].server->requests);
    pthread_mutex_unlock(&report->lock);
    show(report);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void
read_requests(void *context, void *snapshot)
{
    struct origin_report *report = context;
    uint64_t *counts = snapshot;

    pthread_mutex_lock(&report->lock);
    memcpy(counts, report->left, sizeof(report->left));
    for (size_t i = 0; i < report->watched_count; i++)
        counts[report->watched[i].origin] += atomic_load(&report->watched[i].server->requests);
    pthread_mutex_unlock(&report->lock);
}

static void
read_in_flight(void *context, void *snapshot)
{
    struct origin_report *report = context;
    uint64_t *counts = snapshot;

    pthread_mutex_lock(&report->lock);
    for (size_t i = 0; i < report->watched_count; i++)
        counts[report->watched[i].origin] += atomic_load(&report->watched[i].server->in_flight);
    pthread_mutex_unlock(&report->lock);
}

static void
read_family(void *context, void *snapshot)
{
    const struct family *family = context;
    uint64_t *counts = snapshot;

    for (unsigned i = 0; i < ORIGINS; i++)
        counts[i] = atomic_load_explicit(&family->counts[i], memory_order_relaxed);
}

/* How a family is registered. */
struct registration {
    const char *name, *help;
    enum metric_kind kind;
    void (*read)(void *context, void *snapshot);
    void *context;
};

static bool
register_family(struct origin_report *report, struct family *family, struct metrics *metrics,
                const struct registration *how)
{
    const struct metric_source source = {family->rows, ORIGINS, how->read,
                                         atomic_load(&report->count)};

    for (unsigned i = 0; i < ORIGINS; i++)
        family->rows[i] = (struct metric_row){how->name, report->labels[i],   how->kind, "",
                                              how->help, i * sizeof(uint64_t)};
    return metrics_register(metrics, &source, how->context);
}

bool
origin_report_register(struct origin_report *report, struct metrics *metrics)
{
    const struct registration failures = {"origin_failures",
                                          "Fetches that failed because of their origin, by origin.",
                                          METRIC_KIND_COUNTER, read_family, &report->failures};
    const struct registration queued = {
        "origin_fetches_queued",
        "Fetches that had to wait at a bound before they began, by origin.", METRIC_KIND_COUNTER,
        read_family, &report->queued};
    const struct registration requests = {
        "origin_requests", "Fetches and tunnels that were tried at a member of a row, by origin.",
        METRIC_KIND_COUNTER, read_requests, report};
    const struct registration in_flight = {
        "origin_in_flight", "Fetches and tunnels at a member of a row, by origin.",
        METRIC_KIND_GAUGE, read_in_flight, report};

    if (!register_family(report, &report->failures, metrics, &failures) ||
        !register_family(report, &report->queued, metrics, &queued) ||
        !register_family(report, &report->requests, metrics, &requests) ||
        !register_family(report, &report->in_flight, metrics, &in_flight))
        return false;
    report->metrics = metrics;
    return true;
}

static void
count(struct family *family, unsigned origin)
{
    atomic_fetch_add_explicit(&family->counts[origin], 1, memory_order_relaxed);
}

/* ---- the log --------------------------------------------------------------------------------- */

/* " (7 more since the last such line)", or nothing. */
static const char *
say_withheld(uint64_t withheld, char *text, size_t size)
{
    text[0] = '\0';
    if (withheld)
        snprintf(text, size, " (%" PRIu64 " more since the last such line)", withheld);
    return text;
}

/* About what is logged. */
enum subject {
    SUBJECT_WAITING,
    SUBJECT_CLIENT,
    SUBJECT_ORIGIN,
    SUBJECT_CLIENT_AT_ORIGIN, /* the origin: the first of its clients stands for all */
    SUBJECT_TUNNELS,
    SUBJECT_FAILURE,
    SUBJECT_PEER,
};

static bool
may_log(struct origin_report *report, enum subject subject, struct span name, uint64_t *withheld)
{
    return log_limit_take(&report->limit, hash64_uint(hash64_bytes(name) ^ subject),
                          clock_monotonic_us(), withheld);
}

#define CLIENT_MAX (INET6_ADDRSTRLEN + 16)

static const char *
client_text(const struct client *client, char *text)
{
    const uint8_t *bytes = client->key.bytes;
    uint32_t uid;

    snprintf(text, CLIENT_MAX, "unknown");
    switch ((enum client_kind)client->key.kind) {
    case CLIENT_INET:
        inet_ntop(AF_INET, bytes, text, CLIENT_MAX);
        break;
    case CLIENT_INET6:
        inet_ntop(AF_INET6, bytes, text, CLIENT_MAX);
        break;
    case CLIENT_UID:
        memcpy(&uid, bytes, sizeof(uid));
        snprintf(text, CLIENT_MAX, "unix:%u", (unsigned)ntohl(uid));
        break;
    case CLIENT_USER:
        /* All of the name or, where it is longer, perhaps the begin. */
        snprintf(text, CLIENT_MAX, "user %.*s", bytes[15] ? 8 : 16, (const char *)bytes);
        break;
    case CLIENT_PEER:
        snprintf(text, CLIENT_MAX, "%.8s of a peer", (const char *)bytes);
        break;
    case CLIENT_UNKNOWN:
        break;
    }
    return text;
}

static struct span
client_span(const struct client *client)
{
    return span_of((const char *)&client->key, sizeof(client->key));
}

static void
log_queued(struct origin_report *report, const struct fetch_queued *queued)
{
    char client[CLIENT_MAX], more[64];
    uint64_t withheld;

    switch (queued->limit) {
    case QUEUE_ORIGIN:
        if (may_log(report, SUBJECT_ORIGIN, span_str(queued->origin), &withheld))
            log_warning("fetches from %s wait: as many as --max-fetches-per-origin allows have no "
                        "response yet%s",
                        queued->origin, say_withheld(withheld, more, sizeof(more)));
        break;
    case QUEUE_CLIENT_AT_ORIGIN:
        if (may_log(report, SUBJECT_CLIENT_AT_ORIGIN, span_str(queued->origin), &withheld))
            log_warning("fetches from %s for client %s wait: it has half of what others leave of "
                        "--max-fetches-per-origin%s",
                        queued->origin, client_text(queued->client, client),
                        say_withheld(withheld, more, sizeof(more)));
        break;
    case QUEUE_LIMIT:
        if (may_log(report, SUBJECT_ORIGIN, span_str(queued->origin), &withheld))
            log_warning("fetches from %s wait: it has as many as its max= allows%s",
                        queued->origin, say_withheld(withheld, more, sizeof(more)));
        break;
    case QUEUE_CLIENT:
        if (may_log(report, SUBJECT_CLIENT, client_span(queued->client), &withheld))
            log_warning("fetches for client %s wait: it has its share of them, by "
                        "--max-fetches-per-client%s",
                        client_text(queued->client, client),
                        say_withheld(withheld, more, sizeof(more)));
        break;
    case QUEUE_SLOT:
        if (may_log(report, SUBJECT_WAITING, span_of(NULL, 0), &withheld))
            log_warning("fetches wait: as many as --max-fetches-waiting allows have no response "
                        "yet%s",
                        say_withheld(withheld, more, sizeof(more)));
        break;
    case QUEUE_TURN:
        break;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

void
origin_report_queued(struct origin_report *report, const struct fetch_queued *queued)
{
    count(&report->queued, find(report, queued->origin));
    log_queued(report, queued);
}

void
origin_report_tunnel_refused(struct origin_report *report, const struct client *client)
{
    char text[CLIENT_MAX], more[64];
    uint64_t withheld;

    if (may_log(report, SUBJECT_TUNNELS, client_span(client), &withheld))
        log_warning("a tunnel of client %s is refused: it has its share of --max-tunnels%s",
                    client_text(client, text), say_withheld(withheld, more, sizeof(more)));
}

void
origin_report_peer_refused(struct origin_report *report, struct span client, const char *why)
{
    char more[64];
    uint64_t withheld;

    if (may_log(report, SUBJECT_PEER, client, &withheld))
        log_warning("a request of %.*s that claims to be a peer's is refused: %s%s",
                    (int)client.len, client.ptr, why, say_withheld(withheld, more, sizeof(more)));
}

static bool
is_by_origin(enum failure failure)
{
    switch (failure) {
    case FAILURE_RESOLVE:
    case FAILURE_CONNECT:
    case FAILURE_TLS:
    case FAILURE_TIMEOUT:
    case FAILURE_CONNECT_TIMEOUT:
    case FAILURE_ORIGIN:
    case FAILURE_TOO_LARGE:
    case FAILURE_DOWN:
        return true;
    default:
        return false;
    }
}

/* What is logged, in front of the URL; false: nothing. A response after which another member is
 * tried is logged by its status. */
static bool
describe(const struct proxy_fetched *fetched, struct buf *text)
{
    const bool failed = fetched->failure && !(fetched->repeated && fetched->status >= 500);

    if (failed && !is_by_origin(fetched->failure) && fetched->failure != FAILURE_DENIED)
        return false;
    if (failed)
        return buf_append_str(text, failure_word(fetched->failure));
    return fetched->status >= 500 && buf_printf(text, "status %u", fetched->status);
}

static void
log_fetched(struct origin_report *report, const struct proxy_fetched *fetched, struct buf *what,
            struct span from)
{
    const size_t most = fetched->url.len < URL_SHOWN ? fetched->url.len : URL_SHOWN;
    const bool failed = strncmp(buf_str(what), "status ", 7) != 0;
    const size_t word_len = what->len;
    uint64_t withheld;
    char more[64];

    /* The subject is the kind of failure and the member. */
    buf_append(what, from.ptr, from.len);
    if (!may_log(report, SUBJECT_FAILURE, buf_span(what), &withheld))
        return;
    (fetched->failure == FAILURE_DENIED ? log_info : log_warning)(
        "fetch from %.*s: %.*s%s%s, for %.*s%s%s%s", (int)from.len, from.ptr, (int)word_len,
        buf_str(what), failed ? ": " : "", failed ? fetched->sentence : "", (int)most,
        fetched->url.ptr, most < fetched->url.len ? "..." : "",
        fetched->repeated ? "; another member is tried" : "",
        say_withheld(withheld, more, sizeof(more)));
}

void
origin_report_fetched(struct origin_report *report, const struct proxy_fetched *fetched)
{
    struct buf key, what;

    buf_init(&key, KEY_MAX);
    buf_init(&what, KEY_MAX + 64);
    if (describe(fetched, &what)) {
        write_origin(&key, fetched->member.len ? fetched->member : fetched->url);
        if (is_by_origin(fetched->failure))
            count(&report->failures, find(report, buf_str(&key)));
        log_fetched(report, fetched, &what, fetched->member.len ? fetched->member : buf_span(&key));
    }
    buf_free(&key);
    buf_free(&what);
}
