#include "fetch/settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/load.h"
#include "base/units.h"
#include "fetch/address.h"

#define LONGEST_US (7 * 86400 * (int64_t)1000000)

void
fetch_config_default(struct fetch_config *config)
{
    const int64_t second = 1000000;

    *config = (struct fetch_config){
        .max_active = 4096,
        .max_active_per_origin = 512,
        .max_active_per_client = 256,
        .max_idle_per_origin = 32,
        .max_queued = 4096,
        .resolver_threads = 256,
        .max_body = 20971520,
        .max_headers = 65536,
        .resolve_timeout_us = 10 * second,
        .connect_timeout_us = 10 * second,
        .first_byte_timeout_us = 60 * second,
        .stall_timeout_us = 60 * second,
        .total_timeout_us = 80 * second,
        .pause_timeout_us = 600 * second,
        .dns_ttl_us = 60 * second,
    };
}

unsigned
settings_max_waiting(const struct fetch_config *config)
{
    return config->max_waiting ? config->max_waiting : config->max_active - config->max_active / 2;
}

/*
 * A body can take any time, and a fetch without a slot of that kind still has its own. So a client
 * may have several times as many fetches with bodies under way as fetches that wait, and half of
 * the slots.
 */
#define STREAMING_PER_WAITING 4u

static unsigned
client_streaming(const struct fetch_config *config, unsigned streaming)
{
    uint64_t wanted = (uint64_t)config->max_active_per_client * STREAMING_PER_WAITING;
    unsigned half = streaming - streaming / 2;

    return wanted < half ? (unsigned)wanted : half;
}

struct queue_limits
settings_queue_limits(const struct fetch_config *config)
{
    unsigned opening = settings_max_waiting(config);
    unsigned streaming = config->max_active > opening ? config->max_active - opening : 0;

    return (struct queue_limits){
        .opening = opening,
        .streaming = streaming,
        .per_origin = config->max_active_per_origin,
        .client_opening = config->max_active_per_client,
        .client_streaming = client_streaming(config, streaming),
    };
}

static bool
refuse(char *why, size_t why_size, const char *reason)
{
    snprintf(why, why_size, "%s", reason);
    return false;
}

/* Bounded, so that it can be added to a clock. */
static bool
is_time(int64_t us)
{
    return us > 0 && us <= LONGEST_US;
}

static bool
check_numbers(const struct fetch_config *config, char *why, size_t why_size)
{
    if (!config->addresses)
        return refuse(why, why_size, "there is no policy on addresses");
    if (config->max_active == 0 || config->max_active_per_origin == 0 ||
        config->resolver_threads == 0)
        return refuse(why, why_size, "there must be at least one transfer and one resolver thread");
    if (config->max_waiting > config->max_active)
        return refuse(why, why_size, "more fetches may wait than there may be in all");
    if (config->max_headers == 0)
        return refuse(why, why_size, "the bound on headers must not be zero");
    if (!is_time(config->resolve_timeout_us) || !is_time(config->connect_timeout_us) ||
        !is_time(config->first_byte_timeout_us) || !is_time(config->stall_timeout_us) ||
        !is_time(config->total_timeout_us))
        return refuse(why, why_size, "every time-out must be more than zero and at most a week");
    if (config->pause_timeout_us != 0 && !is_time(config->pause_timeout_us))
        return refuse(why, why_size, "a pause may be bounded to a week at most");
    if (config->dns_ttl_us != 0 && !is_time(config->dns_ttl_us))
        return refuse(why, why_size, "names may be remembered for a week at most");
    if (!config->getaddrinfo != !config->freeaddrinfo)
        return refuse(why, why_size, "getaddrinfo and freeaddrinfo go together");
    return true;
}

/* ---- connect_to ---------------------------------------------------------------------- */

/*
 * The text up to the next colon, *text then behind it or NULL at the end. Of an IPv6 address in
 * brackets, what is in them. NULL if that is none, or without memory.
 */
static char *
next_piece(const char **text)
{
    const char *start = *text;
    bool bracketed = *start == '[';
    union address address;
    const char *end;
    char *piece;

    if (bracketed) {
        start++;
        end = strchr(start, ']');
        if (!end || (end[1] != ':' && end[1] != '\0'))
            return NULL;
        *text = end[1] ? end + 2 : NULL;
    } else {
        end = start + strcspn(start, ":");
        *text = *end ? end + 1 : NULL;
    }
    piece = strndup(start, (size_t)(end - start));
    for (char *c = piece; c && *c; c++)
        *c = (char)tolower((unsigned char)*c);
    if (bracketed && piece &&
        (!address_parse(piece, 0, &address) || address.any.sa_family != AF_INET6)) {
        free(piece);
        return NULL;
    }
    return piece;
}

