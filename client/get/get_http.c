/*
 * `sunproxy get` over HTTP, through libcurl.
 */
#include "client/get/get_http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "cli/output.h"

#define MAX_POLL_US ((int64_t)1000000000)

static void
add(struct http_transport *transport, struct http_fetch *fetch)
{
    fetch->next = transport->fetches;
    fetch->link = &transport->fetches;
    if (fetch->next)
        fetch->next->link = &fetch->next;
    transport->fetches = fetch;
}

/* Ends a fetch: reports it, unless *failure is NULL, and frees it. */
static void
remove_fetch(struct http_fetch *fetch, const struct get_failure *failure)
{
    struct get_answer *answer = fetch->answer;

    curl_multi_remove_handle(fetch->transport->multi, fetch->easy);
    *fetch->link = fetch->next;
    if (fetch->next)
        fetch->next->link = fetch->link;
    answer->fetch = NULL;
    if (failure)
        get_queue_done(answer, failure->status == EX_OK ? NULL : failure);
    http_fetch_free(fetch);
}

/* libcurl has ended a request of the fetch. */
static void
end_request(struct http_fetch *fetch, CURLcode code)
{
    struct http_transport *transport = fetch->transport;
    struct get_failure failure;
    char text[256];

    if (http_fetch_ended(fetch, code, &failure, text, sizeof(text)) == HTTP_NEXT_REQUEST) {
        curl_multi_remove_handle(transport->multi, fetch->easy);
        if (curl_multi_add_handle(transport->multi, fetch->easy) == CURLM_OK)
            return;
        failure = (struct get_failure){
            .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
    }
    remove_fetch(fetch, &failure);
}

static void
http_begin(struct get_transport *base, struct get_answer *answer)
{
    static const struct get_failure no_memory = {
        .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
    struct http_transport *transport = container_of(base, struct http_transport, base);
    struct http_fetch *fetch = http_fetch_new(transport, answer);

    if (!fetch)
        return;
    answer->fetch = fetch;
    add(transport, fetch);
    if (curl_multi_add_handle(transport->multi, fetch->easy) != CURLM_OK)
        remove_fetch(fetch, &no_memory);
}

static void
http_resume(struct get_transport *base, struct get_answer *answer)
{
    struct http_fetch *fetch = answer->fetch;
    CURLcode code;

    (void)base;
    fetch->paused = false;
    fetch->progress_us = clock_monotonic_us();
    code = curl_easy_pause(fetch->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK)
        end_request(fetch, code);
}

static void
http_drop(struct get_transport *base, struct get_answer *answer)
{
    (void)base;
    remove_fetch(answer->fetch, NULL);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/*
 * Ends the fetches that have made no progress for too long. Returns when the next one would end;
 * now, if one has.
 */
static int64_t
expire(struct http_transport *transport)
{
    static const struct get_failure timed_out = {.status = EX_TEMPFAIL,
                                                 .code = "timed_out",
                                                 .sentence = "no answer came in time",
                                                 .transient = true};
    int64_t now_us = clock_monotonic_us(), limit_us = transport->options->server.timeout_us;
    int64_t next_us = INT64_MAX;
    struct http_fetch *fetch, *next;

    for (fetch = transport->fetches; fetch; fetch = next) {
        int64_t idle_us = now_us - fetch->progress_us;

        next = fetch->next;
        if (fetch->paused)
            continue;
        if (idle_us >= limit_us) {
            remove_fetch(fetch, &timed_out);
            next_us = now_us;
        } else if (limit_us - idle_us < next_us - now_us) {
            next_us = now_us + (limit_us - idle_us);
        }
    }
    return next_us;
}

/* Sends and receives what is possible now. Returns the number of requests that have ended. */
static unsigned
perform(struct http_transport *transport)
{
    int running, left;
    unsigned ended = 0;
    CURLMsg *message;

    curl_multi_perform(transport->multi, &running);
    while ((message = curl_multi_info_read(transport->multi, &left))) {
        struct http_fetch *fetch = NULL;
        CURLcode code = message->data.result;

        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &fetch);
        end_request(fetch, code);
        ended++;
    }
    return ended;
}

static void
http_run(struct get_transport *base, int64_t timeout_us)
{
    struct http_transport *transport = container_of(base, struct http_transport, base);
    int64_t wait_us;

    if (perform(transport) != 0)
        return;
    wait_us = expire(transport);
    wait_us = wait_us == INT64_MAX ? MAX_POLL_US : wait_us - clock_monotonic_us();
    if (timeout_us < wait_us)
        wait_us = timeout_us;
    /* Up to the next millisecond, or the last one would be spent in turns without a pause. */
    curl_multi_poll(transport->multi, NULL, 0, wait_us > 0 ? (int)((wait_us + 999) / 1000) : 0,
                    NULL);
    perform(transport);
}

static void
http_close(struct get_transport *base)
{
    struct http_transport *transport = container_of(base, struct http_transport, base);

    while (transport->fetches)
        remove_fetch(transport->fetches, NULL);
    curl_multi_cleanup(transport->multi);
    curl_global_cleanup();
    free(transport);
}

/* ---- the server ------------------------------------------------------------------------------ */

struct get_transport *
get_http_open(const struct get_options *options, char *name, size_t size,
              struct get_failure *failure)
{
    struct http_transport *transport = calloc(1, sizeof(*transport));

    if (transport && !http_address_parse(&transport->address, options->http)) {
        *failure = (struct get_failure){
            .status = EX_USAGE, .code = "usage", .sentence = "no HTTP front is named"};
        free(transport);
        return NULL;
    }
    /* Nothing else of libcurl is needed: it speaks to the proxy without TLS. */
    if (transport && curl_global_init(CURL_GLOBAL_NOTHING) == CURLE_OK) {
        transport->multi = curl_multi_init();
        if (!transport->multi)
            curl_global_cleanup();
    }
    if (!transport || !transport->multi) {
        output_complain("out of memory");
        *failure = (struct get_failure){
            .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
        free(transport);
        return NULL;
    }
    curl_multi_setopt(transport->multi, CURLMOPT_MAXCONNECTS, (long)options->jobs);
    transport->base = (struct get_transport){.begin = http_begin,
                                             .resume = http_resume,
                                             .drop = http_drop,
                                             .run = http_run,
                                             .close = http_close};
    transport->options = options;
    snprintf(name, size, "%s", transport->address.name);
    return &transport->base;
}
