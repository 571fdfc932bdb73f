/* The program: options, listeners, life. */
#include <errno.h>
#include <event2/listener.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/units.h"
#include "tests/origin/origin.h"

#define EXIT_USAGE 64
#define EXIT_UNAVAILABLE 69

struct options {
    uint16_t http_port;
    uint16_t https_port;
    const char *ports_file;
    const char *tls_dir;
    const char *sizes;
    const char *log;
    uint64_t bandwidth;
    uint64_t max_seconds;
    bool quiet;
};

struct listener {
    struct origin *origin;
    bool tls;
    uint16_t port;
    struct evconnlistener *v4, *v6;
};

static const struct option long_options[] = {
    {"http-port", required_argument, NULL, 'p'},
    {"https-port", required_argument, NULL, 's'},
    {"ports-file", required_argument, NULL, 'f'},
    {"tls-dir", required_argument, NULL, 't'},
    {"sizes", required_argument, NULL, 'z'},
    {"size-min", required_argument, NULL, 'm'},
    {"size-max", required_argument, NULL, 'M'},
    {"latency", required_argument, NULL, 'l'},
    {"seed", required_argument, NULL, 'S'},
    {"bandwidth", required_argument, NULL, 'b'},
    {"header", required_argument, NULL, 'H'},
    {"log", required_argument, NULL, 'L'},
    {"max-seconds", required_argument, NULL, 'x'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void
print_help(void)
{
    puts(
        "usage: origin [OPTION]...\n"
        "Answers any host and path over http and https on loopback, for tests and demos.\n"
        "\n"
        "  --http-port N        port for http (0, the default: one is chosen)\n"
        "  --https-port N       port for https, likewise\n"
        "  --ports-file FILE    write \"http PORT\" and \"https PORT\" lines there when ready\n"
        "  --tls-dir DIR        write the authority's certificate to DIR/ca.pem\n"
        "  --sizes FILE         sizes of bodies, lines of URL<TAB>bytes\n"
        "  --size-min BYTES     of bodies not in the table (1024)\n"
        "  --size-max BYTES     likewise (16384)\n"
        "  --latency DIST       before each answer: 20ms, or lognormal:20ms:0.5 (median, sigma),\n"
        "                       drawn once for each URL\n"
        "  --seed N             for what is drawn (0)\n"
        "  --bandwidth BYTES    a second, for each connection\n"
        "  --header LINE        add a header line to every answer; may be repeated\n"
        "  --log FILE           a line for each request: time scheme host path status\n"
        "  --max-seconds N      end by itself after that time (3600; 0: never)\n"
        "  --quiet              say nothing on stdout\n"
        "\n"
        "Faults: ask for /fault/NAME:VALUE or /fault/NAME?VALUE, or put fault=NAME:VALUE into any\n"
        "query, once or more. Values are percent-decoded.\n");
    fault_print_help(stdout);
    puts("\nTLS: hosts named expired.*, wrong.* and selfsigned.* get a certificate of that kind.");
}

static int
usage(const char *option, const char *value)
{
    fprintf(stderr, "origin: --%s cannot be '%s'; see --help\n", option, value);
    return EXIT_USAGE;
}

static bool
parse_port(const char *text, uint16_t *port)
{
    uint64_t n;

    if (!units_parse_uint(text, 0, 65535, &n))
        return false;
    *port = (uint16_t)n;
    return true;
}

/* One option; false if its value is none. */
static bool
take(int c, const char *value, struct options *o, struct origin *origin)
{
    switch (c) {
    case 'p':
        return parse_port(value, &o->http_port);
    case 's':
        return parse_port(value, &o->https_port);
    case 'f':
        o->ports_file = value;
        return true;
    case 't':
        o->tls_dir = value;
        return true;
    case 'z':
        o->sizes = value;
        return true;
    case 'm':
        return units_parse_bytes(value, &origin->size_min);
    case 'M':
        return units_parse_bytes(value, &origin->size_max);
    case 'l':
        return latency_parse(value, &origin->latency_us, &origin->latency_sigma);
    case 'S':
        return units_parse_uint(value, 0, UINT64_MAX, &origin->seed);
    case 'b':
        return units_parse_bytes(value, &o->bandwidth) && o->bandwidth > 0 &&
               o->bandwidth < INT32_MAX;
    case 'H':
        return strchr(value, ':') && buf_printf(&origin->headers, "%s\r\n", value);
    case 'L':
        o->log = value;
        return true;
    case 'x':
        return units_parse_uint(value, 0, 10000000, &o->max_seconds);
    case 'q':
        o->quiet = true;
        return true;
    default:
        return false;
    }
}

static void
on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int len,
          void *arg)
{
    const struct listener *l = arg;

    (void)listener;
    (void)address;
    (void)len;
    conn_accept(l->origin, fd, l->tls);
}

/* No descriptor left: come back a little later rather than spin. */
static void
on_resume(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    evconnlistener_enable(arg);
}

static void
on_accept_error(struct evconnlistener *listener, void *arg)
{
    struct timeval soon = {.tv_sec = 0, .tv_usec = 50000};

    (void)arg;
    evconnlistener_disable(listener);
    event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_resume, listener, &soon);
}

static struct evconnlistener *
listen_at(struct listener *l, const struct sockaddr *address, size_t len)
{
    struct evconnlistener *made =
        evconnlistener_new_bind(l->origin->base, on_accept, l,
                                LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 4096, address, (int)len);

    if (made)
        evconnlistener_set_error_cb(made, on_accept_error);
    return made;
}

