#include "server/daemon.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
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
#include "server/listen/serve.h"
#include "server/peers/peer_news.h"
#include "server/reload.h"
#include "store/store.h"

#define LAST_REPLIES_US ((int64_t)1000000) /* for the last replies when the daemon stops */
#define LEAVE_STORE_US ((int64_t)10000000)  /* for the disk of the store then */

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
    parts->log_file = confinement_open_log(parts->options, &parts->user, &parts->log_keeper);
    return parts->log_file < 0 ? refuse_access_log(path) : EX_OK;
}

static int
start_helpers(struct components *parts)
{
    if (!parts->options->auth_helper)
        return EX_OK;
    parts->helpers =
        confinement_start_helpers(parts->options, &parts->user, &parts->helpers_keeper);
    if (parts->helpers < 0)
        log_error("auth-helper: %s", strerror(errno));
    return parts->helpers < 0 ? EX_OSERR : EX_OK;
}

static int
start_access_log(struct components *parts)
{
    const struct options *options = parts->options;
    int fd = parts->log_file;

    if (fd < 0)
        return EX_OK;
    parts->log_file = -1;
    parts->service.access_log = access_log_start(fd, options->access_log);
    parts->service.logs = parts->service.access_log != NULL;
    return parts->service.access_log ? EX_OK : refuse_access_log(options->access_log);
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
        service->request_db_path = service_name_file(options->request_db);
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
    error = listen_open(&parts->listening, parts->options, &parts->restart.sockets, &why);
    if (error != LISTEN_OK)
        log_error("%s", buf_str(&why));
    buf_free(&why);
    return statuses[error];
}

/* What is purged in the process that was replaced is purged here as well. */
static void
take_purges(struct components *parts, int fd)
{
    if (fd >= 0 && parts->service.store) {
        int error = store_take_purges(parts->service.store, fd);

        if (error)
            log_warning("what is purged in the process that ends is not known here: %s",
                        strerror(error));
    } else if (fd >= 0) {
        close(fd);
    }
}

static int
begin_serving(struct components *parts, struct taken_sockets *offer)
{
    struct listen_service services[LISTEN_ROLES];
    int error;

    components_get_services(parts, services);
    listen_offer(&parts->listening, offer);
    error = serve_begin(rpc_server_net(parts->service.rpc), &parts->listening, services);
    if (error)
        log_error("cannot start serving: %s", strerror(error));
    return error ? EX_OSERR : EX_OK;
}

/*
 * Serves. The daemon that is replaced, if there is one, accepts until it yields, and this process
 * from then on: what is purged in one of both holds in the other one.
 */
static int
start(struct components *parts)
{
    struct taken_sockets offer;
    int error, status, fd;

    parts->monitoring.metrics = parts->service.metrics;
    error = rpc_server_start(parts->service.rpc);
    if (error) {
        log_error("cannot start serving: %s", strerror(error));
        return EX_OSERR;
    }
    status = restart_finish(&parts->restart, &parts->listening, &fd);
    if (status != EX_OK)
        return status;
    take_purges(parts, fd);
    status = begin_serving(parts, &offer);
    if (status != EX_OK)
        return status;
    restart_offer(&parts->restart, &offer);
    components_register(parts);
    return EX_OK;
}

/* ---- reloading ------------------------------------------------------------------------------- */

