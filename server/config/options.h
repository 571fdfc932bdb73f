/*
 * The options of sunproxyd, on the command line and in a configuration file. One table (options.c)
 * defines both, --help and --check-config.
 *
 * Used by one thread, before any other starts; read-only afterwards.
 */
#ifndef SUNPROXY_SERVER_OPTIONS_H
#define SUNPROXY_SERVER_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/token_bucket.h"

#define OPTION_ROWS_MAX 128

/* The values of a repeated option, ended by NULL. */
struct option_list {
    char **items;
    char **places; /* of each item as option_place() has it; NULL: of the command line */
    size_t count;
};

/*
 * What precedes the option's name in a message on items[i]: "--" for one of the command line, and
 * "FILE:LINE: " for one of the configuration file.
 */
static inline const char *
option_place(const struct option_list *list, size_t i)
{
    return list->places && list->places[i] ? list->places[i] : "--";
}

enum count_bytes { COUNT_WHOLE, COUNT_BODY };
enum sandbox_choice { SANDBOX_ON, SANDBOX_OFF };
enum freshness { FRESHNESS_ON, FRESHNESS_OFF };
enum rewrite_location { REWRITE_LOCATION_ON, REWRITE_LOCATION_OFF };
enum auth_failure { AUTH_FAILURE_503, AUTH_FAILURE_407 };
enum store_reads { STORE_READS_AUTO, STORE_READS_RING, STORE_READS_THREADS };

enum store_admit { STORE_ADMIT_SECOND, STORE_ADMIT_ALL };
enum show_victims { VICTIMS_NONE, VICTIMS_ADMIN, VICTIMS_ALL };

struct options {
    char *places[OPTION_ROWS_MAX]; /* by row of the table, as option_place(); NULL: of the command
                                      line */

    /* listening */
    struct option_list listen;
    uint64_t port;
    char *socket; /* NULL: the default path; "none": no socket */
    uint64_t socket_mode;
    bool no_rpcbind;
    struct option_list admin_uid;

    /* HTTP */
    struct option_list http;
    struct option_list http_proxied;
    struct option_list proxy_protocol_net; /* empty: loopback */
    struct option_list trust_forwarded;
    uint64_t forwarded_field;
    struct option_list metrics;
    struct option_list origin;
    uint64_t rewrite_location;
    struct option_list client_net; /* empty: loopback */
    struct option_list purge_net;
    struct option_list connect_port; /* empty: 443 */
    uint64_t max_tunnels;

    /* users */
    char *users;       /* file; NULL: none */
    char *auth_helper; /* command; NULL: none */
    uint64_t auth_helper_children;
    uint64_t auth_helper_concurrency; /* 0: helpers without channel numbers */
    char *auth_realm;
    int64_t auth_timeout;
    int64_t auth_ttl;
    uint64_t auth_failure;

    /* peers */
    char *peers;
    char *peer_self;
    char *peer_key_file;

    /* privileges */
    char *user; /* NULL: the user that started the daemon */
    uint64_t sandbox;

    /* the cache */
    char *policy;
    uint64_t capacity_urls;
    uint64_t capacity_bytes;
    uint64_t count_bytes;
    uint64_t freshness;
    int64_t max_age;             /* 0: not bounded */
    uint64_t heuristic_lifetime; /* percent */
    int64_t redirect_lifetime;
    int64_t error_lifetime;
    bool store_cookies;
    bool store_client_errors;
    struct option_list tag_field; /* empty: tags_default_fields */
    struct option_list tag_rule;
    struct option_list write_rule;
    bool invalidate_early;
    struct option_list rule;
    char *store; /* NULL: none */
    uint64_t store_size;
    uint64_t store_admit;
    int64_t store_sync;
    uint64_t store_reads;
    uint64_t store_readers;
    char *shared; /* NULL: none */
    char *shared_key_file;
    uint64_t shared_max;
    int64_t shared_poll;
    int64_t shared_skew;
    int64_t shared_wait;
    int64_t shared_timeout;
    uint64_t shards; /* 0: chosen by workers and capacity */
    uint64_t seed;
    uint64_t show_victims;

