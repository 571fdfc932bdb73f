#include "server/rpc/registration.h"

#include <errno.h>
#include <netconfig.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_clnt.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"
#include "proxy.h"
#include "server/logs/log.h"

#define RETRY_SECONDS 2   /* while rpcbind does not answer */
#define REFRESH_SECONDS 5 /* after a restart rpcbind has no entries */
#define GOODBYE_SECONDS 2
#define MOST_ENTRIES 6
#define OWNER_SIZE 64 /* for rpcbind's name of a user: "superuser", "unknown", or a number */

/* One program version on one transport. */
struct entry {
    rpcvers_t version;
    const char *netid;
    char address[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 16]; /* universal address */
    bool registered;
    bool taken; /* by another process; already logged */
};

struct registration {
    /* shared by the thread and the one that started it */
    _Atomic unsigned references;
    pthread_t thread;
    pthread_mutex_t lock; /* protects stop, keep and gone */
    pthread_cond_t changed;
    bool stop;
    bool keep; /* the entries stay */
    bool gone; /* the thread has removed the entries */

    /* the thread's own once it runs */
    struct entry entries[MOST_ENTRIES];
    unsigned count;
    bool told_absent;
};

static void
release(struct registration *registration)
{
    if (atomic_fetch_sub(&registration->references, 1) != 1)
        return;
    pthread_cond_destroy(&registration->changed);
    pthread_mutex_destroy(&registration->lock);
    free(registration);
}

static void
add_entries(struct registration *registration, const char *netid, const char *address)
{
    static const rpcvers_t versions[] = {PROXY_FETCHVERS, PROXY_VERS2};

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        struct entry *entry = &registration->entries[registration->count++];

        entry->version = versions[i];
        entry->netid = netid;
        snprintf(entry->address, sizeof(entry->address), "%s", address);
    }
}

/* rpcbind gives a caller of the wildcard address the one that the caller has reached it by. */
static void
add_tcp(struct registration *registration, const char *netid,
        const struct sockaddr_storage *address, uint16_t port)
{
    char name[INET6_ADDRSTRLEN], universal[INET6_ADDRSTRLEN + 8];

    if (address->ss_family == AF_UNSPEC)
        return;
    snprintf(universal, sizeof(universal), "%s.%u.%u", listen_address_text(address, name),
             port >> 8, port & 255u);
    add_entries(registration, netid, universal);
}

/*
 * The universal address that rpcbind has for a program version on a transport; owned by the caller,
 * NULL if there is none. `owner` receives the name that rpcbind has for its user; *answers is set
 * to whether rpcbind answered. (rpcb_getaddr() would replace the registered address by one of this
 * machine's, and leaks a few bytes per call.)
 */
static char *
registered_address(const struct entry *entry, char owner[OWNER_SIZE], bool *answers)
{
    struct netconfig *netconfig = getnetconfigent("local");
    char *address = NULL;
    rpcblist *list;

    *answers = false;
    if (!netconfig)
        return NULL;
    list = rpcb_getmaps(netconfig, "localhost");
    freenetconfigent(netconfig);
    /* rpcbind always lists its own entries. */
    *answers = list != NULL;
    for (const rpcblist *at = list; at && !address; at = at->rpcb_next)
        if (at->rpcb_map.r_prog == PROXY_FETCHPROG && at->rpcb_map.r_vers == entry->version &&
            strcmp(at->rpcb_map.r_netid, entry->netid) == 0) {
            snprintf(owner, OWNER_SIZE, "%s", at->rpcb_map.r_owner);
            address = strdup(at->rpcb_map.r_addr);
        }
    xdr_free((xdrproc_t)xdr_rpcblist_ptr, &list);
    return address;
}

/* Registers one entry; the first time, it replaces an existing one. True if it is registered. */
static bool
register_entry(struct entry *entry, bool first)
{
    struct netconfig *netconfig = getnetconfigent(entry->netid);
    struct netbuf *address;
    bool done;

    if (!netconfig)
        return false;
    address = uaddr2taddr(netconfig, entry->address);
    if (!address) {
        freenetconfigent(netconfig);
        return false;
    }
    done = rpcb_set(PROXY_FETCHPROG, entry->version, netconfig, address);
    if (!done && first) {
        char owner[OWNER_SIZE];
        bool answers;
        char *other = registered_address(entry, owner, &answers);

        if (other && rpcb_unset(PROXY_FETCHPROG, entry->version, netconfig)) {
            log_info("rpcbind had version %u on %s at %s; replaced", (unsigned)entry->version,
                     entry->netid, other);
            done = rpcb_set(PROXY_FETCHPROG, entry->version, netconfig, address);
        }
        free(other);
    }
    free(address->buf);
    free(address);
    freenetconfigent(netconfig);
    return done;
}

/* Registers all entries once. Returns the seconds until the next time. */
static int
refresh(struct registration *registration)
{
    unsigned standing = 0, fresh = 0;

    for (unsigned i = 0; i < registration->count; i++) {
        struct entry *entry = &registration->entries[i];
        bool done = register_entry(entry, !entry->registered && !entry->taken);

        standing += done;
        fresh += done && !entry->registered;
        if (done) {
            entry->registered = true;
            entry->taken = false;
        }
    }
    if (standing == registration->count) {
        if (fresh || registration->told_absent)
            log_info("registered with rpcbind");
        registration->told_absent = false;
        return REFRESH_SECONDS;
    }
    for (unsigned i = 0; i < registration->count; i++) {
        struct entry *entry = &registration->entries[i];
        char owner[OWNER_SIZE] = "";
        bool answers;
        char *other = registered_address(entry, owner, &answers);

        if (!answers) {
            if (!registration->told_absent)
                log_warning("rpcbind cannot be reached; serving without it and retrying");
            registration->told_absent = true;
            return RETRY_SECONDS;
        }
        if (!entry->taken && (!other || strcmp(other, entry->address) != 0)) {
            if (other)
                log_warning("rpcbind refuses version %u on %s; it has %s, registered by "
                            "%s; that user or root can remove it with \"rpcinfo -d %u %u\"",
                            (unsigned)entry->version, entry->netid, other, owner,
                            (unsigned)PROXY_FETCHPROG, (unsigned)entry->version);
            else
                log_warning("rpcbind refuses version %u on %s", (unsigned)entry->version,
                            entry->netid);
            entry->taken = true;
            entry->registered = false;
        }
        free(other);
    }
    return REFRESH_SECONDS;
}

