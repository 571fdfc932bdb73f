#include "tests/unit/server/rpc/rpcbind_model.h"

#include <errno.h>
#include <netconfig.h>
#include <pthread.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_clnt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "proxy.h"
#include "tests/unit/faults.h"

struct entry {
    rpcprog_t program; /* 0: free */
    rpcvers_t version;
    char netid[16], address[160], owner[16];
};

struct shared {
    struct rpcbind_model model;
    pthread_mutex_t lock; /* protects the entries */
    struct entry entries[RPCBIND_MODEL_ENTRIES];
};

struct rpcbind_model *rpcbind_model;

static struct shared *shared;
static _Atomic bool on;
static pthread_t beginner;

/* A mutex that the processes share, since a child may look while the parent's thread does. */
void
rpcbind_model_begin(void)
{
    pthread_mutexattr_t attr;

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    rpcbind_model = &shared->model;
    strcpy(rpcbind_model->caller, "superuser");
    beginner = pthread_self();
    on = true;
    rpcbind_model_add(100000, 4, "local", "/run/rpcbind.sock", "superuser");
}

/* What the model has stays mapped: a thread that hung may still look at it. */
void
rpcbind_model_end(void)
{
    on = false;
}

void
rpcbind_model_forget(void)
{
    pthread_mutex_lock(&shared->lock);
    for (size_t i = 1; i < RPCBIND_MODEL_ENTRIES; i++)
        shared->entries[i].program = 0;
    pthread_mutex_unlock(&shared->lock);
}

/* Under the lock, as the two below. */
static struct entry *
find(rpcprog_t program, rpcvers_t version, const char *netid)
{
    for (size_t i = 0; i < RPCBIND_MODEL_ENTRIES; i++) {
        struct entry *entry = &shared->entries[i];

        if (entry->program == program && entry->version == version &&
            strcmp(entry->netid, netid) == 0)
            return entry;
    }
    return NULL;
}

static void
add(rpcprog_t program, rpcvers_t version, const char *netid, const char *address, const char *owner)
{
    for (size_t i = 0; i < RPCBIND_MODEL_ENTRIES; i++) {
        struct entry *entry = &shared->entries[i];

        if (entry->program)
            continue;
        entry->program = program;
        entry->version = version;
        snprintf(entry->netid, sizeof(entry->netid), "%s", netid);
        snprintf(entry->address, sizeof(entry->address), "%s", address);
        snprintf(entry->owner, sizeof(entry->owner), "%s", owner);
        return;
    }
    abort();
}

void
rpcbind_model_add(unsigned program, unsigned version, const char *netid, const char *address,
                  const char *owner)
{
    pthread_mutex_lock(&shared->lock);
    add(program, version, netid, address, owner);
    pthread_mutex_unlock(&shared->lock);
}

void
rpcbind_model_replace(unsigned version, const char *netid, const char *address)
{
    struct entry *entry;

    pthread_mutex_lock(&shared->lock);
    entry = find(PROXY_FETCHPROG, version, netid);
    if (!entry)
        abort();
    snprintf(entry->address, sizeof(entry->address), "%s", address);
    pthread_mutex_unlock(&shared->lock);
}

const char *
rpcbind_model_address(unsigned version, const char *netid)
{
    static _Thread_local char address[sizeof(((struct entry *)NULL)->address)];
    const struct entry *entry;

    pthread_mutex_lock(&shared->lock);
    entry = find(PROXY_FETCHPROG, version, netid);
    if (entry)
        memcpy(address, entry->address, sizeof(address));
    pthread_mutex_unlock(&shared->lock);
    return entry ? address : NULL;
}

unsigned
rpcbind_model_count(void)
{
    unsigned count = 0;

    pthread_mutex_lock(&shared->lock);
    for (size_t i = 0; i < RPCBIND_MODEL_ENTRIES; i++)
        count += shared->entries[i].program == PROXY_FETCHPROG;
    pthread_mutex_unlock(&shared->lock);
    return count;
}

static void
pause_shortly(void)
{
    const struct timespec moment = {.tv_nsec = 2000000};

    nanosleep(&moment, NULL);
}

bool
rpcbind_model_wait(bool (*condition)(void))
{
    for (unsigned i = 0; i < 30000; i++) {
        if (condition())
            return true;
        pause_shortly();
    }
    return false;
}

/* ---- libtirpc's calls
 * ---------------------------------------------------------------------------- */

bool_t __real_rpcb_set(rpcprog_t program, rpcvers_t version, const struct netconfig *transport,
                       const struct netbuf *address);
