#include "server/config/options.h"

#include <stdlib.h>
#include <string.h>

#include "server/config/options_table.h"
#include "store/store.h"

#define AT(field) offsetof(struct options, field)

const struct option_row option_rows[] = {
    {.help = "Listening"},
    {"listen", 'l', OPTION_LIVE, OPTION_LIST, AT(listen), "ADDRESS", NULL, 0, 0,
     "IPv4 or IPv6 address to listen on for RPC, or \"none\"; may be repeated (default: "
     "127.0.0.1 and ::1)"},
    {"port", 'p', OPTION_LIVE, OPTION_UINT, AT(port), "N", "0", 0, 65535,
     "TCP port; 0: chosen by the system, found through rpcbind"},
    {"socket", 's', OPTION_LIVE, OPTION_STRING, AT(socket), "PATH", NULL, 0, 0,
     "AF_UNIX socket, also for administration, or \"none\" (default: sunproxy.sock in "
     "$RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR, /run/sunproxy for root, or /tmp/sunproxy-UID)"},
    {"socket-mode", 0, OPTION_FIXED, OPTION_OCTAL, AT(socket_mode), "MODE", "0666", 0, 0777,
     "permissions of the socket"},
    {"no-rpcbind", 0, OPTION_FIXED, OPTION_FLAG, AT(no_rpcbind), NULL, "no", 0, 0,
     "do not register with rpcbind"},
    {"admin-uid", 0, OPTION_LIVE, OPTION_LIST, AT(admin_uid), "UID", NULL, 0, 0,
     "user that may administer over the socket, besides root and the daemon's own; may be "
     "repeated"},

    {.help = "HTTP"},
    {"http", 0, OPTION_LIVE, OPTION_LIST, AT(http), "ADDRESS:PORT", NULL, 0, 0,
     "serve HTTP there, or on an AF_UNIX socket with unix:PATH; may be repeated"},
    {"origin", 0, OPTION_LIVE, OPTION_LIST, AT(origin), "[HOST]/PREFIX=URL[,URL...]", NULL, 0, 0,
     "reverse proxy: fetch from URL what is requested of HOST (any, if empty) below /PREFIX; of "
     "several URLs, the next one while one fails; host=origin or host=NAME behind them: what the "
     "origin gets as Host (default: the client's); may be repeated, the longest match counts"},
    {"http-proxied", 0, OPTION_LIVE, OPTION_LIST, AT(http_proxied), "ADDRESS:PORT", NULL, 0, 0,
     "serve HTTP there, too, to a load balancer: each connection begins with a header of the PROXY "
     "protocol; may be repeated"},
    {"proxy-protocol-net", 0, OPTION_LIVE, OPTION_LIST, AT(proxy_protocol_net), "CIDR", NULL, 0, 0,
     "load balancers that may connect to --http-proxied over TCP; may be repeated (default: "
     "loopback)"},
    {"trust-forwarded", 0, OPTION_LIVE, OPTION_LIST, AT(trust_forwarded), "CIDR", NULL, 0, 0,
     "TLS terminators and proxies in front, whose field of --forwarded-field states a request's "
     "client, scheme and host, or \"unix\" for AF_UNIX peers; may be repeated (default: none)"},
    {"forwarded-field", 0, OPTION_LIVE, OPTION_CHOICE, AT(forwarded_field),
     "none|x-forwarded-for|forwarded", "none", 0, 0,
     "the field that those of --trust-forwarded set, and which is believed; with x-forwarded-for "
     "also x-forwarded-proto and x-forwarded-host"},
    {"rewrite-location", 0, OPTION_LIVE, OPTION_CHOICE, AT(rewrite_location), "on|off", "on", 0, 0,
     "reverse proxy: let Location and Content-Location that name an origin's URL name its row"},
    {"client-net", 0, OPTION_LIVE, OPTION_LIST, AT(client_net), "CIDR", NULL, 0, 0,
     "clients that may use RPC and the forward proxy over TCP; may be repeated (default: loopback)"},
    {"purge-net", 0, OPTION_LIVE, OPTION_LIST, AT(purge_net), "CIDR", NULL, 0, 0,
     "clients that may use the method PURGE, besides administrators over an AF_UNIX socket; may be "
     "repeated"},
    {"connect-port", 0, OPTION_LIVE, OPTION_LIST, AT(connect_port), "PORT", NULL, 0, 0,
     "port to which the forward proxy makes tunnels (CONNECT), or \"any\"; may be repeated (default: "
     "443)"},
    {"max-tunnels", 0, OPTION_LIVE, OPTION_UINT, AT(max_tunnels), "N", "4096", 0, 1000000,
     "tunnels at once, a quarter of what the others leave for one client; 0: none"},
    {"metrics", 0, OPTION_LIVE, OPTION_LIST, AT(metrics), "ADDRESS:PORT", NULL, 0, 0,
     "serve the metrics there at /metrics, as OpenMetrics, and /healthz, to any client; may be "
     "repeated"},

    {.help = "Users"},
    {"users", 0, OPTION_LIVE, OPTION_STRING, AT(users), "FILE", NULL, 0, 0,
     "users of the forward proxy, a line NAME:HASH each, which \"sunproxy passwd\" writes: requests "
     "need one, and get status 407 without"},
    {"auth-helper", 0, OPTION_FIXED, OPTION_STRING, AT(auth_helper), "COMMAND", NULL, 0, 0,
     "ask this command about users instead, in the protocol of Squid's basic authenticators"},
    {"auth-helper-children", 0, OPTION_FIXED, OPTION_UINT, AT(auth_helper_children), "N", "2", 1,
     64,
     "processes of the command"},
    {"auth-helper-concurrency", 0, OPTION_FIXED, OPTION_UINT, AT(auth_helper_concurrency), "N", "0",
     0, 64,
     "questions at once to one process, with channel numbers; 0: one, without"},
    {"auth-realm", 0, OPTION_LIVE, OPTION_STRING, AT(auth_realm), "TEXT", "sunproxy", 0, 0,
     "realm that browsers show when they ask for a password"},
    {"auth-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(auth_timeout), "TIME", "10s", 1, 0,
     "time limit for the check of a user"},
    {"auth-ttl", 0, OPTION_LIVE, OPTION_DURATION, AT(auth_ttl), "TIME", "5m", 0, 0,
     "time for which an accepted password is not checked again; a refused one 10 s at most"},
    {"auth-failure", 0, OPTION_LIVE, OPTION_CHOICE, AT(auth_failure), "503|407", "503", 0, 0,
     "status for requests whose user cannot be checked: no helper answers, or too many wait"},

    {.help = "Peers"},
    {"peers", 0, OPTION_LIVE, OPTION_STRING, AT(peers), "URL,URL...", NULL, 0, 0,
     "daemons that share what they fetch, this one included; the same list for each: a miss is asked "
     "of the URL's owner among them before the origin"},
    {"peer-self", 0, OPTION_LIVE, OPTION_STRING, AT(peer_self), "URL", NULL, 0, 0,
     "the URL of --peers that is this daemon's (default: the one with the address of --http)"},
    {"peer-key-file", 0, OPTION_LIVE, OPTION_STRING, AT(peer_key_file), "FILE", NULL, 0, 0,
     "file with the key by which peers know each other, of 16 to 256 bytes; of several lines the "
     "first is sent, and each is accepted"},

    {.help = "Privileges"},
    {"user", 'u', OPTION_FIXED, OPTION_STRING, AT(user), "NAME[:GROUP]", NULL, 0, 0,
     "run as this user after root has opened ports, socket and access log"},
    {"sandbox", 0, OPTION_FIXED, OPTION_CHOICE, AT(sandbox), "on|off", "on", 0, 0,
     "drop capabilities, and restrict system calls and files to those that the daemon needs"},

    {.help = "Cache"},
    {"policy", 'P', OPTION_LIVE, OPTION_POLICY, AT(policy), "NAME[:PARAMETER=VALUE,...]", "lru", 0,
     0,
     "replacement policy; \"help\" lists them with their parameters, \"none\" is no cache"},
    {"capacity-urls", 'n', OPTION_LIVE, OPTION_UINT, AT(capacity_urls), "N", "0", 0, UINT64_MAX,
     "capacity in pages; 0: not bounded in pages"},
    {"capacity-bytes", 'b', OPTION_LIVE, OPTION_BYTES, AT(capacity_bytes), "SIZE", "0", 0, 0,
     "capacity in bytes; 0: not bounded in bytes if --capacity-urls is given, else 256M"},
    {"count-bytes", 0, OPTION_FIXED, OPTION_CHOICE, AT(count_bytes), "whole|body", "whole", 0, 0,
     "bytes of a page that count: body, URL, headers and bookkeeping, or only the body, for "
     "studies"},
    {"freshness", 0, OPTION_FIXED, OPTION_CHOICE, AT(freshness), "on|off", "on", 0, 0,
     "obey the origin's rules on storing and sharing; off: store every 200 until it is evicted"},
    {"max-age", 0, OPTION_LIVE, OPTION_DURATION, AT(max_age), "TIME", "0", 0, 0,
     "longest time for which a page is a hit without a new fetch, also with --freshness off; 0: not "
     "bounded"},
    {"heuristic-lifetime", 0, OPTION_LIVE, OPTION_UINT, AT(heuristic_lifetime), "PERCENT", "10", 0,
     100,
     "over HTTP, lifetime of a response that states none, as a share of the time since it was "
     "modified, at most a day; not for requests with Cookie or Authorization; 0: none"},
    {"redirect-lifetime", 0, OPTION_LIVE, OPTION_DURATION, AT(redirect_lifetime), "TIME", "24h", 0,
     0,
     "over HTTP, longest lifetime of a stored redirect"},
    {"error-lifetime", 0, OPTION_LIVE, OPTION_DURATION, AT(error_lifetime), "TIME", "10m", 0, 0,
     "over HTTP, longest lifetime of a stored error"},
    {"store-cookies", 0, OPTION_LIVE, OPTION_FLAG, AT(store_cookies), NULL, "no", 0, 0,
     "over HTTP, store responses that set cookies, if they state a positive lifetime and not "
     "no-cache"},
    {"store-client-errors", 0, OPTION_LIVE, OPTION_FLAG, AT(store_client_errors), NULL, "no", 0, 0,
     "over HTTP, store responses with status 400, 413 or 414, if they state a lifetime"},
    {"tag-field", 0, OPTION_LIVE, OPTION_LIST, AT(tag_field), "NAME", NULL, 0, 0,
     "field of responses with tags to purge by; may be repeated (default: Surrogate-Key and "
     "Cache-Tag)"},
    {"tag-rule", 0, OPTION_LIVE, OPTION_LIST, AT(tag_rule), "PATTERN -> TAG...", NULL, 0, 0,
     "give tags to what is stored of a path: '/* -> $1' the first segment; may be repeated"},
    {"write-rule", 0, OPTION_LIVE, OPTION_LIST, AT(write_rule), "PATTERN -> TAG...", NULL, 0, 0,
     "tags that a write to a path over HTTP invalidates besides those of its URL: '/paths -> users'; "
     "may be repeated"},
    {"invalidate-early", 0, OPTION_LIVE, OPTION_FLAG, AT(invalidate_early), NULL, "no", 0, 0,
     "over HTTP, let each write invalidate before it is forwarded, too, as those that rules concern "
     "do"},
    {"rule", 0, OPTION_LIVE, OPTION_LIST, AT(rule), "KEY=VALUE[;...]", NULL, 0, 0,
     "decide about requests and responses, as a section [rule] does: sunproxyd.rules(5); may be "
     "repeated"},
    {"store", 0, OPTION_FIXED, OPTION_STRING, AT(store), "FOLDER", NULL, 0, 0,
     "keep pages on disk, too, in files in this folder, which is made if it is not there"},
    {"store-size", 0, OPTION_FIXED, OPTION_BYTES, AT(store_size), "SIZE", "10G", STORE_LEAST,
     STORE_MOST,
     "most bytes of the files of the store"},
    {"store-admit", 0, OPTION_FIXED, OPTION_CHOICE, AT(store_admit), "second|all", "second", 0, 0,
     "pages that are written to the store: at their second request, or all"},
    {"store-sync", 0, OPTION_FIXED, OPTION_DURATION, AT(store_sync), "TIME", "1s", 1, 0,
     "time after which a written page is on disk, also if the machine fails then"},
    {"store-reads", 0, OPTION_FIXED, OPTION_CHOICE, AT(store_reads), "auto|ring|threads", "auto", 0, 0,
     "how the store is read: by io_uring (ring), by threads, or by threads without io_uring (auto)"},
    {"store-readers", 0, OPTION_FIXED, OPTION_UINT, AT(store_readers), "N", "8", 1, 256,
     "threads that read from the store"},
    {"shared", 0, OPTION_FIXED, OPTION_STRING, AT(shared), "URL,URL...", NULL, 0, 0,
     "keep small pages in these servers, too, memcached://host:port each, which several daemons "
     "share: a miss is asked of them before the origin"},
    {"shared-key-file", 0, OPTION_LIVE, OPTION_STRING, AT(shared_key_file), "FILE", NULL, 0, 0,
     "file with the key that these daemons share, of 16 to 256 bytes; of several lines the first is "
     "written with, and each is accepted"},
    {"shared-max", 0, OPTION_FIXED, OPTION_BYTES, AT(shared_max), "SIZE", "100K", 1, 900000,
     "longest page that is kept there"},
    {"shared-poll", 0, OPTION_FIXED, OPTION_DURATION, AT(shared_poll), "TIME", "500ms", 10000, 0,
     "time after which a daemon has taken what another one has purged"},
    {"shared-skew", 0, OPTION_FIXED, OPTION_DURATION, AT(shared_skew), "TIME", "1s", 1000, 0,
     "by how much the clocks of daemons and servers may differ"},
    {"shared-wait", 0, OPTION_FIXED, OPTION_DURATION, AT(shared_wait), "TIME", "1s", 0, 0,
     "time for which a request waits for a page that another daemon fetches"},
    {"shared-timeout", 0, OPTION_FIXED, OPTION_DURATION, AT(shared_timeout), "TIME", "40ms", 1000, 0,
     "time after which a server that has not answered is not used until it does"},
    {"shards", 0, OPTION_FIXED, OPTION_UINT_AUTO, AT(shards), "N|auto", "auto", 0, 64,
     "parts of the cache, each with its own lock; with 1 the policy is exact; auto, or 0: chosen by "
     "workers and capacity"},
    {"seed", 0, OPTION_FIXED, OPTION_UINT, AT(seed), "N", "1", 0, UINT64_MAX,
     "seed of the random numbers of randomised policies"},
    {"show-victims", 0, OPTION_LIVE, OPTION_CHOICE, AT(show_victims), "none|admin|all", "admin", 0,
     0,
     "clients that receive the URLs of evicted pages"},

    {.help = "Origins"},
    {"allow-net", 0, OPTION_LIVE, OPTION_LIST, AT(allow_net), "CIDR", NULL, 0, 0,
     "allow fetches from addresses that are not public, or this host's own; may be repeated"},
    {"allow-port", 0, OPTION_LIVE, OPTION_LIST, AT(allow_port), "PORT", NULL, 0, 0,
     "allow fetches from a port that browsers refuse, or from \"any\"; may be repeated"},
    {"connect-to", 0, OPTION_LIVE, OPTION_LIST, AT(connect_to), "HOST:PORT:HOST:PORT", NULL, 0, 0,
     "connect to the second host and port instead of the first, as curl does; an empty part "
     "matches any; may be repeated"},
    {"retry-budget", 0, OPTION_LIVE, OPTION_UINT, AT(retry_budget), "PERCENT", "20", 0, 1000,
     "requests of a row that may go on to another URL, as a share of its requests, and a few more"},
    {"upstream-proxy", 0, OPTION_LIVE, OPTION_STRING, AT(upstream_proxy), "URL", NULL, 0, 0,
     "fetch through this HTTP proxy"},
    {"cacert", 0, OPTION_LIVE, OPTION_STRING, AT(cacert), "FILE", NULL, 0, 0,
     "certificate authorities to trust in addition to the system's"},
    {"user-agent", 0, OPTION_LIVE, OPTION_STRING, AT(user_agent), "TEXT",
     "sunproxy/" SUNPROXY_VERSION, 0,
     0, "User-Agent field in requests to origins"},
    {"max-page", 0, OPTION_LIVE, OPTION_BYTES, AT(max_page), "SIZE", "0", 0, 0,
     "largest body that is stored; 0: 1/8 of the capacity, over RPC 20 MiB at least"},
    {"range-fill-size", 0, OPTION_LIVE, OPTION_BYTES, AT(range_fill_size), "SIZE", "64M", 0, 0,
     "largest body that is fetched whole and stored for a request for a part of it; 0: none"},
    {"max-fetches", 0, OPTION_LIVE, OPTION_UINT, AT(max_fetches), "N", "4096", 1, 65536,
     "concurrent fetches"},
    {"max-fetches-waiting", 0, OPTION_LIVE, OPTION_UINT, AT(max_fetches_waiting), "N", "0", 0,
     65536,
     "concurrent fetches before the first byte of their answer; 0: half of --max-fetches"},
    {"max-fetches-per-client", 0, OPTION_LIVE, OPTION_UINT, AT(max_fetches_per_client), "N", NULL,
     0,
     65536,
     "concurrent fetches for one client before the first byte of their answer, fewer while others "
     "fetch; 0: not bounded (default: 1/8 of --max-fetches-waiting)"},
    {"max-fetches-per-origin", 0, OPTION_LIVE, OPTION_UINT, AT(max_fetches_per_origin), "N",
     "512", 1,
     65536,
     "concurrent fetches from one origin before the first byte of their answer; a client may have "
     "half of what the others leave"},
    {"max-idle-per-origin", 0, OPTION_LIVE, OPTION_UINT, AT(max_idle_per_origin), "N", "32", 0,
     65536,
     "idle connections kept to one origin"},
    {"max-fetches-queued", 0, OPTION_LIVE, OPTION_UINT, AT(max_fetches_queued), "N", "4096", 0,
     1000000,
     "fetches in the queue; above it, the last one of the client with the most fails"},
    {"max-waiters", 0, OPTION_LIVE, OPTION_UINT, AT(max_waiters), "N", "4096", 1, 1000000,
     "requests that share one fetch"},
    {"max-transit", 0, OPTION_LIVE, OPTION_BYTES, AT(max_transit), "SIZE", "1G", 33554432, 0,
     "memory for everything outside the cache: pages in transit, calls, requests, fetches"},
    {"max-redirects", 0, OPTION_LIVE, OPTION_UINT, AT(max_redirects), "N", "10", 0, 100,
     "redirects that are followed for one request"},
    {"resolver-threads", 0, OPTION_FIXED, OPTION_UINT, AT(resolver_threads), "N", "256", 1, 4096,
     "concurrent name lookups, one thread each, started on demand"},
    {"resolve-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(resolve_timeout), "TIME", "10s", 1, 0,
     "time limit for a name lookup"},
    {"connect-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(connect_timeout), "TIME", "10s", 1, 0,
     "time limit for a connection, TLS included"},
    {"first-byte-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(first_byte_timeout), "TIME", "60s",
     1, 0,
     "time limit for the first byte of an answer"},
    {"stall-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(stall_timeout), "TIME", "60s", 1, 0,
     "time limit between two bytes of a body"},
    {"fetch-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(fetch_timeout), "TIME", "80s", 1, 0,
     "time limit for a whole fetch, without the body but for version 1 of RPC"},
    {"dns-ttl", 0, OPTION_LIVE, OPTION_DURATION, AT(dns_ttl), "TIME", "60s", 0, 0,
     "time for which addresses of a name are reused"},

    {.help = "Clients"},
    {"workers", 'w', OPTION_FIXED, OPTION_UINT, AT(workers), "N", "0", 0, 64,
     "threads that serve clients; 0: one per core"},
    {"max-connections", 0, OPTION_LIVE, OPTION_UINT, AT(max_connections), "N", "16384", 1, 1000000,
     "connections of all clients; 16 more are reserved for administrators"},
    {"max-connections-per-client", 0, OPTION_LIVE, OPTION_UINT, AT(max_connections_per_client),
     "N",
     "4096", 0, 1000000, "connections of one address or user; 0: not bounded"},
    {"client-prefix-ipv4", 0, OPTION_FIXED, OPTION_UINT, AT(client_prefix_ipv4), "BITS", "32", 0,
     32,
     "leading bits of an IPv4 address that identify a client"},
    {"client-prefix-ipv6", 0, OPTION_FIXED, OPTION_UINT, AT(client_prefix_ipv6), "BITS", "64", 0,
     128,
     "leading bits of an IPv6 address that identify a client"},
    {"rate-calls", 0, OPTION_LIVE, OPTION_RATE, AT(rate_calls), "RATE[:BURST]", "0", 0, 0,
     "calls per second of one client; above it, further calls wait; 0: not bounded"},
    {"rate-fetches", 0, OPTION_LIVE, OPTION_RATE, AT(rate_fetches), "RATE[:BURST]", "0", 0, 0,
     "fetches per second for one client; above it, a miss is an error; 0: not bounded"},
    {"rate-bytes", 0, OPTION_LIVE, OPTION_RATE_BYTES, AT(rate_bytes), "SIZE[:BURST]", "0", 0, 0,
     "bytes of answers per second to one client; above it, further calls wait; 0: not bounded"},
    {"max-requests", 0, OPTION_LIVE, OPTION_UINT, AT(max_requests), "N", "256", 1, 65536,
     "requests in flight per connection; above it, further calls wait"},
    {"max-queued-bytes", 0, OPTION_LIVE, OPTION_BYTES, AT(max_queued_bytes), "SIZE", "32M", 1,
     1u << 30,
     "bytes of unread answers per connection; above it, further calls wait"},
    {"max-holds", 0, OPTION_LIVE, OPTION_UINT, AT(max_cursors), "N", "4096", 1, 1000000,
     "large bodies being read over version 2 of RPC at once, fewer by one client; above it, a fetch "
     "of a large body is an error"},
    {"hold-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(cursor_timeout), "TIME", "60s", 1, 0,
     "time after which a large body that a client of RPC does not read on must be fetched again"},
    {"idle-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(idle_timeout), "TIME", "300s", 0, 0,
     "time after which an idle connection is closed; 0: never"},
    {"record-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(record_timeout), "TIME", "60s", 0, 0,
     "time limit for a call to arrive completely; 0: none"},
    {"stop-delay", 0, OPTION_LIVE, OPTION_DURATION, AT(stop_delay), "TIME", "0", 0, 0,
     "time for which the daemon goes on serving when it is stopped, while /healthz of --metrics "
     "has status 503, so that load balancers leave it"},
    {"stop-timeout", 0, OPTION_LIVE, OPTION_DURATION, AT(stop_timeout), "TIME", "30s", 0, 0,
     "time limit for requests in flight when the daemon stops"},

    {.help = "Logs"},
    {"access-log", 'a', OPTION_FIXED, OPTION_LOG_TARGET, AT(access_log), "FILE", NULL, 0, 0,
     "one line per request; reopened on SIGHUP and SIGUSR1; \"-\" is standard output, |COMMAND a "
     "command's input, syslog:[FACILITY][@PLACE] the system's log, journal: systemd's"},
    {"request-db", 0, OPTION_FIXED, OPTION_STRING, AT(request_db), "FILE", NULL, 0, 0,
     "SQLite database with one row per request; opened again on SIGHUP and SIGUSR1"},
    {"request-db-max", 0, OPTION_FIXED, OPTION_BYTES, AT(request_db_max), "SIZE", "1G", 0, 0,
     "size of the request database; above it, its oldest rows are removed; 0: not bounded"},
    {"log-level", 'L', OPTION_LIVE, OPTION_CHOICE, AT(log_level), "error|warning|info|debug",
     "info", 0,
     0, "least severe messages on standard error"},
    {"log-format", 0, OPTION_LIVE, OPTION_LOG_FORMAT, AT(log_format), "FORMAT", "plain", 0, 0,
     "format of the access log: plain, json, common, combined, vhost_combined or a string of "
     "directives such as %h %t \"%r\" %>s %b %{outcome}x; messages are plain or json"},

    {.help = "This program"},
    {"config", 'c', OPTION_HERE, OPTION_STRING, AT(config), "FILE", NULL, 0, 0,
     "read options from a file first; its lines are KEY = VALUE with the names above as keys"},
    {"take-over", 0, OPTION_HERE, OPTION_FLAG, AT(take_over), NULL, "no", 0, 0,
     "take the sockets over from the daemon that runs, which ends when its requests have ended; "
     "SIGUSR2 makes that daemon start such a process"},
    {"check-config", 0, OPTION_HERE, OPTION_FLAG, AT(check_config), NULL, "no", 0, 0,
     "check all options, print them as a configuration file, and exit"},
    {"default-config", 0, OPTION_HERE, OPTION_FLAG, AT(default_config), NULL, "no", 0, 0,
     "print a configuration file that explains every option, and exit"},
    {"list-metrics", 0, OPTION_HERE, OPTION_FLAG, AT(list_metrics), NULL, "no", 0, 0,
     "print the names, kinds and units of all metrics with a sentence on each, and exit"},
    {"list-log-format", 0, OPTION_HERE, OPTION_FLAG, AT(list_log_format), NULL, "no", 0, 0,
     "print the directives of --log-format with their meanings, and exit"},
    {"help", 'h', OPTION_HERE, OPTION_FLAG, AT(help), NULL, "no", 0, 0, "print this text and exit"},
    {"version", 'V', OPTION_HERE, OPTION_FLAG, AT(version), NULL, "no", 0, 0,
     "print the version and exit"},
    {.help = NULL},
};