static bool
is_host(const char *host)
{
    union address address;

    return *host == '\0' || host_is_name(host) || address_parse(host, 0, &address);
}

/* An empty port is 0. */
static bool
parse_port(const char *text, unsigned *port)
{
    uint64_t value = 0;

    if (*text && !units_parse_uint(text, 1, UINT16_MAX, &value))
        return false;
    *port = (unsigned)value;
    return true;
}

static bool
parse_rule(struct connect_rule *rule, const char *text)
{
    char *pieces[4] = {NULL, NULL, NULL, NULL};
    const char *rest = text;
    bool ok = false;
    size_t i;

    for (i = 0; i < 4 && rest; i++) {
        pieces[i] = next_piece(&rest);
        if (!pieces[i])
            goto out;
    }
    if (i < 4 || rest || !is_host(pieces[0]) || !is_host(pieces[2]) ||
        !parse_port(pieces[1], &rule->port) || !parse_port(pieces[3], &rule->target_port))
        goto out;
    rule->host = pieces[0];
    rule->target_host = pieces[2];
    pieces[0] = pieces[2] = NULL;
    ok = true;
out:
    for (i = 0; i < 4; i++)
        free(pieces[i]);
    return ok;
}

static void
free_rule(struct connect_rule *rule)
{
    free(rule->host);
    free(rule->target_host);
}

static bool
take_rule(struct connect_rule *rule, const char *text, char *why, size_t why_size)
{
    if (parse_rule(rule, text))
        return true;
    snprintf(why, why_size, "\"%.200s\" is not HOST:PORT:HOST:PORT", text);
    return false;
}

bool
fetch_check_connect_to(const char *text, char *why, size_t why_size)
{
    struct connect_rule rule = {0};
    bool ok = take_rule(&rule, text, why, why_size);

    free_rule(&rule);
    return ok;
}

static bool
take_rules(struct settings *settings, const char *const *texts, char *why, size_t why_size)
{
    size_t count = 0;

    while (texts[count])
        count++;
    settings->rules = calloc(count + 1, sizeof(*settings->rules));
    if (!settings->rules)
        return refuse(why, why_size, "out of memory");
    for (size_t i = 0; i < count; i++) {
        if (!take_rule(&settings->rules[i], texts[i], why, why_size))
            return false;
        settings->rule_count++;
    }
    return true;
}

/* ---- ports --------------------------------------------------------------------------- */

/* 0 is any port. */
static bool
take_port(const char *text, unsigned *port, char *why, size_t why_size)
{
    *port = 0;
    if (strcmp(text, "any") == 0 || (parse_port(text, port) && *port > 0))
        return true;
    snprintf(why, why_size, "\"%.64s\" is neither a port nor \"any\"", text);
    return false;
}

bool
fetch_check_port(const char *text, char *why, size_t why_size)
{
    unsigned port;

    return take_port(text, &port, why, why_size);
}

static bool
take_ports(struct settings *settings, const char *const *texts, char *why, size_t why_size)
{
    size_t count = 0;

    while (texts[count])
        count++;
    settings->ports = calloc(count + 1, sizeof(*settings->ports));
    if (!settings->ports)
        return refuse(why, why_size, "out of memory");
    for (size_t i = 0; i < count; i++) {
        unsigned port;

        if (!take_port(texts[i], &port, why, why_size))
            return false;
        if (port)
            settings->ports[settings->port_count++] = (uint16_t)port;
        else
            settings->any_port = true;
    }
    return true;
}

bool
settings_permit_port(const struct settings *settings, uint16_t port)
{
    if (settings->any_port || !port_is_blocked(port))
        return true;
    for (size_t i = 0; i < settings->port_count; i++)
        if (settings->ports[i] == port)
            return true;
    return false;
}

/* ---- upstream proxy, authorities ----------------------------------------------------- */

static bool
parse_proxy(struct target *target, const char *url, char *why, size_t why_size)
{
    char reason[256];

    if (target_parse(target, span_str(url), reason, sizeof(reason)) == FETCH_OK)
        return true;
    snprintf(why, why_size, "\"%.200s\": %s", url, reason);
    return false;
}

bool
fetch_check_proxy(const char *url, char *why, size_t why_size)
{
    struct target target;

    if (!parse_proxy(&target, url, why, why_size))
        return false;
    target_free(&target);
    return true;
}

static bool
take_proxy(struct settings *settings, const char *url, char *why, size_t why_size)
{
    struct target target;

    if (!parse_proxy(&target, url, why, why_size))
        return false;
    settings->config.upstream_proxy = strdup(target.text);
    settings->proxy_host = target.host;
    settings->proxy_port = target.port;
    target.host = NULL;
    target_free(&target);
    if (!settings->config.upstream_proxy)
        return refuse(why, why_size, "out of memory");
    return true;
}