static int
start_opener(struct components *parts)
{
    if (opener_start(&parts->opener, parts->options, daemon_check, confinement_open_sockets))
        return EX_OK;
    log_error("cannot start the process that reads the configuration and starts others: %s",
              strerror(errno));
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
    else if (restart_is_going_on(&parts->restart))
        buf_append_str(&answer, "another process is about to replace this one");
    else
        done = reload(parts, &answer);
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
    int64_t until = clock_monotonic_us() + service_config(&parts->service)->options->stop_delay,
            left;

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

/* Does a process that was replaced before this one pass on what is purged there? */
static bool
takes_purges(const struct components *parts)
{
    return parts->service.store && store_takes_purges(parts->service.store);
}

/* Waits for the end of all connections, and with `purges` for that of a process that passes on what
 * is purged there; or of the time limit, or for a second signal. */
static void
await_connections(struct components *parts, const sigset_t *signals, bool purges)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t until = clock_monotonic_us() + service_config(&parts->service)->options->stop_timeout;

    for (;;) {
        struct rpc_stats stats;
        int signal;

        rpc_server_get_stats(parts->service.rpc, &stats);
        (void)peer_news_look(parts->service.news);
        if ((stats.net.connections == 0 && !(purges && takes_purges(parts))) ||
            clock_monotonic_us() >= until)
            return;
        signal = sigtimedwait(signals, NULL, &pause);
        if (signal == SIGTERM || signal == SIGINT)
            return;
    }
}

static void
note_hang(struct components *parts)
{
    parts->store_hangs = true;
    log_error("store: %s: the disk does not answer: it is left as it is", parts->options->store);
}

/* What is offered and purged gets the time to be written. */
static void
leave_store(struct components *parts)
{
    struct store *store = parts->service.store;

    if (store && !parts->store_hangs && !store_leave(store, LEAVE_STORE_US))
        note_hang(parts);
}

/* The workers have ended. */
static void
end_reads_of_store(struct components *parts)
{
    struct store *store = parts->service.store;

    if (store && !parts->store_hangs && !store_end_reads(store, LEAVE_STORE_US))
        note_hang(parts);
}

/*
 * What is purged and told to no server of the tier is kept in the store's folder. The successor of a
 * process looks there when that has left the store, and tells itself what is purged after this. Of a
 * process that has none, what is purged then is lost, and answered so by the store that was left.
 */
static void
leave_tier(struct components *parts)
{
    if (parts->service.tier)
        tier_leave(parts->service.tier);
    if (!parts->store_hangs && !untold_end(&parts->untold))
        note_hang(parts);
}

/* Fetches are ended, which answers the waiting requests; the answers have LAST_REPLIES_US to be
 * sent. */
static void
end_connections(struct components *parts)
{
    const bool replaced = parts->restart.successor > 0;
    unsigned cut_off;

    fetcher_stop(parts->service.fetcher);
    if (replaced)
        leave_tier(parts);
    leave_store(parts);
    if (!replaced)
        leave_tier(parts);
    cut_off = rpc_server_stop(parts->service.rpc, LAST_REPLIES_US);
    if (cut_off)
        log_warning("%u connections were closed with requests in flight", cut_off);
}

/* Requests in flight continue for a while. */
static void
stop_serving(struct components *parts, const sigset_t *signals)
{
    reload_desk_close(&parts->service.desk, "the daemon is stopping");
    registration_stop(parts->registration);
    serve_in_delay(parts, signals);
    rpc_server_stop_accepting(parts->service.rpc);
    await_connections(parts, signals, false);
    peer_news_leave(parts->service.news);
    end_connections(parts);
}

/* The successor waits for the store. */
static void
hand_over(struct components *parts, int fd)
{
    if (!parts->service.store)
        close(fd);
    else if (!store_hand_over(parts->service.store, fd, LEAVE_STORE_US))
        log_error("store: %s: the disk does not answer: the other process gets it when this one "
                  "has ended",
                  parts->options->store);
}

/* Another process accepts from now on. Connections that it cannot have end one by one. */
static void
leave_serving(struct components *parts, const sigset_t *signals)
{
    const long successor = (long)parts->restart.successor;
    char state[48];

    log_info("process %ld serves; this one ends with its connections", successor);
    reload_desk_close(&parts->service.desk, "the daemon was replaced by another process");
    registration_leave(parts->registration);
    if (parts->service.store)
        store_prepare_hand_over(parts->service.store);
    rpc_server_leave(parts->service.rpc);
    listen_give(&parts->listening, &parts->restart.sockets);
    snprintf(state, sizeof(state), "MAINPID=%ld", successor);
    notify_manager(state);
    hand_over(parts, restart_yield(&parts->restart));
    await_connections(parts, signals, true);
    peer_news_leave(parts->service.news);
    end_connections(parts);
}