bool_t __wrap_rpcb_set(rpcprog_t program, rpcvers_t version, const struct netconfig *transport,
                       const struct netbuf *address);
bool_t __real_rpcb_unset(rpcprog_t program, rpcvers_t version, const struct netconfig *transport);
bool_t __wrap_rpcb_unset(rpcprog_t program, rpcvers_t version, const struct netconfig *transport);
rpcblist *__real_rpcb_getmaps(const struct netconfig *transport, const char *host);
rpcblist *__wrap_rpcb_getmaps(const struct netconfig *transport, const char *host);
struct netconfig *__real_getnetconfigent(const char *netid);
struct netconfig *__wrap_getnetconfigent(const char *netid);
struct netbuf *__real_uaddr2taddr(const struct netconfig *transport, const char *address);
struct netbuf *__wrap_uaddr2taddr(const struct netconfig *transport, const char *address);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);

/* False: there is no rpcbind. */
static bool
reach(void)
{
    while (rpcbind_model->hangs)
        pause_shortly();
    return !rpcbind_model->absent;
}

bool_t
__wrap_rpcb_set(rpcprog_t program, rpcvers_t version, const struct netconfig *transport,
                const struct netbuf *address)
{
    const struct entry *entry;
    char *text;
    bool done;

    if (!on)
        return __real_rpcb_set(program, version, transport, address);
    rpcbind_model->sets++;
    if (!reach())
        return FALSE;
    text = taddr2uaddr(transport, address);
    if (!text)
        abort();
    pthread_mutex_lock(&shared->lock);
    entry = find(program, version, transport->nc_netid);
    done = entry ? strcmp(entry->address, text) == 0 : !rpcbind_model->refuses;
    if (done && !entry)
        add(program, version, transport->nc_netid, text, rpcbind_model->caller);
    pthread_mutex_unlock(&shared->lock);
    free(text);
    return done;
}

bool_t
__wrap_rpcb_unset(rpcprog_t program, rpcvers_t version, const struct netconfig *transport)
{
    struct entry *entry;
    bool done;

    if (!on)
        return __real_rpcb_unset(program, version, transport);
    if (!reach())
        return FALSE;
    pthread_mutex_lock(&shared->lock);
    entry = find(program, version, transport->nc_netid);
    done = entry && (strcmp(rpcbind_model->caller, "superuser") == 0 ||
                     strcmp(entry->owner, rpcbind_model->caller) == 0);
    if (done)
        entry->program = 0;
    pthread_mutex_unlock(&shared->lock);
    return done;
}

/* A list as XDR makes it, for xdr_free(). */
rpcblist *
__wrap_rpcb_getmaps(const struct netconfig *transport, const char *host)
{
    rpcblist *list = NULL;

    if (!on)
        return __real_rpcb_getmaps(transport, host);
    rpcbind_model->lists++;
    if (!reach())
        return NULL;
    pthread_mutex_lock(&shared->lock);
    for (size_t i = RPCBIND_MODEL_ENTRIES; i-- > 0;) {
        const struct entry *entry = &shared->entries[i];
        rpcblist *node;

        if (!entry->program)
            continue;
        node = calloc(1, sizeof(*node));
        if (!node)
            abort();
        node->rpcb_map.r_prog = entry->program;
        node->rpcb_map.r_vers = entry->version;
        node->rpcb_map.r_netid = strdup(entry->netid);
        node->rpcb_map.r_addr = strdup(entry->address);
        node->rpcb_map.r_owner = strdup(entry->owner);
        node->rpcb_next = list;
        list = node;
    }
    pthread_mutex_unlock(&shared->lock);
    return list;
}

struct netconfig *
__wrap_getnetconfigent(const char *netid)
{
    return on && rpcbind_model->no_transports ? NULL : __real_getnetconfigent(netid);
}

struct netbuf *
__wrap_uaddr2taddr(const struct netconfig *transport, const char *address)
{
    return on && rpcbind_model->no_addresses ? NULL : __real_uaddr2taddr(transport, address);
}

int
__wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                              const struct timespec *until)
{
    struct timespec soon;

    if (!on || pthread_equal(pthread_self(), beginner))
        return __real_pthread_cond_timedwait(condition, lock, until);
    clock_gettime(CLOCK_MONOTONIC, &soon);
    soon.tv_nsec += 10000000;
    if (soon.tv_nsec >= 1000000000) {
        soon.tv_sec++;
        soon.tv_nsec -= 1000000000;
    }
    return __real_pthread_cond_timedwait(condition, lock, &soon);
}
