/*
 * pool: a caching proxy with a pool of threads, as that of "Exploiting Parallelism in a Proxy
 * Server" is described: one thread reads requests and puts them into a bounded queue; each of the
 * others takes one, looks into the table of pages, fetches a missing page with its own easy handle
 * of libcurl, stores it and answers. One of the contestants of studies/reproduce_parallel.py.
 *
 * A request is a line with a URL, over TCP on 127.0.0.1. The answer is a line with the length of
 * the page, or with "error" and a sentence; answers come in the order in which they are ready. One
 * client at a time. Prints its port on a line, then serves until killed.
 */
#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/units.h"
#include "tests/bench/job_queue.h"
#include "tests/bench/loopback.h"
#include "tests/bench/pool_pages.h"

#define MAX_THREADS 1024u
#define MAX_QUEUE 65536u
#define MAX_PAGE (64u << 20)
#define MAX_LINE 8192u
#define FETCH_SECONDS 60L

/* A connection; freed with the last of its requests. */
struct client {
    int fd;
    pthread_mutex_t lock;      /* of writing */
    _Atomic unsigned pointers; /* its requests, and the thread that reads them */
};

struct job {
    struct client *client;
    char url[];
};

struct server {
    struct job_queue queue;
    struct pool_pages pages;
};

static void
release_client(struct client *client)
{
    if (atomic_fetch_sub(&client->pointers, 1) > 1)
        return;
    close(client->fd);
    pthread_mutex_destroy(&client->lock);
    free(client);
}

/* A client that has gone gets no answer. */
static void
answer(struct client *client, const char *line, size_t len)
{
    size_t sent = 0;
    ssize_t n = 0;

    pthread_mutex_lock(&client->lock);
    while (sent < len && (n >= 0 || errno == EINTR)) {
        n = send(client->fd, line + sent, len - sent, MSG_NOSIGNAL);
        sent += n > 0 ? (size_t)n : 0;
    }
    pthread_mutex_unlock(&client->lock);
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *body)
{
    return buf_append(body, bytes, size * count) ? size * count : 0;
}

/* The page of a URL, from the table or from its origin; NULL with a sentence in `why`. */
static const struct pool_page *
get_page(struct server *server, CURL *easy, const char *url, char *why)
{
    const struct pool_page *page = pool_pages_find(&server->pages, url);
    struct buf body;
    long status = 0;
    CURLcode code;

    if (page)
        return page;
    buf_init(&body, MAX_PAGE);
    strcpy(why, "out of memory");
    if (curl_easy_setopt(easy, CURLOPT_URL, url) ||
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body))
        return NULL;
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
    code = curl_easy_perform(easy);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK && status == 200)
        return pool_pages_add(&server->pages, url, &body);
    if (code == CURLE_OK)
        snprintf(why, CURL_ERROR_SIZE, "status %ld", status);
    buf_free(&body);
    return NULL;
}

static void
serve_job(struct server *server, CURL *easy, struct job *job)
{
    char why[CURL_ERROR_SIZE], line[CURL_ERROR_SIZE + 16];
    const struct pool_page *page = get_page(server, easy, job->url, why);
    int len = page ? snprintf(line, sizeof(line), "%zu\n", page->body.len)
                   : snprintf(line, sizeof(line), "error %s\n", why);

    answer(job->client, line, (size_t)len);
    release_client(job->client);
    free(job);
}

static void *
work(void *context)
{
    struct server *server = context;
    CURL *easy = curl_easy_init();
    struct job *job;

    if (!easy || curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) ||
        curl_easy_setopt(easy, CURLOPT_PROXY, "") ||
        curl_easy_setopt(easy, CURLOPT_TIMEOUT, FETCH_SECONDS) ||
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body)) {
        fputs("pool: libcurl cannot be set up\n", stderr);
        _exit(EX_OSERR);
    }
    while ((job = job_queue_take(&server->queue)))
        serve_job(server, easy, job);
    curl_easy_cleanup(easy);
    return NULL;
}