/* ---- running --------------------------------------------------------------------------------- */

static void
log_descriptor_limit(const struct components *parts)
{
    const struct descriptor_plan *plan = &parts->descriptors;
    const struct options *options = parts->options;
    char per_client[48] = "", tunnels[32] = "", store[48] = "";

    if (!descriptor_plan_is_short(plan))
        return;
    if (plan->connections_per_client)
        snprintf(per_client, sizeof(per_client), " (%u of one client)",
                 (unsigned)plan->connections_per_client);
    if (plan->tunnels)
        snprintf(tunnels, sizeof(tunnels), " and %u tunnels", (unsigned)plan->tunnels);
    if (plan->files)
        snprintf(store, sizeof(store), " and %" PRIu64 " files of the store", plan->files);
    log_warning("the limit of open files is %" PRIu64 ", and %" PRIu64 " connections with %" PRIu64
                " fetches%s need %" PRIu64 ": at most %u connections%s%s %u fetches%s at once",
                plan->limit, options->max_connections, options->max_fetches, store, plan->need,
                (unsigned)plan->connections, per_client, *tunnels ? "," : " and",
                (unsigned)plan->fetches, tunnels);
}

static void
log_memory_limit(const struct options *options)
{
    if (options->memory_is_short)
        log_warning("the control group allows %" PRIu64
                    " bytes of memory: capacity-bytes is lowered "
                    "to %" PRIu64 ", and max-transit to %" PRIu64,
                    options->memory_limit, options->capacity_bytes, options->max_transit);
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
    const struct listen_set *sets = listening->sets;
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
                 listen_address_text(&listening->ipv6, ipv6),
                 sets[LISTEN_RPC].passed ? passed : "");
    if (listen_local(listening))
        log_info("listening on socket %s%s", listen_local(listening)->path,
                 sets[LISTEN_LOCAL].passed ? passed : "");
    if (!parts->options->client_net.count &&
        !(is_for_clients(service, &listening->ipv4) && is_for_clients(service, &listening->ipv6)))
        log_warning("other hosts can connect over RPC, but their calls are denied; name those that "
                    "may call with --client-net");
    log_info("sunproxyd %s serves with %u workers", SUNPROXY_VERSION, service->workers);
}

/* What the main thread has to do all the time. True: soon again, after PROBER_LOOK_MS. */
static bool
look_around(struct components *parts)
{
    bool probes = prober_look(&parts->prober), tells = untold_look(&parts->untold, takes_purges(parts));

    return peer_news_look(parts->service.news) || probes || tells;
}

/* Goes on while the opener is waited for. */
static void
work_meanwhile(void *parts)
{
    (void)look_around(parts);
}

/* Takes a signal, or 0 after a while, or when another process wants something. */
static int
await_signal(struct components *parts, int signal_fd, const sigset_t *signals, int ms)
{
    struct pollfd fds[] = {{.fd = signal_fd, .events = POLLIN},
                           {.fd = parts->restart.listener, .events = POLLIN},
                           {.fd = parts->restart.fd, .events = POLLIN}};
    const struct timespec none = {0};
    int signal;

    (void)poll(fds, sizeof(fds) / sizeof(fds[0]), ms);
    signal = sigtimedwait(signals, NULL, &none);
    return signal > 0 ? signal : 0;
}

static void
act_on(struct components *parts, int signal)
{
    if (signal == SIGUSR2) {
        notify_reloading();
        restart_begin(&parts->restart, &parts->opener);
        if (!restart_is_going_on(&parts->restart))
            notify_manager("READY=1");
    } else if (signal == SIGHUP || signal == SIGUSR1) {
        notify_reloading();
        reopen_logs(parts);
        if (signal == SIGHUP)
            reload_config(parts);
        notify_manager("READY=1");
    }
}