/* 127.0.0.1, and ::1 on the same port where there is IPv6. */
static bool
listener_open(struct listener *l, struct origin *origin, bool tls, uint16_t port)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t len = sizeof(v4);

    l->origin = origin;
    l->tls = tls;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    l->v4 = listen_at(l, (struct sockaddr *)&v4, sizeof(v4));
    if (!l->v4 || getsockname(evconnlistener_get_fd(l->v4), (struct sockaddr *)&v4, &len) != 0) {
        fprintf(stderr, "origin: port %u: %s\n", port, strerror(errno));
        return false;
    }
    l->port = ntohs(v4.sin_port);
    v6.sin6_port = v4.sin_port;
    l->v6 = listen_at(l, (struct sockaddr *)&v6, sizeof(v6));
    return true;
}

static void
listener_close(struct listener *l)
{
    if (l->v4)
        evconnlistener_free(l->v4);
    if (l->v6)
        evconnlistener_free(l->v6);
}

/* Under another name first, so that a program that waits for the file never reads half of it. */
static bool
write_ports(const char *path, const struct listener *http, const struct listener *https)
{
    char draft[4096];
    FILE *file;
    bool written;

    snprintf(draft, sizeof(draft), "%s.new", path);
    file = fopen(draft, "w");
    if (!file)
        return false;
    written = fprintf(file, "http %u\nhttps %u\n", http->port, https->port) > 0;
    if (fclose(file) != 0)
        written = false;
    return written && rename(draft, path) == 0;
}

static void
on_end(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    event_base_loopbreak(arg);
}

static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int
serve(struct origin *origin, const struct options *o)
{
    struct listener http = {0}, https = {0};
    struct event *term, *interrupt, *end;
    struct timeval lifetime = {.tv_sec = (time_t)o->max_seconds};
    int status = EXIT_UNAVAILABLE;

    term = evsignal_new(origin->base, SIGTERM, on_end, origin->base);
    interrupt = evsignal_new(origin->base, SIGINT, on_end, origin->base);
    end = evtimer_new(origin->base, on_end, origin->base);
    if (!term || !interrupt || !end)
        abort();
    event_add(term, NULL);
    event_add(interrupt, NULL);
    if (o->max_seconds)
        event_add(end, &lifetime);
    if (listener_open(&http, origin, false, o->http_port) &&
        listener_open(&https, origin, true, o->https_port)) {
        if (o->ports_file && !write_ports(o->ports_file, &http, &https)) {
            fprintf(stderr, "origin: %s: %s\n", o->ports_file, strerror(errno));
        } else {
            if (!o->quiet) {
                printf("http %u\nhttps %u\n", http.port, https.port);
                fflush(stdout);
            }
            event_base_dispatch(origin->base);
            status = EXIT_SUCCESS;
        }
    }
    /* A connection with input that it has not read is freed by the loop. */
    conn_close_all(origin);
    (void)event_base_loop(origin->base, EVLOOP_NONBLOCK);
    listener_close(&http);
    listener_close(&https);
    conn_close_all(origin); /* accepted meanwhile */
    event_free(term);
    event_free(interrupt);
    event_free(end);
    return status;
}

/* Delays are never shorter than asked for: by the exact clock, from the moment when they begin. */
static struct event_base *
make_base(void)
{
    struct event_config *config = event_config_new();
    struct event_base *base;

    if (!config || event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER |
                                                     EVENT_BASE_FLAG_NO_CACHE_TIME) != 0)
        abort();
    base = event_base_new_with_config(config);
    event_config_free(config);
    if (!base)
        abort();
    return base;
}

static bool
prepare(struct origin *origin, const struct options *o)
{
    char why[4200];

    origin->base = make_base();
    origin->authority = authority_create(o->tls_dir, why, sizeof(why));
    if (!origin->authority)
        goto fail;
    if (o->sizes) {
        origin->sizes = sizes_load(o->sizes, why, sizeof(why));
        if (!origin->sizes)
            goto fail;
    }
    if (o->log) {
        origin->log = fopen(o->log, "a");
        if (!origin->log) {
            snprintf(why, sizeof(why), "%s: %s", o->log, strerror(errno));
            goto fail;
        }
        setvbuf(origin->log, NULL, _IOLBF, 0);
    }
    origin->bandwidth = o->bandwidth;
    return true;
fail:
    fprintf(stderr, "origin: %s\n", why);
    return false;
}

int
main(int argc, char **argv)
{
    struct origin origin = {.size_min = ORIGIN_DEFAULT_SIZE_MIN,
                            .size_max = ORIGIN_DEFAULT_SIZE_MAX};
    struct options o = {.max_seconds = 3600};
    int c, index, status = EXIT_UNAVAILABLE;

    buf_init(&origin.headers, 65536);
    while ((c = getopt_long(argc, argv, "", long_options, &index)) != -1) {
        if (c == 'h') {
            print_help();
            return EXIT_SUCCESS;
        }
        if (c == '?')
            return EXIT_USAGE;
        if (!take(c, optarg, &o, &origin))
            return usage(long_options[index].name, optarg);
    }
    if (optind < argc || origin.size_max < origin.size_min) {
        fprintf(stderr, "origin: %s; see --help\n",
                optind < argc ? "no arguments are expected" : "--size-max is below --size-min");
        return EXIT_USAGE;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_descriptor_limit();
    if (prepare(&origin, &o))
        status = serve(&origin, &o);
    if (origin.log)
        fclose(origin.log);
    sizes_free(origin.sizes);
    authority_free(origin.authority);
    buf_free(&origin.headers);
    if (origin.base)
        event_base_free(origin.base);
    libevent_global_shutdown();
    return status;
}
