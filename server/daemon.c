#include "server/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/control.h"
#include "proxy.h"
#include "server/components.h"
#include "server/logs/log.h"
#include "server/limits/memory_return.h"
#include "server/http/metrics_http.h"
#include "server/listen/notify.h"
#include "server/reload.h"

#define LAST_REPLIES_US ((int64_t)1000000) /* for the last replies when the daemon stops */

/* ---- logs ------------------------------------------------------------------------------------ */

static int
refuse_access_log(const char *path)
{
    log_error("access log %s: %s", path, access_log_explain(errno));
    return EX_CANTCREAT;
}

static int
open_access_log(struct components *parts)
{
    const char *path = parts->options->access_log;

    if (!path)
        return EX_OK;
    parts->log_file = confinement_open_log(parts->options, &parts->user);
    return parts->log_file < 0 ? refuse_access_log(path) : EX_OK;
}

static int
start_access_log(struct components *parts)
{
    const struct options *options = parts->options;
    int fd = parts->log_file;

    if (fd < 0)
        return EX_OK;
    parts->log_file = -1;
    parts->service.access_log =
        access_log_start(fd, options->access_log, (enum log_format)options->log_format);
    parts->service.logs = parts->service.access_log != NULL;
    return parts->service.access_log ? EX_OK : refuse_access_log(options->access_log);
}

/* For clients on this host. NULL if it cannot be sent. */
static char *
name_of_file(const char *path)
{
    char *name = realpath(path, NULL);

    if (name && strlen(name) > PROXY_MAX_NAME) {
        free(name);
        return NULL;
    }
    return name;
}

/* As the user that serves, and in the sandbox: what is possible now is possible later. */
static int
start_request_db(struct components *parts)
{
    const struct options *options = parts->options;
    struct service *service = &parts->service;
    struct buf why;

    if (!options->request_db)
        return EX_OK;
    buf_init(&why, 1024);
    service->request_db = request_db_start(options->request_db, options->request_db_max,
                                           service->workers, &request_times, &why);
    if (service->request_db) {
        service->logs = true;
        service->request_db_path = name_of_file(options->request_db);
    } else {
        log_error("request database %s: %s", options->request_db, buf_str(&why));
    }
    buf_free(&why);
    return service->request_db ? EX_OK : EX_CANTCREAT;
}

/* ---- sockets --------------------------------------------------------------------------------- */

static int
open_sockets(struct components *parts)
{
    static const int statuses[] = {
        [LISTEN_OK] = EX_OK,
        [LISTEN_BAD_ADDRESS] = EX_CONFIG,
        [LISTEN_IN_USE] = EX_UNAVAILABLE,
        [LISTEN_FAILED] = EX_OSERR,
    };
    enum listen_error error;
    struct buf why;

    buf_init(&why, 1024);
    error = listen_open(&parts->listening, parts->options, &why);
    if (error != LISTEN_OK)
        log_error("%s", buf_str(&why));
    buf_free(&why);
    return statuses[error];
}

/* 0 or an errno. */
static int
listen_http(struct components *parts, struct local_socket *sockets, unsigned count,
            const struct net_protocol *protocol, const char *how)
{
    int error = 0;

    for (unsigned i = 0; error == 0 && i < count; i++) {
        char name[LISTEN_NAME];

        log_info("serving HTTP on %s%s", listen_describe(sockets[i].fd, name, sizeof(name)), how);
        error = net_server_listen(rpc_server_net(parts->service.rpc), sockets[i].fd, protocol,
                                  &parts->http);
        if (error == 0)
            sockets[i].fd = -1;
    }
    return error;
}

/* The transport takes ownership of the sockets; the registration reads their addresses before. */
static int
start(struct components *parts)
{
    struct listening *listening = &parts->listening;
    struct service *service = &parts->service;
    int error = 0;

    for (unsigned i = 0; error == 0 && i < listening->tcp_count; i++) {
        error = rpc_server_listen(service->rpc, listening->tcp[i]);
        if (error == 0)
            listening->tcp[i] = -1;
    }
    if (error == 0 && listening->local.fd >= 0)
        error = rpc_server_listen(service->rpc, listening->local.fd);
    if (error == 0)
        error = listen_http(parts, listening->http, listening->http_count, &http_protocol,
                            listening->http_passed ? ", passed by the service manager" : "");
    if (error == 0)
        error = listen_http(parts, listening->http_proxied, listening->http_proxied_count,
                            &http_proxied_protocol, " behind the PROXY protocol");
    parts->monitoring.metrics = service->metrics;
    for (unsigned i = 0; error == 0 && i < listening->metrics_count; i++) {
        char name[LISTEN_NAME];

        log_info("metrics at http://%s/metrics",
                 listen_describe(listening->metrics[i].fd, name, sizeof(name)));
        error = net_server_listen(rpc_server_net(service->rpc), listening->metrics[i].fd,
                                  &metrics_http_protocol, &parts->monitoring);
        if (error == 0)
            listening->metrics[i].fd = -1;
    }
    if (error == 0) {
        if (!parts->options->no_rpcbind) {
            parts->registration = registration_start(listening);
            if (!parts->registration)
                log_warning("not registered with rpcbind: %s", strerror(errno));
        }
        listening->local.fd = -1;
        error = rpc_server_start(service->rpc);
    }
    if (error == 0)
        return EX_OK;
    log_error("cannot start serving: %s", strerror(error));
    return EX_OSERR;
}

