#include "server/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "net/worker.h"
#include "proxy/control.h"
#include "proxy.h"
#include "server/confinement.h"
#include "server/descriptor_plan.h"
#include "server/listen.h"
#include "server/log.h"
#include "server/metrics_http.h"
#include "server/hold.h"
#include "server/http_service.h"
#include "server/notify.h"
#include "server/registration.h"
#include "server/service.h"
#include "server/service_metrics.h"

#define MOST_WORKERS 64u
#define LAST_REPLIES_US ((int64_t)1000000) /* for the last replies when the daemon stops */

/* rpcgen's dispatchers; proxy.h does not declare them. */
void proxy_fetchprog_1(struct svc_req *request, SVCXPRT *transport);
void proxy_fetchprog_2(struct svc_req *request, SVCXPRT *transport);

static const struct rpc_program programs[] = {
    {PROXY_FETCHPROG, PROXY_FETCHVERS, proxy_fetchprog_1},
    {PROXY_FETCHPROG, PROXY_VERS2, proxy_fetchprog_2},
};

/* Everything that is created at the start and freed at the end. */
struct parts {
    const struct options *options;
    struct address_policy *addresses;
    struct listening listening;
    int log_file; /* -1: none, or owned by the access log */
    struct registration *registration;
    struct descriptor_plan descriptors;
    struct service_user user; /* of --user */
    struct service service;
    struct http_service http;
};

