#include "server/http/http_tunnel.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "fetch/attempt.h"
#include "net/relay.h"
#include "server/http/http_client.h"
#include "server/http/http_connection.h"
#include "server/http/http_exchange.h"
#include "server/http/http_log.h"
#include "server/http/http_rules.h"
#include "server/http/http_serve.h"
#include "server/http/http_service.h"
#include "server/http/http_upgrade.h"
#include "server/http/http_user.h"
#include "server/logs/origin_report.h"

struct http_tunnel {
    struct net_task task; /* posted by the fetcher's thread, once */
    struct http_connection *connection;
    struct http_exchange *x;      /* its response; NULL: it has one, or gets none */
    struct net_relay *relay;      /* NULL: not connected */
    struct http_upgrade *upgrade; /* NULL: for CONNECT, or the origin has agreed */
    bool upgrades;                /* it is not for CONNECT */
    uint64_t fetch;
    bool connecting;
    unsigned status; /* of the response; 0: none */
    size_t charged;
    size_t handshake_bytes; /* of those, for the upgrade */
    int64_t begun_us;
    struct client *client;  /* a reference */
    struct http_user *user; /* a reference; NULL: none */
    struct net_peer peer;
    struct span member; /* of the row, its URL; empty: no row */
    struct origin_server *server; /* of the member, a reference; NULL: no row */

    /* The fetcher's thread's until the task is posted. */
    int fd;
    enum fetch_error error;
    char sentence[FAILURE_SENTENCE];

    size_t target_len;
    char target[]; /* for the log: host and port of CONNECT, or the path of a request */
};

static struct http_service *
service_of_tunnel(const struct http_tunnel *tunnel)
{
    return tunnel->connection->worker->http;
}

/* ---- on the fetcher's thread ----------------------------------------------------------------- */

static void
connected(void *context, int fd)
{
    struct http_tunnel *tunnel = context;

    tunnel->fd = fd;
}

static void
done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct http_tunnel *tunnel = context;

    (void)total_us;
    tunnel->error = error;
    if (error)
        origin_report_fetched(
            service_of_tunnel(tunnel)->service->report,
            &(struct proxy_fetched){.url = span_of(tunnel->target, tunnel->target_len),
                                    .member = tunnel->member,
                                    .failure = failure_of_fetch(error),
                                    .sentence = sentence});
    snprintf(tunnel->sentence, sizeof(tunnel->sentence), "%s", sentence);
    net_worker_post(tunnel->connection->net.set->worker, &tunnel->task);
}

static const struct fetch_sink sink = {.connected = connected, .done = done};

/* ---- its end --------------------------------------------------------------------------------- */

static void
log_tunnel(const struct http_tunnel *tunnel)
{
    const struct service *service = service_of_tunnel(tunnel)->service;
    const struct access_http http = {
        .method = span_str(tunnel->upgrades ? "GET" : "CONNECT"),
        .target = span_of(tunnel->target, tunnel->target_len),
        .minor = 1,
    };

    if (service->logs)
        service_log(service,
                    &(struct access_entry){
                        .peer = &tunnel->peer,
                        .user = tunnel->user ? tunnel->user->name : span_of(NULL, 0),
                        .protocol = "http",
                        .worker = net_worker_number(tunnel->connection->net.set->worker),
                        .fetch_us = -1,
                        .url = span_of(tunnel->target, tunnel->target_len),
                        .outcome = "tunnel",
                        .member = tunnel->member,
                        .error = span_str(tunnel->sentence),
                        .status = tunnel->status ? tunnel->status : HTTP_CLIENT_CLOSED,
                        .bytes = tunnel->relay ? net_relay_received_bytes(tunnel->relay) : 0,
                        .us = clock_monotonic_us() - tunnel->begun_us,
                        .http = &http,
                    });
}

static void
free_handshake(struct http_tunnel *tunnel)
{
    http_upgrade_destroy(tunnel->upgrade);
    tunnel->upgrade = NULL;
    memory_uncharge(&service_of_tunnel(tunnel)->service->memory, MEMORY_REQUESTS,
                    tunnel->handshake_bytes);
    tunnel->charged -= tunnel->handshake_bytes;
    tunnel->handshake_bytes = 0;
}