/* ---- reloading ------------------------------------------------------------------------------- */

/* Without a configuration file there is nothing to be read again. */
static int
start_opener(struct components *parts)
{
    if (!parts->options->config || opener_start(&parts->opener, parts->options, daemon_check))
        return EX_OK;
    log_error("cannot start the process that reads the configuration: %s", strerror(errno));
    return EX_OSERR;
}

static void
reload_config(struct components *parts)
{
    static const char no_file[] = "there is no configuration file to be read (--config)";
    struct reload_calls calls;
    struct buf answer;
    bool done = false;

    buf_init(&answer, 1 << 20);
    reload_desk_take(&parts->service.desk, &calls);
    if (!parts->options->config)
        buf_append_str(&answer, no_file);
    else
        done = reload(&parts->service, &parts->opener, &answer);
    if (done) {
        log_info("SIGHUP: the configuration was read again: %s", buf_str(&answer));
    } else if (!parts->options->config) {
        log_info("SIGHUP: the logs are opened again; %s", no_file);
    } else {
        log_errors(buf_str(&answer));
        log_error("SIGHUP: not reloaded; the configuration in force stays");
    }
    reload_desk_answer(&calls, done, buf_str(&answer));
    buf_free(&answer);
}

/* ---- signals --------------------------------------------------------------------------------- */