#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]) - 1)

_Static_assert(ROWS <= OPTION_ROWS_MAX, "a place for each row");

bool
options_init(struct options *options)
{
    struct buf why;
    bool ok = true;

    *options = (struct options){0};
    buf_init(&why, 256);
    for (size_t i = 0; i < ROWS; i++)
        if (option_rows[i].start)
            ok = option_set(options, &option_rows[i], "--", option_rows[i].start, &why) && ok;
    buf_free(&why);
    options->max_fetches_per_client = OPTION_NOT_GIVEN;
    return ok;
}

void
options_free(struct options *options)
{
    for (size_t i = 0; i < ROWS; i++) {
        void *field = (char *)options + option_rows[i].offset;

        if (!option_rows[i].name)
            continue;
        if (option_is_text(option_rows[i].type)) {
            free(*(char **)field);
        } else if (option_rows[i].type == OPTION_LIST) {
            struct option_list *list = field;

            for (size_t item = 0; item < list->count; item++) {
                free(list->items[item]);
                free(list->places[item]);
            }
            free(list->items);
            free(list->places);
        }
        free(options->places[i]);
    }
    *options = (struct options){0};
}

const struct option_row *
option_row_named(const char *name)
{
    for (size_t i = 0; i < ROWS; i++)
        if (option_rows[i].name && strcmp(option_rows[i].name, name) == 0)
            return &option_rows[i];
    return NULL;
}

const char *
options_place(const struct options *options, const char *name)
{
    const char *place = options->places[option_row_named(name) - option_rows];

    return place ? place : "--";
}