static void
free_tunnel(struct http_tunnel *tunnel)
{
    struct http_service *http = service_of_tunnel(tunnel);

    tunnel->connection->tunnel = NULL;
    net_relay_destroy(tunnel->relay);
    free_handshake(tunnel);
    client_share_give_back(&http->tunnels, tunnel->client, 1);
    client_release(&tunnel->client);
    http_user_release(&tunnel->user);
    if (tunnel->server) {
        atomic_fetch_sub(&tunnel->server->tunnels, 1);
        origin_server_exit(tunnel->server);
    }
    origin_server_release(&tunnel->server);
    memory_uncharge(&http->service->memory, MEMORY_REQUESTS, tunnel->charged);
    free(tunnel);
}

/* An upgrade that has failed is a request like any other, which is logged as such. */
static void
end_tunnel(struct http_tunnel *tunnel)
{
    if (!tunnel->upgrades || tunnel->status)
        log_tunnel(tunnel);
    free_tunnel(tunnel);
}

/* ---- connected, or not ----------------------------------------------------------------------- */

/* For the response, whose sending may end the connection. */
static struct http_exchange *
take_exchange(struct http_tunnel *tunnel)
{
    struct http_exchange *x = tunnel->x;

    tunnel->x = NULL;
    return x;
}

/* Passes the socket to a relay, behind a response with this head. False without memory. */
static bool
establish(struct http_tunnel *tunnel, unsigned status, struct span head, struct span first)
{
    struct http_connection *c = tunnel->connection;
    struct net_relay *relay = net_relay_create(&c->net, tunnel->fd);

    if (!relay)
        return false;
    tunnel->fd = -1;
    net_relay_count(relay, &c->worker->tunnels.sent_bytes, &c->worker->tunnels.received_bytes);
    if (!net_relay_begin(relay, head, first)) {
        net_relay_destroy(relay);
        return false;
    }
    tunnel->relay = relay;
    tunnel->status = status;
    net_counter_add(&c->worker->tunnels.opened, 1);
    http_exchange_switch(take_exchange(tunnel), status);
    net_connection_release_input(&c->net);
    return true;
}

static void
refuse(struct http_tunnel *tunnel, enum failure why, const char *sentence)
{
    tunnel->status = http_exchange_send_failure(take_exchange(tunnel), why,
                                                failure_for_client(why, span_str(sentence)));
}

/* The tunnel is no request any more: it has become a relay's, or ends. */
static void
leave(struct http_tunnel *tunnel)
{
    struct http_connection *c = tunnel->connection;

    if (tunnel->fd >= 0)
        close(tunnel->fd);
    tunnel->fd = -1;
    if (!tunnel->relay)
        end_tunnel(tunnel);
    net_connection_end_request(&c->net);
    net_connection_mark(&c->net);
}

/* For CONNECT. */
static void
respond(struct http_tunnel *tunnel)
{
    static const char head[] = "HTTP/1.1 200 Connection established\r\n\r\n";

    if (tunnel->fd < 0)
        refuse(tunnel, failure_of_fetch(tunnel->error), tunnel->sentence);
    else if (tunnel->connection->net.set->draining)
        refuse(tunnel, FAILURE_STOPPING, "the proxy is being stopped");
    else if (!establish(tunnel, 200, span_str(head), span_of(NULL, 0)))
        refuse(tunnel, FAILURE_OVERLOADED, "the proxy is out of memory");
    leave(tunnel);
}

/* The request is one like any other. */
static void
give_upgrade_up(struct http_tunnel *tunnel)
{
    struct http_exchange *x = take_exchange(tunnel);

    if (x->origin && http_upgrade_is_answered(tunnel->upgrade))
        origin_route_give_back(&x->origin->route, &x->choice,
                               proxy_now_us(&http_service_of(x)->service->proxy));
    leave(tunnel);
    http_exchange_serve(x);
}

static void
upgrade_ended(void *context, bool switched)
{
    struct http_tunnel *tunnel = context;
    const struct http_service *http = service_of_tunnel(tunnel);
    struct buf *head = &tunnel->connection->worker->fields;

    /* A member that accepts connections may still hang, and other responses may be of one that does
     * not serve: the request that follows those finds out. */
    if (switched && tunnel->x->origin)
        origin_route_succeeded(&tunnel->x->origin->route, &tunnel->x->choice,
                               proxy_now_us(&http->service->proxy));
    if (switched && !tunnel->connection->net.set->draining) {
        buf_reset(head);
        http_upgrade_write_head(tunnel->upgrade, span_str(http->via[1]), head);
        tunnel->fd = http_upgrade_take_socket(tunnel->upgrade);
        if (!buf_failed(head) &&
            establish(tunnel, 101, buf_span(head), http_upgrade_rest(tunnel->upgrade))) {
            free_handshake(tunnel);
            leave(tunnel);
            return;
        }
    }
    give_upgrade_up(tunnel);
}

