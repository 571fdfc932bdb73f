/*
 * load: drives a server with a fixed number of requests and prints one line of JSON: errors,
 * requests per second, and what the kernel says that the server's process spent on them.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <sysexits.h>
#include <time.h>

#include "base/json.h"
#include "base/units.h"
#include "tests/bench/load.h"

struct options {
    struct load_config load;
    struct span prefix;
    struct span suffix;
    struct span field;
    uint64_t requests;
    uint64_t warm_up;
    pid_t server;
    bool fill;
    bool once;
    bool hold;
};

static const char help[] =
    "usage: load --protocol NAME (--port N | --socket PATH) --bytes N --prefix TEXT [options]\n"
    "\n"
    "  --protocol NAME    rpc2, rpc1, http, memcached, or bare (calls of rpc2, any answer of N\n"
    "                     bytes)\n"
    "  --port N           on 127.0.0.1\n"
    "  --socket PATH      an AF_UNIX socket instead\n"
    "  --bytes N          length of each body or value; for bare, of the whole reply\n"
    "  --prefix TEXT      of the key, before its number of eight digits\n"
    "  --suffix TEXT      of the key, behind its number\n"
    "  --field LINE       of requests over HTTP\n"
    "  --first-key N      number of the first key (0)\n"
    "  --keys N           number of keys (1000)\n"
    "  --connections N    (32)\n"
    "  --depth N          calls outstanding on each connection (1)\n"
    "  --requests N       measured (100000)\n"
    "  --warm-up N        requests before these (10000)\n"
    "  --fill             each key once, in order, misses allowed; memcached: set, not get\n"
    "  --once             each key once, in another order, and measured\n"
    "  --hold             one call on each connection; then the connections are idle until standard\n"
    "                     input ends\n"
    "  --server-pid N     the process whose CPU time is read\n"
    "  --timeout SECONDS  of connecting, of warming up, of measuring (60)\n";

static _Noreturn void
usage_error(const char *what, const char *value)
{
    fprintf(stderr, "load: %s: %s\n", what, value ? value : "missing");
    exit(EX_USAGE);
}

static uint64_t
number(const char *name, const char *text, uint64_t low, uint64_t high)
{
    uint64_t value;

    if (!units_parse_uint(text, low, high, &value))
        usage_error(name, text);
    return value;
}

static enum call_protocol
protocol_named(const char *name)
{
    static const struct {
        const char *name;
        enum call_protocol protocol;
    } names[] = {{"rpc2", CALL_RPC2},
                 {"rpc1", CALL_RPC1},
                 {"http", CALL_HTTP},
                 {"bare", CALL_BARE},
                 {"memcached", CALL_MEMCACHED}};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i].name) == 0)
            return names[i].protocol;
    }
    usage_error("no such protocol", name);
}

static void
set_port(struct load_config *load, uint64_t port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&load->address;

    in->sin_family = AF_INET;
    in->sin_port = htons((uint16_t)port);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    load->address_len = sizeof(*in);
}

static void
set_socket(struct load_config *load, const char *path)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&load->address;

    un->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof(un->sun_path))
        usage_error("too long a path", path);
    strcpy(un->sun_path, path);
    load->address_len = sizeof(*un);
}

static void
set_option(struct options *o, const char *name, const char *value)
{
    struct load_config *load = &o->load;

    if (strcmp(name, "protocol") == 0)
        load->expected.protocol = protocol_named(value);
    else if (strcmp(name, "port") == 0)
        set_port(load, number(name, value, 1, 65535));
    else if (strcmp(name, "socket") == 0)
        set_socket(load, value);
    else if (strcmp(name, "bytes") == 0)
        load->expected.body_len = (uint32_t)number(name, value, 0, 1u << 20);
    else if (strcmp(name, "prefix") == 0)
        o->prefix = span_str(value);
    else if (strcmp(name, "suffix") == 0)
        o->suffix = span_str(value);
    else if (strcmp(name, "field") == 0)
        o->field = span_str(value);
    else if (strcmp(name, "first-key") == 0)
        load->first_key = (uint32_t)number(name, value, 0, CALL_MAX_KEYS / 2);
    else if (strcmp(name, "keys") == 0)
        load->keys = (uint32_t)number(name, value, 1, CALL_MAX_KEYS / 2);
    else if (strcmp(name, "connections") == 0)
        load->connections = (unsigned)number(name, value, 1, 60000);
    else if (strcmp(name, "depth") == 0)
        load->depth = (unsigned)number(name, value, 1, 4096);
    else if (strcmp(name, "requests") == 0)
        o->requests = number(name, value, 1, UINT32_MAX);
    else if (strcmp(name, "warm-up") == 0)
        o->warm_up = number(name, value, 0, UINT32_MAX);
    else if (strcmp(name, "fill") == 0)
        o->fill = true;
    else if (strcmp(name, "once") == 0)
        o->once = true;
    else if (strcmp(name, "hold") == 0)
        o->hold = true;
    else if (strcmp(name, "server-pid") == 0)
        o->server = (pid_t)number(name, value, 1, INT32_MAX);
    else if (strcmp(name, "timeout") == 0)
        load->timeout_us = (int64_t)number(name, value, 1, 3600) * 1000000;
}

static void
parse_options(struct options *o, int argc, char **argv)
{
    static const struct option table[] = {
        {"protocol", required_argument, NULL, 1},
        {"port", required_argument, NULL, 1},
        {"socket", required_argument, NULL, 1},
        {"bytes", required_argument, NULL, 1},
        {"prefix", required_argument, NULL, 1},
        {"suffix", required_argument, NULL, 1},
        {"field", required_argument, NULL, 1},
        {"first-key", required_argument, NULL, 1},
        {"keys", required_argument, NULL, 1},
        {"connections", required_argument, NULL, 1},
        {"depth", required_argument, NULL, 1},
        {"requests", required_argument, NULL, 1},
        {"warm-up", required_argument, NULL, 1},
        {"fill", no_argument, NULL, 1},
        {"once", no_argument, NULL, 1},
        {"hold", no_argument, NULL, 1},
        {"server-pid", required_argument, NULL, 1},
        {"timeout", required_argument, NULL, 1},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int which;
    int c;

    *o = (struct options){
        .load = {.connections = 32, .depth = 1, .keys = 1000, .timeout_us = 60 * (int64_t)1000000},
        .prefix = span_str(""),
        .suffix = span_str(""),
        .field = span_str(""),
        .requests = 100000,
        .warm_up = 10000};
    while ((c = getopt_long(argc, argv, "", table, &which)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            exit(EXIT_SUCCESS);
        }
        if (c != 1)
            exit(EX_USAGE);
        set_option(o, table[which].name, optarg);
    }
    if (optind < argc)
        usage_error("not an option", argv[optind]);
    if (o->load.address_len == 0)
        usage_error("--port or --socket", NULL);
    if (o->fill || o->once) {
        o->load.in_order = true;
        o->load.shuffled = o->once;
        o->requests = o->load.keys;
        o->warm_up = 0;
    }
    if (o->fill) {
        o->load.expected.any_source = true;
        if (o->load.expected.protocol == CALL_MEMCACHED)
            o->load.expected.protocol = CALL_MEMCACHED_SET;
    }
}

/* The kernel's account of all threads of a process, user and system, in nanoseconds; -1: unknown.
 */