static unsigned
worker_count(const struct options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    if (options->workers)
        return (unsigned)options->workers;
    return cores < 1 ? 1 : cores > (long)MOST_WORKERS ? MOST_WORKERS : (unsigned)cores;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int
make_addresses(struct parts *parts)
{
    const struct option_list *allowed = &parts->options->allow_net;
    char why[256];

    parts->addresses = address_policy_create();
    if (!parts->addresses) {
        log_error("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    for (size_t i = 0; i < allowed->count; i++)
        if (!address_policy_allow(parts->addresses, allowed->items[i], why, sizeof(why))) {
            log_error("allow-net: %s", why);
            return EX_CONFIG;
        }
    /* Opens a socket of the family AF_NETLINK, protocol NETLINK_ROUTE. */
    if (!address_policy_refuse_own(parts->addresses, why, sizeof(why))) {
        log_error("%s", why);
        return EX_OSERR;
    }
    return EX_OK;
}

/* A bound that is part of --max-fetches, lowered in proportion; 0 and 1 stay. */
static unsigned
lower(uint64_t bound, const struct parts *parts)
{
    uint64_t lowered = bound * parts->descriptors.fetches / parts->options->max_fetches;

    return (unsigned)(bound && !lowered ? 1 : lowered);
}

static int
make_fetcher(struct parts *parts)
{
    const struct options *options = parts->options;
    struct fetch_config config;
    char why[512] = "";

    fetch_config_default(&config);
    config.memory = &parts->service.memory;
    config.turn_begins = net_worker_hold_wakes;
    config.turn_ends = net_worker_wake_held;
    config.addresses = parts->addresses;
    config.max_active = parts->descriptors.fetches;
    config.max_waiting = lower(options->max_fetches_waiting, parts);
    config.max_active_per_client = lower(options->max_fetches_per_client, parts);
    config.max_active_per_origin = (unsigned)options->max_fetches_per_origin;
    config.max_queued = (unsigned)options->max_fetches_queued;
    config.max_redirects = (unsigned)options->max_redirects;
    config.resolver_threads = (unsigned)options->resolver_threads;
    config.reserved_descriptors = DESCRIPTOR_PLAN_RESERVE;
    config.max_body = PROXY_MAX_PAGE;
    config.max_headers = PROXY_MAX_HEADERS;
    config.resolve_timeout_us = options->resolve_timeout;
    config.connect_timeout_us = options->connect_timeout;
    config.first_byte_timeout_us = options->first_byte_timeout;
    config.stall_timeout_us = options->stall_timeout;
    config.total_timeout_us = options->fetch_timeout;
    config.dns_ttl_us = options->dns_ttl;
    config.cacert = options->cacert;
    config.upstream_proxy = options->upstream_proxy;
    config.user_agent = options->user_agent;
    config.allow_ports = (const char *const *)options->allow_port.items;
    config.connect_to = (const char *const *)options->connect_to.items;
    parts->service.fetcher = fetcher_create(&config, why, sizeof(why));
    if (!parts->service.fetcher) {
        log_error("%s", why);
        return EX_CONFIG;
    }
    return EX_OK;
}

static int
make_admins(struct service *service, const struct option_list *named)
{
    service->admins = calloc(named->count + 1, sizeof(*service->admins));
    if (!service->admins) {
        log_error("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    for (size_t i = 0; i < named->count; i++) {
        const struct passwd *user;
        uint64_t uid;

        if (units_parse_uint(named->items[i], 0, UINT32_MAX - 1, &uid)) {
            service->admins[service->admin_count++] = (uid_t)uid;
            continue;
        }
        user = getpwnam(named->items[i]);
        if (!user) {
            log_error("admin-uid: \"%s\" is not a number or a user of this machine",
                      named->items[i]);
            return EX_CONFIG;
        }
        service->admins[service->admin_count++] = user->pw_uid;
    }
    return EX_OK;
}

static int
make_tag_rules(struct service *service)
{
    struct buf why;
    bool made;

    buf_init(&why, 1024);
    made = service_read_tag_rules(service, &why);
    if (!made)
        log_error("%s", buf_str(&why));
    buf_free(&why);
    return made ? EX_OK : EX_CONFIG;
}

static int
make_cache(struct service *service)
{
    const struct options *options = service->options;
    struct cache_config config = {
        .capacity_pages = options->capacity_urls,
        .capacity_bytes = options->capacity_bytes,
        .shards = (unsigned)options->shards,
        .seed = options->seed,
        .body_only = options->count_bytes == COUNT_BODY,
    };
    enum cache_error error;
    char why[CONTROL_SENTENCE];

    if (!control_parse_policy(options->policy, &config.policy, why, sizeof(why))) {
        log_error("%s; --policy help lists them all", why);
        return EX_CONFIG;
    }
    if (config.shards == 0)
        config.shards =
            control_suitable_shards(service->workers, config.capacity_pages, config.capacity_bytes);
    service->cache = cache_create(&config, &error);
    if (!service->cache) {
        log_error("cannot create the cache: %s",
                  error == CACHE_BAD_CONFIG ? "its capacity is smaller than the number of shards"
                                            : strerror(ENOMEM));
        return error == CACHE_BAD_CONFIG ? EX_CONFIG : EX_OSERR;
    }
    return EX_OK;
}

static bool
is_privileged(void *context, const struct net_peer *peer)
{
    return service_is_admin(context, peer);
}

static int
make_rpc(struct service *service, const struct descriptor_plan *descriptors)
{
    const struct options *options = service->options;
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    limits.request_data = FRONT_REQUEST_DATA;
    limits.net.memory = &service->memory;
    limits.net.max_requests = (uint32_t)options->max_requests;
    limits.net.max_queued_bytes = (uint32_t)options->max_queued_bytes;
    limits.net.max_connections = descriptors->connections;
    limits.net.max_connections_per_client = descriptors->connections_per_client;
    limits.net.is_privileged = is_privileged;
    limits.net.reserved = DESCRIPTOR_PLAN_RESERVE;
    limits.net.inet_prefix = (uint8_t)options->client_prefix_ipv4;
    limits.net.inet6_prefix = (uint8_t)options->client_prefix_ipv6;
    limits.net.rates = (struct client_rates){
        .calls = options->rate_calls,
        .fetches = options->rate_fetches,
        .bytes = options->rate_bytes,
    };
    limits.net.idle_timeout_us = options->idle_timeout;
    limits.net.message_timeout_us = options->record_timeout;
    service->rpc = rpc_server_create(&limits, service->workers, programs,
                                     sizeof(programs) / sizeof(programs[0]), service);
    if (!service->rpc) {
        log_error("cannot create the workers: %s", strerror(errno));
        return EX_OSERR;
    }
    return EX_OK;
}

/* None without HTTP. Which sockets of a service manager are for it is not known yet. */
static uint32_t
wanted_tunnels(const struct options *options)
{
    return options->http.count || options->http_proxied.count || getenv("LISTEN_FDS")
               ? (uint32_t)options->max_tunnels
               : 0;
}

/* Settings that start no thread: before the sockets are opened and privileges are dropped. */
static int
make_settings(struct parts *parts)
{
    struct service *service = &parts->service;
    struct memory_hooks hooks;
    int status;

    service->magic = SERVICE_MAGIC;
    service->options = parts->options;
    service->workers = worker_count(parts->options);
    service->started_us = clock_monotonic_us();
    hooks = memory_hooks_of(service);
    memory_account_init(&service->memory, parts->options->max_transit, &hooks);
    parts->descriptors = descriptor_plan_make(
        (uint32_t)parts->options->max_connections,
        (uint32_t)parts->options->max_connections_per_client, (uint32_t)parts->options->max_fetches,
        wanted_tunnels(parts->options), service->workers, descriptor_plan_raise_limit());
    status = confinement_find_user(parts->options, &parts->user);
    if (status == EX_OK)
        status = make_addresses(parts);
    if (status == EX_OK)
        status = make_admins(service, &parts->options->admin_uid);
    if (status == EX_OK)
        status = make_tag_rules(service);
    if (status == EX_OK)
        status = make_cache(service);
    return status;
}

static bool
make_holds(struct service *service)
{
    const struct options *options = service->options;

    service->holds = calloc(1, sizeof(*service->holds));
    return service->holds && holds_init(service->holds, options->max_holds, options->hold_timeout);
}

static int
make_http(struct parts *parts)
{
    struct buf why;
    bool made;

    buf_init(&why, 1024);
    made = http_service_init(&parts->http, &parts->service, &why);
    if (made)
        parts->http.max_tunnels = parts->descriptors.tunnels;
    else
        log_error("%s", buf_str(&why));
    buf_free(&why);
    return made ? EX_OK : EX_CONFIG;
}

/* Parts that start threads, which inherit the privileges of the process. */
static int
make_parts(struct parts *parts)
{
    struct service *service = &parts->service;
    int status = make_fetcher(parts);

    if (status == EX_OK)
        status = make_rpc(service, &parts->descriptors);
    if (status == EX_OK && !(make_holds(service) && service_make_proxy(service))) {
        log_error("%s", strerror(ENOMEM));
        status = EX_OSERR;
    }
    if (status == EX_OK)
        status = make_http(parts);
    return status;
}

static int
refuse_access_log(const char *path)
{
    log_error("access log %s: %s", path, strerror(errno));
    return EX_CANTCREAT;
}

static int
open_access_log(struct parts *parts)
{
    const char *path = parts->options->access_log;

    if (!path)
        return EX_OK;
    parts->log_file = confinement_open_log(parts->options, &parts->user);
    return parts->log_file < 0 ? refuse_access_log(path) : EX_OK;
}

static int
start_access_log(struct parts *parts)
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
start_request_db(struct parts *parts)
{
    const struct options *options = parts->options;
    struct service *service = &parts->service;
    struct buf why;

    if (!options->request_db)
        return EX_OK;
    buf_init(&why, 1024);
    service->request_db =
        request_db_start(options->request_db, options->request_db_max, service->workers, &why);
    if (service->request_db) {
        service->logs = true;
        service->request_db_path = name_of_file(options->request_db);
    } else {
        log_error("request-db %s: %s", options->request_db, buf_str(&why));
    }
    buf_free(&why);
    return service->request_db ? EX_OK : EX_CANTCREAT;
}

static int
open_sockets(struct parts *parts)
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
listen_http(struct parts *parts, struct local_socket *sockets, unsigned count,
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
start(struct parts *parts)
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
    for (unsigned i = 0; error == 0 && i < listening->metrics_count; i++) {
        char name[LISTEN_NAME];

        log_info("metrics at http://%s/metrics",
                 listen_describe(listening->metrics[i].fd, name, sizeof(name)));
        error = net_server_listen(rpc_server_net(service->rpc), listening->metrics[i].fd,
                                  &metrics_http_protocol, service->metrics);
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

/* ---- tear-down ------------------------------------------------------------------------------- */

static void
free_parts(struct parts *parts)
{
    struct service *service = &parts->service;

    fetcher_destroy(service->fetcher);
    rpc_server_destroy(service->rpc);
    http_service_free(&parts->http);
    if (service->holds)
        holds_free(service->holds);
    free(service->holds);
    access_log_close(service->access_log);
    request_db_close(service->request_db);
    if (parts->log_file >= 0)
        close(parts->log_file);
    if (service->has_proxy)
        proxy_destroy(&service->proxy);
    cache_destroy(service->cache);
    metrics_destroy(service->metrics);
    address_policy_destroy(parts->addresses);
    tag_rules_free(&service->tag_rules);
    tag_rules_free(&service->write_rules);
    free(service->admins);
    free(service->request_db_path);
    privileges_free_user(&parts->user);
}

/*
 * Requests in flight continue until they are answered, the time limit passes, or a second signal
 * arrives. Then the fetches are ended, which answers the waiting requests, and the answers have
 * LAST_REPLIES_US to be sent.
 */
static void
stop_serving(struct parts *parts, const sigset_t *signals)
{
    struct service *service = &parts->service;
    int64_t until = clock_monotonic_us() + parts->options->stop_timeout;
    const struct timespec pause = {.tv_nsec = 10000000};
    struct rpc_stats stats;
    unsigned cut_off;

    registration_stop(parts->registration);
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
log_descriptor_limit(const struct parts *parts)
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

static void
log_start(const struct parts *parts)
{
    static const char passed[] = ", passed by the service manager";
    const struct listening *listening = &parts->listening;
    struct cache_config config;
    char text[CONTROL_CACHE_TEXT];

    cache_get_config(parts->service.cache, &config);
    log_info("cache: %s", control_describe_cache(&config, text, sizeof(text)));
    if (listening->port)
        log_info("listening on TCP port %u (%s%s%s)%s", listening->port,
                 listening->ipv4 ? "IPv4" : "", listening->ipv4 && listening->ipv6 ? ", " : "",
                 listening->ipv6 ? "IPv6" : "", listening->tcp_passed ? passed : "");
    if (listening->local.bound || listening->local_passed)
        log_info("listening on socket %s%s", listening->local.path,
                 listening->local_passed ? passed : "");
    log_info("sunproxyd %s serves with %u workers", SUNPROXY_VERSION, parts->service.workers);
}

static void
serve_until_stopped(struct parts *parts, const sigset_t *signals)
{
    for (;;) {
        int signal = sigwaitinfo(signals, NULL);

        if (signal == SIGHUP || signal == SIGUSR1) {
            notify_reloading();
            if (parts->service.access_log)
                access_log_reopen(parts->service.access_log);
            if (parts->service.request_db)
                request_db_reopen(parts->service.request_db);
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
    struct parts parts = {.options = options, .listening = LISTENING_NONE, .log_file = -1};
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

    status = make_settings(&parts);
    if (status == EX_OK)
        status = open_sockets(&parts);
    if (status == EX_OK)
        status = open_access_log(&parts);
    if (status == EX_OK)
        status = confinement_enter(options, &parts.listening, &parts.user);
    if (status == EX_OK)
        status = make_parts(&parts);
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
            serve_until_stopped(&parts, &signals);
            notify_manager("STOPPING=1");
            stop_serving(&parts, &signals);
            log_info("stopped");
        } else {
            registration_stop(parts.registration);
        }
    }
    listen_close(&parts.listening);
    free_parts(&parts);
    return status;
}

int
daemon_check(const struct options *options)
{
    struct parts parts = {.options = options, .log_file = -1};
    int status = make_settings(&parts);
    struct buf why;

    if (status == EX_OK)
        status = make_parts(&parts);

    buf_init(&why, 1024);
    if (status == EX_OK && listen_check(options, &why) != LISTEN_OK) {
        log_error("%s", buf_str(&why));
        status = EX_CONFIG;
    }
    buf_free(&why);
    free_parts(&parts);
    return status;
}