/* Reads the file once: later changes of it have no effect. */
bool
fetch_read_authorities(const char *path, struct buf *authorities, char *why, size_t why_size)
{
    int error = load_file(path, authorities);

    if (error) {
        snprintf(why, why_size, "cannot read %.200s: %s", path, strerror(error));
        return false;
    }
    if (!memmem(buf_str(authorities), authorities->len, "-----BEGIN ", 11) ||
        !memmem(buf_str(authorities), authorities->len, "CERTIFICATE-----", 16)) {
        snprintf(why, why_size, "%.200s contains no certificate in PEM", path);
        return false;
    }
    return true;
}

bool
settings_init(struct settings *settings, const struct fetch_config *config, char *why,
              size_t why_size)
{
    *settings = (struct settings){.config = *config};
    settings->config.owns_addresses = false;
    buf_init(&settings->authorities, FETCH_AUTHORITIES_MAX);
    settings->config.cacert = NULL;
    settings->config.authorities = span_of(NULL, 0);
    settings->config.upstream_proxy = NULL;
    settings->config.connect_to = NULL;
    settings->config.allow_ports = NULL;
    if (!check_numbers(config, why, why_size))
        return false;
    if (!config->getaddrinfo) {
        settings->config.getaddrinfo = getaddrinfo;
        settings->config.freeaddrinfo = freeaddrinfo;
    }
    if (config->upstream_proxy && config->connect_to && config->connect_to[0])
        return refuse(why, why_size, "--connect-to and --upstream-proxy exclude each other");
    if (config->allow_ports && !take_ports(settings, config->allow_ports, why, why_size))
        return false;
    if (config->connect_to && !take_rules(settings, config->connect_to, why, why_size))
        return false;
    if (config->upstream_proxy && !take_proxy(settings, config->upstream_proxy, why, why_size))
        return false;
    if (config->authorities.len)
        return buf_append(&settings->authorities, config->authorities.ptr,
                          config->authorities.len) ||
               refuse(why, why_size, "out of memory");
    return !config->cacert ||
           fetch_read_authorities(config->cacert, &settings->authorities, why, why_size);
}

void
settings_free(struct settings *settings)
{
    for (size_t i = 0; i < settings->rule_count; i++)
        free_rule(&settings->rules[i]);
    free(settings->rules);
    free(settings->ports);
    free(settings->proxy_host);
    free((char *)settings->config.upstream_proxy);
    if (settings->config.owns_addresses)
        address_policy_destroy((struct address_policy *)(uintptr_t)settings->config.addresses);
    buf_free(&settings->authorities);
    *settings = (struct settings){0};
}

static void
destroy(struct shared *shared)
{
    struct settings *settings = (struct settings *)shared;

    settings_free(settings);
    free(settings);
}

struct settings *
fetch_settings_create(const struct fetch_config *config, char *why, size_t why_size)
{
    struct settings *settings = malloc(sizeof(*settings));

    if (!settings) {
        (void)refuse(why, why_size, "out of memory");
        return NULL;
    }
    if (settings_init(settings, config, why, why_size)) {
        shared_init(&settings->shared, destroy);
        settings->config.owns_addresses = config->owns_addresses;
        return settings;
    }
    settings_free(settings);
    free(settings);
    return NULL;
}

struct settings *
fetch_settings_retain(struct settings *settings)
{
    (void)shared_retain(&settings->shared);
    return settings;
}

void
fetch_settings_release(struct settings **settings)
{
    struct shared *gone = *settings ? &(*settings)->shared : NULL;

    *settings = NULL;
    shared_release(&gone);
}

struct route
settings_route(const struct settings *settings, const struct target *target)
{
    struct route route = {.host = target->host, .port = target->port};

    if (settings->proxy_host) {
        route.host = settings->proxy_host;
        route.port = settings->proxy_port;
        route.by_operator = true;
        route.proxied = true;
        return route;
    }
    /* The first that matches, as curl's --connect-to has it. */
    for (size_t i = 0; i < settings->rule_count; i++) {
        const struct connect_rule *rule = &settings->rules[i];

        if ((*rule->host && strcmp(rule->host, target->host) != 0) ||
            (rule->port && rule->port != target->port))
            continue;
        if (*rule->target_host) {
            route.host = rule->target_host;
            route.by_operator = true;
        }
        if (rule->target_port) {
            route.port = (uint16_t)rule->target_port;
            route.own_port = true;
        }
        route.redirected = true;
        break;
    }
    return route;
}
