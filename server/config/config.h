/*
 * A configuration: options, and what is made of those that a reload may change. A reload replaces
 * the service's (service_config()). A request keeps the one with which it began.
 *
 * Constant, and counted by references (base/shared.h); safe on any thread.
 */
#ifndef SUNPROXY_SERVER_CONFIG_H
#define SUNPROXY_SERVER_CONFIG_H

#include <sys/types.h>

#include "base/networks.h"
#include "http/forwarded.h"
#include "http/storing.h"
#include "proxy/proxy_rules.h"
#include "rules/tag_rules.h"
#include "server/http/http_origins.h"
#include "server/http/http_ports.h"
#include "server/config/config_peers.h"
#include "server/config/config_tier.h"
#include "server/config/options.h"
#include "server/logs/access_line.h"
#include "server/users/user_file.h"

struct config {
    struct proxy_rules rules;      /* first; its references are the configuration's */
    const struct options *options; /* which must stay */
    struct options *owned;         /* NULL, or the options: freed with the configuration */
    struct http_storing_rules storing;
    struct access_format log_format; /* of the access log */
    struct rules *table; /* of --rule; NULL: none */
    struct tag_rules tag_rules;
    struct tag_rules write_rules;
    struct networks clients;             /* that may use the proxy over TCP (--client-net) */
    struct networks purgers;             /* that may use PURGE (--purge-net) */
    struct networks balancers;           /* that may send headers of the PROXY protocol */
    struct networks trusted;             /* that may state a request's client, */
    bool trusts_local;                   /* and so may peers over AF_UNIX, */
    enum http_way_field forwarded_field; /* in this field */
    struct settings *settings;           /* to fetch with: a reference, from outside */
    struct buf files;                    /* that the options name (config_files.h) */
    struct span authorities;             /* of these, PEM of --cacert; empty: none */
    struct user_file *users;             /* of these, that of --users; NULL: none */
    uid_t *admins;                       /* besides root and our own */
    size_t admin_count;
    struct http_ports connect_ports; /* of tunnels */
    struct config_peers peers;       /* of --peers; its key is among the files */
    struct config_tier tier;         /* of --shared; its key, too */
    struct http_origins origins;     /* the rows of --origin: none, unless a reverse proxy */
};

/*
 * One reference, the caller's, with `owned` not set. NULL with a line in `why` for each value that
 * is refused, or that there is no memory.
 */
struct config *config_create(const struct options *options, struct buf *why);

/* Takes the text of the files that the options name. False with a sentence in `why`. */
bool config_take_files(struct config *config, struct span files, struct buf *why);

/* Do requests to the forward proxy need a user? */
bool config_asks_users(const struct config *config);

/* Drops a reference, which may be NULL. */
void config_release(struct config *config);

/*
 * Adds the networks of the option of that name to a list. False with a line in `why` for each value
 * that is none.
 */
bool config_add_networks(struct networks *networks, const struct option_list *list,
                         const char *name, struct buf *why);

/* The value of such an option that is the loopback. */
extern const struct option_list config_loopback;

#endif