/* Where no connection can be made, the next member of the row is tried. */
static bool
try_next_member(struct http_tunnel *tunnel)
{
    struct http_exchange *x = tunnel->x;
    struct origin_route *route;

    if (!x->origin || !fetch_is_unconnected(tunnel->error))
        return false;
    route = &x->origin->route;
    origin_route_failed(route, &x->choice, proxy_now_us(&http_service_of(x)->service->proxy),
                        tunnel->sentence);
    x->choice.trial = false;
    tunnel->x = NULL;
    leave(tunnel);
    http_tunnel_begin(x, http_rules_url_again(x));
    return true;
}

static void
shake_hands(struct http_tunnel *tunnel)
{
    const struct options *options = service_config(service_of_tunnel(tunnel)->service)->options;
    int fd = tunnel->fd;

    tunnel->fd = -1;
    if (fd < 0 && try_next_member(tunnel))
        return;
    if (fd < 0 || !http_upgrade_begin(tunnel->upgrade, tunnel->connection->net.set, fd,
                                      options->first_byte_timeout))
        give_upgrade_up(tunnel);
}

static void
run(struct net_task *task)
{
    struct http_tunnel *tunnel = container_of(task, struct http_tunnel, task);

    tunnel->connecting = false;
    if (!tunnel->x)
        leave(tunnel);
    else if (tunnel->upgrades)
        shake_hands(tunnel);
    else
        respond(tunnel);
}

/* ---- its beginning --------------------------------------------------------------------------- */

/* A request takes one token, though an upgrade may connect several times. */
static bool
is_over_rate(struct http_exchange *x)
{
    if (!http_client_is_bounded(x))
        return false;
    x->has_token = client_take_fetch(http_client(x), x->arrived_us) == 0;
    return !x->has_token;
}

/* NULL without memory. */
static struct http_tunnel *
create(struct http_exchange *x, struct span url, struct span host)
{
    struct http_connection *c = x->stream.connection;
    struct memory_account *memory = &c->worker->http->service->memory;
    struct span target = x->request.target;
    size_t bytes = sizeof(struct http_tunnel) + target.len;
    const struct http_upgrade_request asked = {.url = url, .host = host, .fields = x->asked.fields};
    bool upgrades = x->request.method_id != HTTP_CONNECT;
    size_t handshake = upgrades ? http_upgrade_bytes(&asked) : 0;
    size_t charged = bytes + fetcher_fetch_bytes() + handshake;
    struct http_tunnel *tunnel;

    if (!memory_charge(memory, MEMORY_REQUESTS, charged))
        return NULL;
    tunnel = memory_realloc(memory, NULL, bytes);
    if (!tunnel) {
        memory_uncharge(memory, MEMORY_REQUESTS, charged);
        return NULL;
    }
    *tunnel = (struct http_tunnel){
        .task.run = run,
        .connection = c,
        .x = x,
        .connecting = true,
        .upgrades = upgrades,
        .charged = charged,
        .handshake_bytes = handshake,
        .begun_us = c->net.read_us,
        .peer = *http_peer(x),
        .member = x->origin ? x->origin->route.members[x->choice.member].url : span_of(NULL, 0),
        .fd = -1,
        .target_len = target.len,
    };
    memcpy(tunnel->target, target.ptr, target.len);
    if (upgrades) {
        tunnel->upgrade = http_upgrade_create(&asked, upgrade_ended, tunnel);
        if (!tunnel->upgrade) {
            memory_uncharge(memory, MEMORY_REQUESTS, charged);
            free(tunnel);
            return NULL;
        }
    }
    return tunnel;
}

static const char *
explain_bound(const struct http_service *http, const struct client *client, int error)
{
    if (error == EDQUOT) {
        origin_report_tunnel_refused(http->service->report, client);
        return "this client has as many tunnels as it may while others have theirs; try again";
    }
    return error == ENOBUFS ? "too many tunnels are open; try again" : "the proxy is out of memory";
}

