#include "server/components.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/units.h"
#include "fetch/address.h"
#include "net/worker.h"
#include "proxy/control.h"
#include "rpc/protocol.h"
#include "proxy.h"
#include "rules/rules.h"
#include "server/config/config_files.h"
#include "server/rpc/cursor.h"
#include "server/logs/log.h"
#include "server/commands/keeper.h"
#include "server/limits/cgroup.h"
#include "server/logs/origin_report.h"
#include "proxy/invalidation.h"
#include "proxy/purging.h"
#include "server/peers/peer_news.h"
#include "store/store.h"

#define STORE_WAIT_US ((int64_t)60000000) /* for a process that is replaced to leave its store */
#define MOST_WORKERS 64u

/* rpcgen's dispatchers; proxy.h does not declare them. */
void proxy_fetchprog_1(struct svc_req *request, SVCXPRT *transport);
void proxy_fetchprog_2(struct svc_req *request, SVCXPRT *transport);

static const struct rpc_program programs[] = {
    {PROXY_FETCHPROG, PROXY_FETCHVERS, proxy_fetchprog_1},
    {PROXY_FETCHPROG, PROXY_VERS2, proxy_fetchprog_2},
};

static unsigned
worker_count(const struct options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    long allowed = (long)cgroup_limits_read(CGROUP_MEMBERSHIP, CGROUP_ROOT).processors;

    if (options->workers)
        return (unsigned)options->workers;
    if (allowed && allowed < cores)
        cores = allowed;
    return cores < 1 ? 1 : cores > (long)MOST_WORKERS ? MOST_WORKERS : (unsigned)cores;
}

/* The addresses that the options allow; NULL, which is logged. *status is that of the failure. */
static struct address_policy *
make_addresses(const struct options *options, int *status)
{
    const struct option_list *allowed = &options->allow_net;
    struct address_policy *addresses = address_policy_create();
    char why[256];

    *status = addresses ? EX_OK : EX_OSERR;
    if (!addresses)
        log_error("%s", strerror(ENOMEM));
    for (size_t i = 0; addresses && i < allowed->count; i++)
        if (!address_policy_allow(addresses, allowed->items[i], why, sizeof(why))) {
            log_error("%sallow-net: %s", option_place(allowed, i), why);
            *status = EX_CONFIG;
        }
    /* Opens a socket of the family AF_NETLINK, protocol NETLINK_ROUTE. */
    if (addresses && !address_policy_refuse_own(addresses, why, sizeof(why))) {
        log_error("%s", why);
        *status = EX_OSERR;
    }
    if (*status == EX_OK)
        return addresses;
    address_policy_destroy(addresses);
    return NULL;
}

/* A bound that is part of --max-fetches, lowered in proportion; 0 and 1 stay. */
static unsigned
lower(uint64_t bound, const struct options *options, const struct descriptor_plan *plan)
{
    uint64_t lowered = bound * plan->fetches / options->max_fetches;

    return (unsigned)(bound && !lowered ? 1 : lowered);
}

/* The setting of that name, as the fetcher takes it. */
static bool
check_setting(const char *place, const char *name, const char *text,
              bool (*check)(const char *text, char *why, size_t why_size))
{
    char why[512];

    if (check(text, why, sizeof(why)))
        return true;
    log_error("%s%s: %s", place, name, why);
    return false;
}

static bool
check_list(const struct option_list *list, const char *name,
           bool (*check)(const char *text, char *why, size_t why_size))
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++)
        ok = check_setting(option_place(list, i), name, list->items[i], check) && ok;
    return ok;
}

static bool
check_one(const struct options *options, const char *name, const char *text,
          bool (*check)(const char *text, char *why, size_t why_size))
{
    return !text || check_setting(options_place(options, name), name, text, check);
}

static bool
list_has(const struct option_list *list, const char *text)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

/* Every tunnel to a port that fetches refuse would be refused. */
static bool
check_connect_ports(const struct options *options)
{
    const struct option_list *ports = &options->connect_port, *allowed = &options->allow_port;
    bool ok = true;

    for (size_t i = 0; i < ports->count; i++) {
        uint64_t port;

        if (!units_parse_uint(ports->items[i], 1, UINT16_MAX, &port) ||
            !port_is_blocked((uint16_t)port) || list_has(allowed, "any") ||
            list_has(allowed, ports->items[i]))
            continue;
        log_error("%sconnect-port: port %s is for another protocol and needs allow-port, too",
                  option_place(ports, i), ports->items[i]);
        ok = false;
    }
    return ok;
}