/* Removes own entries, but not one of another server that has replaced an own one. */
static void
unregister(struct registration *registration)
{
    for (unsigned i = 0; i < registration->count; i++) {
        struct entry *entry = &registration->entries[i];
        struct netconfig *netconfig;
        char owner[OWNER_SIZE];
        char *address;
        bool answers;

        if (!entry->registered)
            continue;
        address = registered_address(entry, owner, &answers);
        netconfig = getnetconfigent(entry->netid);
        if (netconfig && address && strcmp(address, entry->address) == 0)
            rpcb_unset(PROXY_FETCHPROG, entry->version, netconfig);
        free(address);
        if (netconfig)
            freenetconfigent(netconfig);
    }
}

static void *
run(void *argument)
{
    struct registration *registration = argument;
    bool stop = false, keep = false;

    while (!stop) {
        int seconds = refresh(registration);
        struct timespec until;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += seconds;
        pthread_mutex_lock(&registration->lock);
        while (!registration->stop)
            if (pthread_cond_timedwait(&registration->changed, &registration->lock, &until) ==
                ETIMEDOUT)
                break;
        stop = registration->stop;
        keep = registration->keep;
        pthread_mutex_unlock(&registration->lock);
    }
    if (!keep)
        unregister(registration);
    pthread_mutex_lock(&registration->lock);
    registration->gone = true;
    pthread_cond_signal(&registration->changed);
    pthread_mutex_unlock(&registration->lock);
    release(registration);
    return NULL;
}

/* ---- before the change of user --------------------------------------------------------------- */

/* Runs in a process of its own. */
static void
remove_others(uid_t uid)
{
    struct netconfig *local = getnetconfigent("local");
    rpcblist *list = local ? rpcb_getmaps(local, "localhost") : NULL;
    char own[OWNER_SIZE];

    snprintf(own, sizeof(own), "%lu", (unsigned long)uid);
    for (const rpcblist *at = list; at; at = at->rpcb_next) {
        const rpcb *entry = &at->rpcb_map;
        struct netconfig *netconfig;

        if (entry->r_prog != PROXY_FETCHPROG || strcmp(entry->r_owner, own) == 0)
            continue;
        netconfig = getnetconfigent(entry->r_netid);
        if (netconfig && rpcb_unset(entry->r_prog, entry->r_vers, netconfig))
            log_info("rpcbind had version %u on %s at %s, registered by %s; removed",
                     (unsigned)entry->r_vers, entry->r_netid, entry->r_addr, entry->r_owner);
        if (netconfig)
            freenetconfigent(netconfig);
    }
}

void
registration_make_way(uid_t uid)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    int64_t until = clock_monotonic_us() + GOODBYE_SECONDS * (int64_t)1000000;
    pid_t child = fork(), ended;

    /* libtirpc waits 60 s for an answer, with all signals blocked. */
    if (child == 0) {
        remove_others(uid);
        _exit(0);
    }
    if (child < 0)
        return;
    while ((ended = waitpid(child, NULL, WNOHANG)) == 0 && clock_monotonic_us() < until)
        nanosleep(&moment, NULL);
    if (ended == 0) {
        log_warning("rpcbind does not answer; its entries of other users were not removed");
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

/* ---- interface ------------------------------------------------------------------------------- */

struct registration *
registration_start(const struct listening *listening)
{
    struct registration *registration = calloc(1, sizeof(*registration));
    pthread_condattr_t attr;
    int error;

    if (!registration)
        return NULL;
    atomic_init(&registration->references, 2);
    pthread_mutex_init(&registration->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&registration->changed, &attr);
    pthread_condattr_destroy(&attr);
    add_tcp(registration, "tcp", &listening->ipv4, listening->port);
    add_tcp(registration, "tcp6", &listening->ipv6, listening->port);
    if (listen_local(listening))
        add_entries(registration, "local", listen_local(listening)->path);
    error = thread_start(&registration->thread, run, registration);
    if (error) {
        release(registration);
        release(registration);
        errno = error;
        return NULL;
    }
    return registration;
}

static void
stop(struct registration *registration, bool keep)
{
    struct timespec until;
    bool gone;

    if (!registration)
        return;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += GOODBYE_SECONDS;
    pthread_mutex_lock(&registration->lock);
    registration->stop = true;
    registration->keep = keep;
    pthread_cond_broadcast(&registration->changed);
    while (!registration->gone)
        if (pthread_cond_timedwait(&registration->changed, &registration->lock, &until) ==
            ETIMEDOUT)
            break;
    gone = registration->gone;
    pthread_mutex_unlock(&registration->lock);
    if (gone) {
        pthread_join(registration->thread, NULL);
    } else {
        log_warning("rpcbind does not answer; its entries were not removed");
        pthread_detach(registration->thread);
    }
    release(registration);
}

void
registration_leave(struct registration *registration)
{
    stop(registration, true);
}

void
registration_stop(struct registration *registration)
{
    stop(registration, false);
}