    /* origins */
    struct option_list allow_net;
    struct option_list allow_port;
    struct option_list connect_to;
    char *upstream_proxy;
    char *cacert;
    char *user_agent;
    uint64_t max_page;
    uint64_t range_fill_size;
    uint64_t max_fetches;
    uint64_t max_fetches_waiting;    /* 0: half of max_fetches */
    uint64_t max_fetches_per_client; /* 0: not bounded */
    uint64_t max_fetches_per_origin;
    uint64_t retry_budget;
    uint64_t max_idle_per_origin;
    uint64_t max_fetches_queued;
    uint64_t max_waiters;
    uint64_t max_transit;
    uint64_t max_redirects;
    uint64_t resolver_threads;
    int64_t resolve_timeout;
    int64_t connect_timeout;
    int64_t first_byte_timeout;
    int64_t stall_timeout;
    int64_t fetch_timeout;
    int64_t dns_ttl;

    /* clients */
    uint64_t workers; /* 0: one per core */
    uint64_t max_connections;
    uint64_t max_connections_per_client; /* 0: not bounded */
    uint64_t client_prefix_ipv4;         /* bits of an address that make a client */
    uint64_t client_prefix_ipv6;
    struct token_rate rate_calls; /* of one client; per_second 0: not bounded */
    struct token_rate rate_fetches;
    struct token_rate rate_bytes;
    uint64_t max_requests;
    uint64_t max_queued_bytes;
    uint64_t max_cursors;
    int64_t cursor_timeout;
    int64_t idle_timeout;
    int64_t record_timeout;
    int64_t stop_delay;
    int64_t stop_timeout;

    /* logs */
    char *access_log;
    char *request_db;        /* NULL: none */
    uint64_t request_db_max; /* bytes; 0: not bounded */
    uint64_t log_level;
    char *log_format;

    /* no options: what the control group of the process makes of some */
    uint64_t memory_limit; /* in bytes; UINT64_MAX: none */
    bool memory_is_short;  /* capacity_bytes or max_transit is lower than was asked for */

    /* only on the command line */
    int argc; /* the words of options_parse(), which must stay */
    char **argv;
    char *config;
    bool check_config;
    bool take_over;
    bool default_config;
    bool list_metrics;
    bool list_log_format;
    bool help;
    bool version;
};

/* Everything at its default. False without memory. */
bool options_init(struct options *options);
void options_free(struct options *options);

/*
 * Reads the command line and, if it names one, the configuration file. The command line overrides
 * the file; lists are joined. Returns 0; or EX_USAGE if the first error is on the command line and
 * EX_CONFIG if it is in the file. `why` has a line for each error, with file and line if it is in
 * the file; lines are separated by line feeds. The options without an error are set.
 */
int options_parse(struct options *options, int argc, char **argv, struct buf *why);

/*
 * Reads a text as it reads a file, over the values that are there: one of options_print_config()
 * gives each option its value. False with a line in `why` for each error.
 */
bool options_parse_text(struct options *options, struct span text, struct buf *why);

/*
 * Compares two sets of options. The names of those that differ are appended to `live`, if a reload
 * changes them, or to `fixed`, separated by ", ". What is of the command line alone is left out.
 * False without memory.
 */
bool options_compare(const struct options *a, const struct options *b, struct buf *live,
                     struct buf *fixed);

/* Has any of these options, ended by NULL, another value in the two sets? */
bool options_differ(const struct options *a, const struct options *b, const char *const *names);

/* What precedes the name of an option that is not repeated, in a message on its value. */
const char *options_place(const struct options *options, const char *name);

/* Prints the text of --help. */
void options_print_help(FILE *out);

/* Prints a configuration file in which every option is a comment, with its default. */
void options_print_log_format(FILE *out);
void options_print_defaults(FILE *out);

/* Prints every value in force, as a configuration file. */
void options_print_config(const struct options *options, FILE *out);

#endif