/* Has the origin connected to. False without memory, or when the fetcher stops. */
static bool
connect_to(struct http_tunnel *tunnel, struct span url, bool configured)
{
    struct service *service = service_of_tunnel(tunnel)->service;
    const struct origin *origin = &service->proxy.config.origin;
    const struct request asked = {.client = tunnel->client,
                                  .rules = &tunnel->x->config->rules.shared,
                                  .settings = tunnel->x->config->settings,
                                  .flags = REQUEST_CONNECT_ONLY |
                                           (configured ? REQUEST_CONFIGURED : 0u)};
    const struct request *kept = request_keep(&asked, url, tunnel->client, &service->memory);
    bool begun = kept && origin->ops->submit(origin->context, kept, &sink, tunnel, &tunnel->fetch);

    request_release(&kept);
    return begun;
}

/* NULL, or why there is no tunnel; *bounded: at a bound on tunnels. */
static const char *
start(struct http_exchange *x, struct span url, bool *bounded)
{
    struct http_connection *c = x->stream.connection;
    struct http_service *http = c->worker->http;
    const struct request asked = {.url = url, .route = x->origin ? &x->origin->route : NULL};
    struct client *client = http_client(x);
    struct attempt_text text;
    struct attempt attempt;
    struct http_tunnel *tunnel;

    /* Since a check of the user began, it may have ended its side, or been left without memory. */
    if (c->net.finished)
        return "the connection is not read any more; try again";
    if (asked.route)
        origin_route_set_key(asked.route, &x->choice, url);
    x->choice.urgent = true;
    if (asked.route &&
        !origin_route_next(asked.route, &x->choice, proxy_now_us(&http->service->proxy)))
        return "no other member of the origin has a place";
    attempt = (struct attempt){.choice = x->choice};
    url = attempt_url(&attempt, &asked, &text);
    if (x->request.method_id != HTTP_CONNECT && !span_starts_with(url, span_str("http://")))
        return "TLS is not spoken to the origin of an upgrade";
    if (!client)
        return "the proxy is out of memory";
    if (is_over_rate(x))
        return "the client's rate of fetches is used up; try again";
    if (!client_share_take(&http->tunnels, client, 1)) {
        *bounded = true;
        return explain_bound(http, client, errno);
    }
    tunnel = create(x, url, attempt_host(&asked, &text));
    if (!tunnel) {
        client_share_give_back(&http->tunnels, client, 1);
        return "the proxy is out of memory";
    }
    tunnel->client = client_retain(client);
    tunnel->user = http_user_retain(x->user);
    if (asked.route) {
        tunnel->server = origin_server_retain(asked.route->members[x->choice.member].server);
        origin_server_enter(tunnel->server);
        atomic_fetch_add(&tunnel->server->tunnels, 1);
    }
    c->tunnel = tunnel;
    net_connection_begin_request(&c->net);
    if (connect_to(tunnel, url, asked.route != NULL)) {
        if (!tunnel->upgrades)
            x->logged = false; /* the tunnel is */
        return NULL;
    }
    net_connection_end_request(&c->net);
    free_tunnel(tunnel);
    return "the proxy is out of memory, or is being stopped";
}

void
http_tunnel_begin(struct http_exchange *x, struct span url)
{
    bool bounded = false;
    const char *why = start(x, url, &bounded);

    if (why && x->origin)
        origin_route_give_back(&x->origin->route, &x->choice,
                               proxy_now_us(&http_service_of(x)->service->proxy));
    if (why && x->request.method_id != HTTP_CONNECT && !bounded)
        http_exchange_serve(x);
    else if (why)
        (void)http_exchange_send_failure(x, FAILURE_OVERLOADED, span_str(why));
}

const struct http_user *
http_tunnel_user(const struct http_tunnel *tunnel)
{
    return tunnel->user;
}

/* ---- the connection's events ----------------------------------------------------------------- */

enum net_input
http_tunnel_received(struct http_tunnel *tunnel, struct span *input)
{
    return tunnel->relay ? net_relay_received(tunnel->relay, input) : NET_INPUT_HOLD;
}

void
http_tunnel_stopped(struct http_tunnel *tunnel)
{
    const struct origin *origin = &service_of_tunnel(tunnel)->service->proxy.config.origin;
    struct http_connection *c = tunnel->connection;
    struct http_exchange *x = tunnel->x;

    if (tunnel->relay) {
        net_relay_stopped(tunnel->relay);
    } else if (x && (!c->net.set->draining || !net_connection_is_open(&c->net))) {
        tunnel->x = NULL;
        http_exchange_abandon(x);
        if (tunnel->connecting)
            origin->ops->cancel(origin->context, tunnel->fetch);
        else
            leave(tunnel);
    }
}

void
http_tunnel_closed(struct http_tunnel *tunnel)
{
    end_tunnel(tunnel);
}