/* Into the configuration, which may be NULL: then they are checked. */
static bool
read_files(const struct options *options, struct config *config)
{
    struct buf files, why;
    bool ok;

    buf_init(&files, CONFIG_FILES_MAX);
    buf_init(&why, 65536);
    ok = config_files_read(options, &files, &why) &&
         (!config || config_take_files(config, buf_span(&files), &why));
    if (!ok)
        log_errors(buf_str(&why));
    buf_free(&files);
    buf_free(&why);
    return ok;
}

/* What fetcher_create() would refuse without the name of the option. */
static int
check_fetcher_settings(const struct options *options, struct config *config)
{
    bool ok = check_list(&options->connect_to, "connect-to", fetch_check_connect_to);

    ok = check_list(&options->allow_port, "allow-port", fetch_check_port) && ok;
    ok = check_one(options, "upstream-proxy", options->upstream_proxy, fetch_check_proxy) && ok;
    ok = check_connect_ports(options) && ok;
    ok = read_files(options, config) && ok;
    return ok ? EX_OK : EX_CONFIG;
}

static void
report_queued(void *context, const struct fetch_queued *queued)
{
    origin_report_queued(context, queued);
}

static struct fetch_config
fetch_config_of(const struct components *parts, const struct options *options,
                const struct descriptor_plan *plan, const struct address_policy *addresses)
{
    struct fetch_config config;

    fetch_config_default(&config);
    config.memory = (struct memory_account *)(uintptr_t)&parts->service.memory;
    config.turn_begins = net_worker_hold_wakes;
    config.turn_ends = net_worker_wake_held;
    config.queued = report_queued;
    config.context = parts->service.report;
    config.addresses = addresses;
    config.owns_addresses = true;
    config.max_active = plan->fetches;
    config.max_waiting = lower(options->max_fetches_waiting, options, plan);
    config.max_active_per_client = lower(options->max_fetches_per_client, options, plan);
    config.max_active_per_origin = lower(options->max_fetches_per_origin, options, plan);
    config.max_idle_per_origin = (unsigned)options->max_idle_per_origin;
    config.max_queued = (unsigned)options->max_fetches_queued;
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
    config.allow_ports = (const char *const *)options->allow_port.items;
    config.connect_to = (const char *const *)options->connect_to.items;
    return config;
}

static int
make_fetcher(struct components *parts)
{
    struct fetch_config config =
        fetch_config_of(parts, parts->options, &parts->descriptors, parts->addresses);
    char why[512] = "";

    config.authorities = service_config(&parts->service)->authorities;
    parts->service.fetcher = fetcher_create(&config, why, sizeof(why));
    if (!parts->service.fetcher) {
        log_error("%s", why);
        return EX_CONFIG;
    }
    parts->addresses = NULL;
    service_config(&parts->service)->settings = fetcher_get_settings(parts->service.fetcher);
    return EX_OK;
}

static int
make_config(struct service *service)
{
    struct config *config;
    struct buf why;

    buf_init(&why, 65536);
    config = config_create(service->options, &why);
    log_errors(buf_str(&why));
    buf_free(&why);
    atomic_init(&service->config, config);
    return config ? EX_OK : EX_CONFIG;
}

static int
make_report(struct service *service)
{
    const struct config *config;

    service->report = origin_report_create();
    if (!service->report) {
        log_error("%s", strerror(ENOMEM));
        return EX_OSERR;
    }
    config = service_config(service);
    if (config)
        origin_report_watch(service->report, &config->origins, &config->peers.rows);
    return EX_OK;
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
        log_error("%spolicy: %s; --policy help lists them all", options_place(options, "policy"),
                  why);
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

static bool
may_call(void *context, const struct net_peer *peer)
{
    return service_is_client(context, peer);
}

static struct net_limits
net_limits_of(struct service *service, const struct options *options,
              const struct descriptor_plan *plan)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;

    limits.memory = &service->memory;
    limits.max_requests = (uint32_t)options->max_requests;
    limits.max_queued_bytes = (uint32_t)options->max_queued_bytes;
    limits.max_connections = plan->connections;
    limits.max_connections_per_client = plan->connections_per_client;
    limits.is_privileged = is_privileged;
    limits.reserved = DESCRIPTOR_PLAN_RESERVE;
    limits.inet_prefix = (uint8_t)options->client_prefix_ipv4;
    limits.inet6_prefix = (uint8_t)options->client_prefix_ipv6;
    limits.rates = (struct client_rates){
        .calls = options->rate_calls,
        .fetches = options->rate_fetches,
        .bytes = options->rate_bytes,
    };
    limits.idle_timeout_us = options->idle_timeout;
    limits.message_timeout_us = options->record_timeout;
    return limits;
}