/* Until SIGTERM or SIGINT, or until another process serves: then false. */
static bool
serve(struct components *parts, const sigset_t *signals)
{
    const int signal_fd = signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK);
    struct memory_return memory = {0};
    int64_t looked_us = 0;
    bool left = false;
    int signal = 0;

    parts->opener.work = work_meanwhile;
    parts->opener.context = parts;
    while (!left && signal != SIGTERM && signal != SIGINT) {
        bool soon = look_around(parts), waits;

        signal =
            await_signal(parts, signal_fd, signals,
                         soon || signal_fd < 0 ? PROBER_LOOK_MS : MEMORY_RETURN_SECONDS * 1000);
        if (clock_monotonic_us() - looked_us >= (int64_t)MEMORY_RETURN_SECONDS * 1000000) {
            memory_return_look(&memory, &parts->service);
            looked_us = clock_monotonic_us();
        }
        act_on(parts, signal);
        waits = restart_is_going_on(&parts->restart);
        left = restart_look(&parts->restart);
        if (waits && !left && !restart_is_going_on(&parts->restart))
            notify_manager("READY=1");
    }
    if (signal_fd >= 0)
        close(signal_fd);
    if (!left)
        log_info("stopping on %s", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    return !left;
}

/* From the start of the workers on. */
static int
run(struct components *parts, const sigset_t *signals)
{
    int status = start(parts);

    if (status != EX_OK) {
        end_connections(parts);
        return status;
    }
    log_start(parts);
    notify_manager("READY=1\nSTATUS=serving");
    reload_desk_open(&parts->service.desk);
    if (serve(parts, signals)) {
        notify_manager("STOPPING=1");
        stop_serving(parts, signals);
    } else {
        leave_serving(parts, signals);
    }
    log_info("stopped");
    return EX_OK;
}

/* Threads of the store are at its disk, and use what they were given: the process ends with
 * them. */
static void
end_process(struct components *parts, int status)
{
    access_log_close(parts->service.access_log);
    request_db_close(parts->service.request_db);
    restart_free(&parts->restart);
    opener_stop(&parts->opener);
    _exit(status);
}

int
daemon_run(const struct options *options)
{
    struct components parts = {.options = options,
                               .listening = LISTENING_NONE,
                               .log_file = -1,
                               .helpers = -1,
                               .opener.fd = -1,
                               .restart = RESTART_NONE};
    sigset_t signals;
    int status;

    /* Before any thread: all inherit the mask, and only the main thread takes signals. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGUSR1); /* what nginx reopens its logs on */
    sigaddset(&signals, SIGUSR2); /* and has itself replaced on */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a log at its size limit is a write error */

    status = start_opener(&parts);
    if (status == EX_OK)
        status = components_make_settings(&parts);
    if (status == EX_OK)
        status = restart_take(&parts.restart, options, parts.user.uid);
    if (status == EX_OK)
        status = open_sockets(&parts);
    if (status == EX_OK)
        status = open_access_log(&parts);
    if (status == EX_OK)
        status = start_helpers(&parts);
    if (status == EX_OK)
        status = components_make_rings(&parts);
    if (status == EX_OK)
        status = confinement_enter(options, &parts.listening, &parts.user);
    if (status == EX_OK)
        status = components_make_store(&parts);
    if (status == EX_OK)
        status = components_make_tier(&parts);
    if (status == EX_OK)
        status = components_make_threads(&parts);
    if (status == EX_OK)
        status = start_access_log(&parts);
    if (status == EX_OK)
        status = start_request_db(&parts);
    if (status == EX_OK) {
        log_descriptor_limit(&parts);
        log_memory_limit(parts.options);
        status = run(&parts, &signals);
    }
    leave_store(&parts);
    end_reads_of_store(&parts);
    listen_close(&parts.listening);
    if (parts.store_hangs)
        end_process(&parts, status);
    components_free(&parts);
    restart_free(&parts.restart);
    opener_stop(&parts.opener);
    return status;
}