/* Puts one request into the queue; waits while that is full. False without memory. */
static bool
take_line(struct server *server, struct client *client, const char *url, size_t len)
{
    struct job *job = malloc(sizeof(*job) + len + 1);

    if (!job)
        return false;
    job->client = client;
    memcpy(job->url, url, len);
    job->url[len] = '\0';
    atomic_fetch_add(&client->pointers, 1);
    return job_queue_add(&server->queue, job);
}

/* Reads requests until the client ends or sends a line that is too long. */
static void
serve_client(struct server *server, struct client *client)
{
    char input[4 * MAX_LINE];
    size_t have = 0;
    ssize_t n;

    while ((n = recv(client->fd, input + have, sizeof(input) - have, 0)) > 0 ||
           (n < 0 && errno == EINTR)) {
        char *line = input, *end;

        have += n > 0 ? (size_t)n : 0;
        while ((end = memchr(line, '\n', (size_t)(input + have - line)))) {
            if (!take_line(server, client, line, (size_t)(end - line)))
                return;
            line = end + 1;
        }
        have -= (size_t)(line - input);
        memmove(input, line, have);
        if (have > MAX_LINE)
            return;
    }
}

/* Accepts for ever, one client after the other. */
static void
serve(struct server *server, int listener)
{
    int fd, one = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0 || errno == EINTR) {
        struct client *client = fd < 0 ? NULL : malloc(sizeof(*client));

        if (!client) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        *client = (struct client){.fd = fd, .lock = PTHREAD_MUTEX_INITIALIZER, .pointers = 1};
        serve_client(server, client);
        release_client(client);
    }
}

static bool
start_threads(struct server *server, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        pthread_t thread;

        if ((errno = pthread_create(&thread, NULL, work, server)) != 0)
            return false;
        pthread_detach(thread);
    }
    return true;
}

static const char help[] = "usage: pool --threads N [option...]\n"
                           "\n"
                           "  --threads N      that fetch, 1 to 1024\n"
                           "  --queue N        requests that wait for a thread, 1 to 65536 (256)\n"
                           "  --entry-bytes N  of the table of hashes: 8, or 12, misaligned (8)\n";

int
main(int argc, char **argv)
{
    static const struct option table[] = {{"threads", required_argument, NULL, 't'},
                                          {"queue", required_argument, NULL, 'q'},
                                          {"entry-bytes", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    static struct server server;
    uint64_t threads = 0, queue = 256, entry = POOL_ENTRY_ALIGNED;
    bool right = true;
    uint16_t port;
    int listener, c;

    while (right && (c = getopt_long(argc, argv, "", table, NULL)) != -1) {
        if (c == 'h') {
            fputs(help, stdout);
            return EXIT_SUCCESS;
        }
        right = (c == 't' && units_parse_uint(optarg, 1, MAX_THREADS, &threads)) ||
                (c == 'q' && units_parse_uint(optarg, 1, MAX_QUEUE, &queue)) ||
                (c == 'e' &&
                 units_parse_uint(optarg, POOL_ENTRY_ALIGNED, POOL_ENTRY_MISALIGNED, &entry) &&
                 (entry == POOL_ENTRY_ALIGNED || entry == POOL_ENTRY_MISALIGNED));
    }
    if (!right || threads == 0 || optind < argc) {
        fputs(help, stderr);
        return EX_USAGE;
    }
    listener = loopback_listen(&port);
    if (!pool_pages_init(&server.pages, entry) || listener < 0 ||
        curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        !job_queue_init(&server.queue, queue) || !start_threads(&server, threads)) {
        perror("pool");
        return EX_OSERR;
    }
    printf("%u\n", port);
    fflush(stdout);
    serve(&server, listener);
    perror("pool: accept");
    return EX_OSERR; /* the threads end with the process */
}