static void
reopen_logs(struct components *parts)
{
    if (parts->service.access_log)
        access_log_reopen(parts->service.access_log);
    if (parts->service.request_db)
        request_db_reopen(parts->service.request_db);
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* Serves on while /healthz has status 503; a second signal ends that. */
static void
serve_in_delay(struct components *parts, const sigset_t *signals)
{
    int64_t until = clock_monotonic_us() + parts->options->stop_delay, left;

    atomic_store(&parts->monitoring.stopping, true);
    while ((left = until - clock_monotonic_us()) > 0) {
        const struct timespec time = {.tv_sec = left / 1000000, .tv_nsec = left % 1000000 * 1000};
        int signal = sigtimedwait(signals, NULL, &time);

        if (signal == SIGTERM || signal == SIGINT)
            return;
        if (signal == SIGHUP || signal == SIGUSR1)
            reopen_logs(parts);
    }
}

/*
 * Requests in flight continue until they are answered, the time limit passes, or a second signal
 * arrives. Then the fetches are ended, which answers the waiting requests, and the answers have
 * LAST_REPLIES_US to be sent.
 */
static void
stop_serving(struct components *parts, const sigset_t *signals)
{
    struct service *service = &parts->service;
    const struct timespec pause = {.tv_nsec = 10000000};
    struct rpc_stats stats;
    unsigned cut_off;
    int64_t until;

    reload_desk_close(&service->desk, "the daemon is stopping");
    registration_stop(parts->registration);
    serve_in_delay(parts, signals);
    until = clock_monotonic_us() + parts->options->stop_timeout;
    rpc_server_stop_accepting(service->rpc);
    for (;;) {
        int signal;

        rpc_server_get_stats(service->rpc, &stats);
        if (stats.net.connections == 0 || clock_monotonic_us() >= until)
            break;
        signal = sigtimedwait(signals, NULL, &pause);
        if (signal == SIGTERM || signal == SIGINT)
            break;
    }
    fetcher_stop(service->fetcher);
    cut_off = rpc_server_stop(service->rpc, LAST_REPLIES_US);
    if (cut_off)
        log_warning("%u connections were closed with requests in flight", cut_off);
}

/* ---- running --------------------------------------------------------------------------------- */

static void
log_descriptor_limit(const struct components *parts)
{
    const struct descriptor_plan *plan = &parts->descriptors;
    const struct options *options = parts->options;
    char per_client[48] = "", tunnels[32] = "";

    if (!descriptor_plan_is_short(plan))
        return;
    if (plan->connections_per_client)
        snprintf(per_client, sizeof(per_client), " (%u of one client)",
                 (unsigned)plan->connections_per_client);
    if (plan->tunnels)
        snprintf(tunnels, sizeof(tunnels), " and %u tunnels", (unsigned)plan->tunnels);
    log_warning("the limit of open files is %" PRIu64 ", and %" PRIu64 " connections with %" PRIu64
                " fetches need %" PRIu64 ": at most %u connections%s%s %u fetches%s at once",
                plan->limit, options->max_connections, options->max_fetches, plan->need,
                (unsigned)plan->connections, per_client, *tunnels ? "," : " and",
                (unsigned)plan->fetches, tunnels);
}

/* Is there no such address, or one that only clients by default can connect to? */
static bool
is_for_clients(const struct service *service, const struct sockaddr_storage *address)
{
    return address->ss_family == AF_UNSPEC ||
           networks_have_address(&service_config(service)->clients,
                                 (const struct sockaddr *)address);
}

static void
log_start(const struct components *parts)
{
    static const char passed[] = ", passed by the service manager";
    const struct listening *listening = &parts->listening;
    const struct service *service = &parts->service;
    char ipv4[INET6_ADDRSTRLEN], ipv6[INET6_ADDRSTRLEN];
    struct cache_config config;
    char text[CONTROL_CACHE_TEXT];

    cache_get_config(service->cache, &config);
    log_info("cache: %s", control_describe_cache(&config, text, sizeof(text)));
    if (listening->port)
        log_info("listening on TCP port %u (%s%s%s)%s", listening->port,
                 listen_address_text(&listening->ipv4, ipv4),
                 listening->ipv4.ss_family && listening->ipv6.ss_family ? ", " : "",
                 listen_address_text(&listening->ipv6, ipv6), listening->tcp_passed ? passed : "");
    if (listening->local.bound || listening->local_passed)
        log_info("listening on socket %s%s", listening->local.path,
                 listening->local_passed ? passed : "");
    if (!parts->options->client_net.count &&
        !(is_for_clients(service, &listening->ipv4) && is_for_clients(service, &listening->ipv6)))
        log_warning("other hosts can connect over RPC, but their calls are denied; name those that "
                    "may call with --client-net");
    log_info("sunproxyd %s serves with %u workers", SUNPROXY_VERSION, service->workers);
}

static void
serve_until_stopped(struct components *parts, const sigset_t *signals)
{
    static const struct timespec seldom = {.tv_sec = MEMORY_RETURN_SECONDS};
    static const struct timespec often = {.tv_nsec = (long)PROBER_LOOK_MS * 1000000};
    struct memory_return memory = {0};
    int64_t looked_us = 0;

    for (;;) {
        bool probes = prober_look(&parts->prober);
        int signal = sigtimedwait(signals, NULL, probes ? &often : &seldom);

        if (clock_monotonic_us() - looked_us >= (int64_t)MEMORY_RETURN_SECONDS * 1000000) {
            memory_return_look(&memory, &parts->service);
            looked_us = clock_monotonic_us();
        }
        if (signal == SIGHUP || signal == SIGUSR1) {
            notify_reloading();
            reopen_logs(parts);
            if (signal == SIGHUP)
                reload_config(parts);
            notify_manager("READY=1");
        } else if (signal == SIGTERM || signal == SIGINT) {
            log_info("stopping on %s", signal == SIGTERM ? "SIGTERM" : "SIGINT");
            return;
        }
    }
}

int
daemon_run(const struct options *options)
{
    struct components parts = {
        .options = options, .listening = LISTENING_NONE, .log_file = -1, .opener.fd = -1};
    sigset_t signals;
    int status;

    /* Before any thread: all inherit the mask, and only the main thread takes signals. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1); /* what nginx reopens its logs on */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log at its size limit is a write error */
    signal(SIGUSR2, SIG_IGN); /* has a meaning in other servers, none here */

    status = start_opener(&parts);
    if (status == EX_OK)
        status = components_make_settings(&parts);
    if (status == EX_OK)
        status = open_sockets(&parts);
    if (status == EX_OK)
        status = open_access_log(&parts);
    if (status == EX_OK)
        status = confinement_enter(options, &parts.listening, &parts.user);
    if (status == EX_OK)
        status = components_make_threads(&parts);
    if (status == EX_OK)
        status = start_access_log(&parts);
    if (status == EX_OK)
        status = start_request_db(&parts);
    if (status == EX_OK) {
        log_descriptor_limit(&parts);
        status = start(&parts);
        if (status == EX_OK) {
            log_start(&parts);
            notify_manager("READY=1\nSTATUS=serving");
            reload_desk_open(&parts.service.desk);
            serve_until_stopped(&parts, &signals);
            notify_manager("STOPPING=1");
            stop_serving(&parts, &signals);
            log_info("stopped");
        } else {
            registration_stop(parts.registration);
        }
    }
    listen_close(&parts.listening);
    components_free(&parts);
    opener_stop(&parts.opener);
    return status;
}