static int
make_rpc(struct service *service, const struct descriptor_plan *plan)
{
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    limits.request_data = FRONT_REQUEST_DATA;
    limits.may_call = may_call;
    limits.net = net_limits_of(service, service->options, plan);
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

static struct descriptor_plan
plan_beside(uint64_t files, const struct options *options, unsigned workers, uint64_t limit)
{
    struct descriptor_plan plan = descriptor_plan_make(
        (uint32_t)options->max_connections, (uint32_t)options->max_connections_per_client,
        (uint32_t)options->max_fetches, wanted_tunnels(options), workers,
        limit > files ? limit - files : 0);

    plan.need += files;
    plan.limit = limit;
    plan.files = files;
    return plan;
}

/* What the store has open is set aside. */
static struct descriptor_plan
plan_descriptors(const struct options *options, unsigned workers, uint64_t limit)
{
    return plan_beside(options->store ? store_descriptors(options->store_size) : 0, options,
                       workers, limit);
}

/* A store does not take the descriptors of nearly all connections. */
static int
check_descriptors(const struct options *options, unsigned workers,
                  const struct descriptor_plan *plan)
{
    const struct descriptor_plan without = plan_beside(0, options, workers, plan->limit);
    const uint32_t least = descriptor_plan_least(&without, (uint32_t)options->max_connections);

    if (plan->connections >= least)
        return EX_OK;
    log_error("%sstore-size: a store of %" PRIu64 " bytes needs %" PRIu64 " open files, and of the "
              "limit of %" PRIu64 " it would leave %u for connections, which need %u at least: "
              "lower store-size, or raise the limit (ulimit -n, LimitNOFILE)",
              options_place(options, "store-size"), options->store_size, plan->files, plan->limit,
              (unsigned)plan->connections, (unsigned)least);
    return EX_CONFIG;
}

static int
make_http(struct components *parts)
{
    if (http_service_init(&parts->http, &parts->service, parts->descriptors.tunnels))
        return EX_OK;
    log_error("%s", strerror(ENOMEM));
    return EX_OSERR;
}

/* Options on the store that are given and do nothing. */
static void
warn_of_idle_options(const struct options *options)
{
    static const char *const of_store[] = {"store-size", "store-admit", "store-sync", "store-reads",
                                           "store-readers"};
    struct options defaults;

    if (options->store && strcasecmp(options->policy, "none") == 0)
        log_warning("%sstore: nothing is stored with policy none", options_place(options, "store"));
    if (options->store)
        return;
    if (options_init(&defaults)) {
        for (size_t i = 0; i < sizeof(of_store) / sizeof(of_store[0]); i++)
            if (options_differ(options, &defaults, (const char *const[]){of_store[i], NULL}))
                log_warning("%s%s: it has no effect without store",
                            options_place(options, of_store[i]), of_store[i]);
    }
    options_free(&defaults);
}

/* The first one that is not EX_OK. */
static int
first_error(int before, int status)
{
    return before == EX_OK ? status : before;
}

int
components_make_settings(struct components *parts)
{
    struct service *service = &parts->service;
    struct memory_hooks hooks;
    int status, made;

    service->magic = SERVICE_MAGIC;
    service->options = parts->options;
    service->workers = worker_count(parts->options);
    service->started_us = clock_monotonic_us();
    hooks = memory_hooks_of(service);
    memory_account_init(&service->memory, parts->options->max_transit, &hooks);
    log_limit_init(&service->tier_log);
    reload_desk_init(&service->desk);
    parts->descriptors =
        plan_descriptors(parts->options, service->workers, descriptor_plan_raise_limit());
    /* Each one whatever the others are, so that every error is logged. */
    warn_of_idle_options(parts->options);
    status = check_descriptors(parts->options, service->workers, &parts->descriptors);
    status = first_error(status, confinement_find_user(parts->options, &parts->user));
    parts->addresses = make_addresses(parts->options, &made);
    status = first_error(status, made);
    status = first_error(status, make_config(service));
    status = first_error(status, make_cache(service));
    status = first_error(status, check_fetcher_settings(parts->options, service_config(service)));
    status = first_error(status, make_report(service));
    return first_error(status, make_http(parts));
}

static bool
make_cursors(struct service *service)
{
    const struct options *options = service->options;

    service->cursors = calloc(1, sizeof(*service->cursors));
    if (service->cursors)
        cursors_init(service->cursors, options->max_cursors, options->cursor_timeout);
    return service->cursors != NULL;
}

static struct users_config
users_config_of(const struct options *options)
{
    return (struct users_config){.timeout_us = options->auth_timeout, .ttl_us = options->auth_ttl};
}

/* Without a keeper, as where the configuration is checked, there are no helpers. */
static bool
make_users(struct components *parts)
{
    struct users_config config = users_config_of(parts->options);

    if (parts->helpers >= 0) {
        config.keeper = parts->helpers;
        config.helpers = (unsigned)parts->options->auth_helper_children;
        config.concurrency = (unsigned)parts->options->auth_helper_concurrency;
        parts->helpers = -1;
    }
    parts->service.users = users_create(&config);
    return parts->service.users != NULL;
}

static bool
make_peers(struct service *service)
{
    service->peer_auth = peer_auth_create(clock_wall_us());
    service_config(service)->peers.group.auth = service->peer_auth;
    service->news = peer_news_create(service);
    return service->peer_auth && service->news;
}

static void
log_store(void *context, enum store_severity severity, const char *sentence)
{
    (void)context;
    if (severity == STORE_INFO)
        log_info("%s", sentence);
    else if (severity == STORE_WARNING)
        log_warning("%s", sentence);
    else
        log_error("%s", sentence);
}

static uint64_t
hash_list(uint64_t hash, const struct option_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        hash = hash64_uint(hash ^ hash64_bytes(span_str(list->items[i])));
    return hash64_uint(hash);
}

/*
 * The hosts of a row, and the first of its members: rows that share none have other pages. One that
 * gets more members keeps its pages.
 */
static uint64_t
hash_origin(uint64_t hash, const struct http_origin *row)
{
    hash = hash64_uint(hash ^ hash64_bytes(row->host));
    hash = hash64_uint(hash ^ hash64_bytes(row->route.prefix));
    hash = hash64_uint(hash ^ hash64_bytes(row->route.name));
    hash = hash64_uint(hash ^ (uint64_t)row->route.host);
    return row->route.count ? hash64_uint(hash ^ hash64_bytes(row->route.members[0].url)) : hash;
}

/* Rules and tags decide under which key a page is stored, and by what it is purged. */
static uint64_t
hash_keys(uint64_t hash, const struct config *config)
{
    const struct options *options = config->options;

    hash = hash_list(hash, &options->rule);
    for (size_t i = 0; i < options->rule.count; i++)
        hash = hash64_uint(hash ^ rules_digest_of_files(config->table, i));
    hash = hash_list(hash, &options->tag_rule);
    hash = hash_list(hash, &options->tag_field);
    for (size_t i = 0; i < config->origins.count; i++)
        hash = hash_origin(hash, &config->origins.rows[i]);
    return hash;
}

uint64_t
components_store_terms(const struct config *config)
{
    return hash_keys(hash64_uint(config->options->freshness), config);
}

uint64_t
components_tier_terms(const struct config *config)
{
    const struct options *options = config->options;
    uint64_t hash = hash64_uint(options->freshness);

    hash = hash64_uint(hash ^ (options->store_cookies ? 1u : 0));
    hash = hash64_uint(hash ^ (options->store_client_errors ? 1u : 0));
    return hash_keys(hash, config);
}

/*
 * What other daemons have purged while this one was not there is not known, and some may not be
 * reachable now: everything on disk is validated before it is used.
 */
static void
expire_store(struct store *store)
{
    const struct span all = span_of("", 0);
    const struct source_marked marked = store_mark(store, CACHE_BY_PREFIX, true, all, all, NULL);

    (void)store_mark(store, CACHE_BY_PREFIX, true, all, all, &marked);
}

/* What another process has purged. */
static void
take_purged(void *context, const struct source *from, const struct source_purge *p)
{
    struct service *service = context;
    const struct purging purging = {.by = p->by,
                                    .name = p->name,
                                    .fate = p->soft ? CACHE_EXPIRED : CACHE_REMOVED,
                                    .told_by = from};

    if (p->by == CACHE_BY_TAG && !p->soft)
        invalidation_purge_tag(&service->proxy, p->name, p->scope, from);
    else
        (void)purging_apply(&service->proxy, &purging);
}

int
components_make_rings(struct components *parts)
{
    return worker_rings_make(parts->options, parts->service.workers, &parts->rings) ? EX_OK
                                                                                    : EX_OSERR;
}

int
components_make_store(struct components *parts)
{
    const struct options *options = parts->options;
    struct service *service = &parts->service;
    struct buf why;

    if (!options->store)
        return EX_OK;
    buf_init(&why, 1024);
    service->store = store_open(
        &(struct store_config){
            .folder = options->store,
            .max_bytes = options->store_size,
            .terms = components_store_terms(service_config(service)),
            .write_all = options->store_admit == STORE_ADMIT_ALL,
            .waits_us = parts->restart.fd >= 0 ? STORE_WAIT_US : 0,
            .readers = (unsigned)options->store_readers,
            .lanes = service->workers,
            .rings = worker_rings_of(parts->rings),
            .sync_us = options->store_sync,
            .cache = service->cache,
            .account = &service->memory,
            .failure = FAILURE_INTERNAL,
            .purged = take_purged,
            .log = log_store,
            .context = service,
        },
        &why);
    if (service->store)
        service->store_path = service_name_file(options->store);
    if (service->store && (config_peers_of(&service_config(service)->peers) || options->shared))
        expire_store(service->store);
    if (!service->store)
        log_error("%sstore: %s: %s", options_place(options, "store"), options->store,
                  buf_str(&why));
    buf_free(&why);
    return service->store ? EX_OK : EX_CANTCREAT;
}

static void
log_tier(void *context, enum tier_log kind, const char *sentence)
{
    struct service *service = context;
    const uint64_t subject = hash64_bytes(span_str(sentence));
    const int64_t now_us = clock_monotonic_us();
    uint64_t withheld = 0;

    if (kind == TIER_LOG_INFO) {
        log_info("%s", sentence);
        return;
    }
    if (kind == TIER_LOG_WARNING)
        log_limit_note(&service->tier_log, subject, now_us, &withheld);
    else if (!log_limit_take(&service->tier_log, subject, now_us, &withheld))
        return;
    if (withheld)
        log_warning("%s (%llu more since the last such line)", sentence,
                    (unsigned long long)withheld);
    else
        log_warning("%s", sentence);
}

int
components_make_tier(struct components *parts)
{
    const struct options *options = parts->options;
    struct service *service = &parts->service;
    struct config *config = service_config(service);

    if (!options->shared)
        return EX_OK;
    service->tier = tier_open(&(struct tier_config){
        .servers = &config->tier.servers,
        .keys = &config->tier.keys,
        .terms = components_tier_terms(config),
        .most = options->shared_max,
        .poll_us = options->shared_poll,
        .skew_us = options->shared_skew,
        .wait_us = options->shared_wait,
        .late_us = options->shared_timeout,
        .unsaved = options->store != NULL,
        .cache = service->cache,
        .account = &service->memory,
        .failure = FAILURE_INTERNAL,
        .purged = take_purged,
        .log = log_tier,
        .context = service,
    });
    if (service->tier) {
        untold_begin(&parts->untold, options->store, service->tier);
        return EX_OK;
    }
    log_error("%s", strerror(ENOMEM));
    return EX_OSERR;
}

int
components_make_threads(struct components *parts)
{
    struct service *service = &parts->service;
    int status = make_fetcher(parts);

    if (status == EX_OK)
        status = make_rpc(service, &parts->descriptors);
    if (status == EX_OK &&
        !worker_rings_begin(parts->rings, service->store, rpc_server_net(service->rpc)))
        status = EX_OSERR;
    if (status == EX_OK && !(make_cursors(service) && make_users(parts) && make_peers(service) &&
                             service_make_proxy(service) && prober_init(&parts->prober, service))) {
        log_error("%s", strerror(ENOMEM));
        status = EX_OSERR;
    }
    if (status == EX_OK && service->tier && tier_start(service->tier) != 0) {
        log_error("shared: %s", strerror(errno));
        status = EX_OSERR;
    }
    return status;
}

struct settings *
components_make_fetch_settings(struct components *parts, const struct options *options,
                               struct span authorities, struct buf *why)
{
    const struct descriptor_plan plan =
        plan_descriptors(options, parts->service.workers, parts->descriptors.limit);
    int status;
    struct address_policy *addresses = make_addresses(options, &status);
    struct fetch_config config = fetch_config_of(parts, options, &plan, addresses);
    struct settings *settings = NULL;
    char sentence[512] = "the addresses of --allow-net cannot be read";

    config.authorities = authorities;
    if (addresses)
        settings = fetch_settings_create(&config, sentence, sizeof(sentence));
    if (!settings) {
        buf_append_str(why, sentence);
        address_policy_destroy(addresses);
    }
    return settings;
}

void
components_change(struct components *parts, const struct config *config)
{
    const struct options *options = config->options;
    struct service *service = &parts->service;
    const struct users_config users = users_config_of(options);
    struct net_limits limits;

    parts->descriptors = plan_descriptors(options, service->workers, parts->descriptors.limit);
    limits = net_limits_of(service, options, &parts->descriptors);
    rpc_server_set_limits(service->rpc, &limits);
    fetcher_configure(service->fetcher, config->settings);
    memory_account_set_limit(&service->memory, options->max_transit);
    client_share_set_slots(&parts->http.tunnels, parts->descriptors.tunnels,
                           options->max_fetches_per_client != 0);
    cursors_set_bounds(service->cursors, options->max_cursors, options->cursor_timeout);
    users_configure(service->users, &users);
    log_setup((enum log_level)options->log_level, log_format_of(options->log_format));
}

void
components_get_services(struct components *parts, struct listen_service *services)
{
    static const char http[] = "serving HTTP on %s%s";
    const struct listen_service rpc = {&rpc_protocol, rpc_server_service(parts->service.rpc), NULL};
    const struct listen_service by_role[LISTEN_ROLES] = {
        [LISTEN_RPC] = rpc,
        [LISTEN_LOCAL] = rpc,
        [LISTEN_HTTP] = {&http_protocol, &parts->http, http},
        [LISTEN_HTTP_PROXIED] = {&http_proxied_protocol, &parts->http,
                                 "serving HTTP on %s behind the PROXY protocol%s"},
        [LISTEN_METRICS] = {&metrics_http_protocol, &parts->monitoring,
                            "metrics at http://%s/metrics%s"},
    };

    memcpy(services, by_role, sizeof(by_role));
}

void
components_register(struct components *parts)
{
    if (parts->options->no_rpcbind)
        return;
    parts->registration = registration_start(&parts->listening);
    if (!parts->registration)
        log_warning("not registered with rpcbind: %s", strerror(errno));
}

void
components_free(struct components *parts)
{
    struct service *service = &parts->service;

    fetcher_destroy(service->fetcher);
    worker_rings_end(parts->rings);
    store_close(service->store);
    worker_rings_free(parts->rings);
    tier_close(service->tier);
    log_limit_free(&service->tier_log);
    prober_free(&parts->prober);
    rpc_server_destroy(service->rpc);
    http_service_free(&parts->http);
    free(service->cursors);
    users_destroy(service->users);
    peer_news_destroy(service->news);
    peer_auth_destroy(service->peer_auth);
    access_log_close(service->access_log);
    request_db_close(service->request_db);
    if (parts->log_file >= 0)
        close(parts->log_file);
    if (parts->helpers >= 0)
        close(parts->helpers);
    keeper_wait(parts->log_keeper);
    keeper_wait(parts->helpers_keeper);
    if (service->has_proxy)
        proxy_destroy(&service->proxy);
    cache_destroy(service->cache);
    metrics_destroy(service->metrics);
    origin_report_destroy(service->report);
    address_policy_destroy(parts->addresses);
    config_release(service_config(service));
    free(service->request_db_path);
    free(service->store_path);
    privileges_free_user(&parts->user);
}