static int64_t
cpu_time_ns(pid_t pid)
{
    clockid_t id;
    struct timespec ts;

    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &ts) != 0)
        return -1;
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void
raise_descriptors(unsigned connections)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= connections + 64)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* if it is still too low, connecting says so */
}

struct spent {
    int64_t server_ns; /* -1: unknown */
    int64_t load_ns;
};

static bool
print_result(const struct options *o, const struct load_result *result, const struct spent *spent,
             size_t key_len)
{
    double requests = (double)(result->answered ? result->answered : 1);
    uint64_t good = result->answered > result->errors ? result->answered - result->errors : 0;
    struct buf out;
    struct json j;
    bool ok;

    buf_init(&out, 4096);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    json_uint(&j, "connections", o->load.connections);
    json_uint(&j, "depth", o->load.depth);
    json_uint(&j, "requests", result->answered);
    json_uint(&j, "errors", result->errors);
    if (result->first_error[0])
        json_cstring(&j, "first_error", result->first_error);
    json_double(&j, "seconds", (double)result->elapsed_us / 1e6, 6);
    json_double(&j, "requests_per_second",
                result->elapsed_us ? requests * 1e6 / (double)result->elapsed_us : 0, 0);
    if (spent->server_ns >= 0)
        json_double(&j, "server_cpu_us", (double)spent->server_ns / 1e3 / requests, 3);
    if (result->slow_us > 0) {
        json_uint(&j, "median_us", result->median_us);
        json_uint(&j, "p99_us", result->slow_us);
    }
    json_double(&j, "load_cpu_us", (double)spent->load_ns / 1e3 / requests, 3);
    json_uint(&j, "key_bytes", key_len);
    json_double(&j, "reply_bytes", good ? (double)result->wire_bytes / (double)good : 0, 2);
    json_double(&j, "header_bytes", good ? (double)result->headers_bytes / (double)good : 0, 2);
    json_close_object(&j);
    ok = !buf_failed(&out) && puts(buf_str(&out)) >= 0 && fflush(stdout) == 0;
    buf_free(&out);
    return ok;
}

/* Connects, warms up and measures. */
static void
measure(const struct options *o, struct load *load, struct load_result *result, struct spent *spent)
{
    struct spent before;

    if (!load_connect(load, result) || o->hold)
        return;
    if (o->warm_up > 0)
        load_run(load, o->warm_up, result);
    if (result->errors > 0)
        return;
    before.server_ns = o->server ? cpu_time_ns(o->server) : -1;
    before.load_ns = cpu_time_ns(0);
    load_run(load, o->requests, result);
    spent->load_ns = cpu_time_ns(0) - before.load_ns;
    spent->server_ns = o->server ? cpu_time_ns(o->server) : -1;
    if (before.server_ns >= 0 && spent->server_ns >= 0)
        spent->server_ns -= before.server_ns;
}

int
main(int argc, char **argv)
{
    struct options options;
    struct call_template call;
    struct load_result result = {0};
    struct spent spent = {.server_ns = -1};
    struct load *load;
    size_t key_len;
    bool printed;

    parse_options(&options, argc, argv);
    raise_descriptors(options.load.connections);
    if (!call_begin(&call, options.load.expected.protocol, options.prefix, options.suffix,
                    options.load.expected.body_len)) {
        fputs("load: no call can be made of this key\n", stderr);
        return EX_DATAERR;
    }
    if (options.field.len && !call_add_field(&call, options.field)) {
        fputs("load: no memory\n", stderr);
        return EX_OSERR;
    }
    load = load_create(&options.load, &call);
    if (!load) {
        fputs("load: no memory or descriptors\n", stderr);
        call_free(&call);
        return EX_OSERR;
    }
    key_len = call.key_len;
    measure(&options, load, &result, &spent);
    printed = print_result(&options, &result, &spent, key_len);
    while (options.hold && printed && getchar() != EOF)
        continue;
    load_destroy(load);
    call_free(&call);
    if (!printed)
        return EX_IOERR;
    return result.errors > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
