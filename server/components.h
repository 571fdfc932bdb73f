/*
 * What the daemon consists of: created from its options at the start, freed at the end. daemon.c
 * opens sockets and logs, drops privileges in between, and serves.
 */
#ifndef SUNPROXY_SERVER_COMPONENTS_H
#define SUNPROXY_SERVER_COMPONENTS_H

#include "server/config/opener.h"
#include "server/confine/confinement.h"
#include "server/limits/descriptor_plan.h"
#include "server/http/http_service.h"
#include "server/listen/serve.h"
#include "server/http/metrics_http.h"
#include "server/prober.h"
#include "server/restart.h"
#include "server/rpc/registration.h"
#include "server/service.h"
#include "server/store/untold.h"
#include "server/store/worker_rings.h"

struct components {
    const struct options *options;
    struct opener opener;             /* the daemon's */
    struct address_policy *addresses; /* NULL: the fetcher has them */
    struct listening listening;
    struct restart restart;
    int log_file;         /* -1: none, or owned by the access log */
    pid_t log_keeper;     /* of its command; 0: none */
    int helpers;          /* to their keeper; -1: none, or owned by the checks of users */
    pid_t helpers_keeper; /* 0: none */
    struct registration *registration;
    struct descriptor_plan descriptors;
    struct service_user user; /* of --user */
    struct service service;
    struct worker_rings *rings; /* owned; NULL: none */
    struct untold untold;
    bool store_hangs; /* threads of the store do not end: nothing that they use is freed */
    struct http_service http;
    struct metrics_http monitoring;
    struct prober prober;
};

/*
 * Makes what starts no thread, before the sockets are opened and privileges are dropped. Like the
 * next function it returns a status of sysexits.h, EX_OK or that of a failure, which is logged.
 * components_free() frees what was made in any case.
 */
int components_make_settings(struct components *parts);

/* Makes what the sandbox has no calls for, before it is entered. */
int components_make_rings(struct components *parts);

/*
 * Opens the store, as the user that serves, and in the sandbox: before the next function, which
 * leads to it. A daemon that is replaced has it until it leaves.
 */
int components_make_store(struct components *parts);

/* Makes the shared tier, likewise: finds the addresses of its servers. The next function starts it. */
int components_make_tier(struct components *parts);

/*
 * A hash of what decides about keys and tags, and from which origins pages come. Other options on
 * storing leave what a store has: it is reviewed when it is read (sharing_review()).
 */
uint64_t components_store_terms(const struct config *config);

/* Likewise, and of --store-cookies and --store-client-errors: daemons where these differ share no
 * pages of the tier. */
uint64_t components_tier_terms(const struct config *config);

/* Makes the parts that start threads, which inherit the privileges of the process. */
int components_make_threads(struct components *parts);

/* What is fetched with, by these options and authorities (PEM): a reference. NULL with a sentence.
 */
struct settings *components_make_fetch_settings(struct components *parts,
                                                const struct options *options,
                                                struct span authorities, struct buf *why);

/* Has the parts that run work with the limits, rates and settings of this configuration. */
void components_change(struct components *parts, const struct config *config);

/* How the sockets of each role are served; by role. */
void components_get_services(struct components *parts, struct listen_service *services);

/* Starts the registration with rpcbind, if it is wanted. */
void components_register(struct components *parts);

/* All but the sockets and the registration. */
void components_free(struct components *parts);

#endif
