/*
 * The configuration of a fetcher, checked once and copied. Immutable afterwards, and counted by
 * references.
 */
#ifndef SUNPROXY_FETCH_SETTINGS_H
#define SUNPROXY_FETCH_SETTINGS_H

#include "base/buf.h"
#include "base/shared.h"
#include "base/fair_queue.h"
#include "fetch/url.h"

/* "HOST:PORT:TARGET-HOST:TARGET-PORT": what is for the former goes to the latter. */
struct connect_rule {
    char *host;           /* owned; "" matches any; lower case */
    unsigned port;        /* 0 matches any */
    char *target_host;    /* owned; "" keeps it */
    unsigned target_port; /* 0 keeps it */
};

struct settings {
    struct shared shared;       /* first */
    struct fetch_config config; /* its strings are owned, its lists below instead */
    struct connect_rule *rules;
    size_t rule_count;
    uint16_t *ports; /* owned: those blocked ones that are allowed */
    size_t port_count;
    bool any_port;
    char *proxy_host; /* owned; NULL: no upstream proxy */
    uint16_t proxy_port;
    struct buf authorities; /* PEM of config.cacert, read once; empty: none */
};

/*
 * Where the connection of a transfer goes, and whether the operator configured that. `host` is
 * borrowed from `target` or `settings`.
 */
struct route {
    const char *host;
    uint16_t port;
    bool by_operator; /* the host was configured: its address needs no permission */
    bool own_port;    /* so was the port */
    bool proxied;     /* through the upstream proxy */
    bool redirected;  /* by a connect_to rule: not what the URL says */
};

/* False with a sentence in `why`; settings are to be freed in either case. */
bool settings_init(struct settings *settings, const struct fetch_config *config, char *why,
                   size_t why_size);
void settings_free(struct settings *settings);

/* config->max_waiting, or what its zero stands for; 1 to max_active. */
unsigned settings_max_waiting(const struct fetch_config *config);

/* The bounds of the queue. */
struct queue_limits settings_queue_limits(const struct fetch_config *config);

struct route settings_route(const struct settings *settings, const struct target *target);

/* May the port be fetched from: is it not for another protocol, or is that allowed? */
bool settings_permit_port(const struct settings *settings, uint16_t port);

#endif
