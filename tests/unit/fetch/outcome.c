#include "tests/unit/fetch/outcome.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

enum fetch_flow
outcome_head(void *context, const struct fetch_head *head)
{
    struct outcome *o = context;

    pthread_mutex_lock(&o->lock);
    o->heads++;
    o->status = head->status;
    o->content_length = head->content_length;
    snprintf(o->headers, sizeof(o->headers), "%.*s", (int)head->headers.len, head->headers.ptr);
    pthread_mutex_unlock(&o->lock);
    return FETCH_CONTINUE;
}

enum fetch_flow
outcome_body(void *context, const void *bytes, size_t len)
{
    struct outcome *o = context;
    char *longer = realloc(o->body, o->body_len + len + 1);

    if (!longer)
        return FETCH_ABORT;
    memcpy(longer + o->body_len, bytes, len);
    o->body = longer;
    o->body_len += len;
    longer[o->body_len] = '\0';
    return FETCH_CONTINUE;
}

void
outcome_done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct outcome *o = context;

    pthread_mutex_lock(&o->lock);
    o->dones++;
    o->error = error;
    o->total_us = total_us;
    snprintf(o->sentence, sizeof(o->sentence), "%s", sentence);
    o->over = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}

void
outcome_response(void *context, const struct fetch_response *response)
{
    struct outcome *o = context;

    pthread_mutex_lock(&o->lock);
    if (o->responses < sizeof(o->response) / sizeof(o->response[0])) {
        struct outcome_response *kept = &o->response[o->responses];

        kept->status = response->status;
        kept->has_user = response->has_user;
        kept->waited_us = response->waited_us;
        kept->heads_before = o->heads;
        snprintf(kept->lines, sizeof(kept->lines), "%.*s", (int)response->lines.len,
                 response->lines.ptr);
    }
    o->responses++;
    pthread_mutex_unlock(&o->lock);
}

void
outcome_interim(void *context, unsigned status, struct span lines)
{
    struct outcome *o = context;
    size_t len;

    pthread_mutex_lock(&o->lock);
    o->interims++;
    len = strlen(o->interim);
    snprintf(o->interim + len, sizeof(o->interim) - len, "%u %.*s", status, (int)lines.len,
             lines.ptr ? lines.ptr : "");
    pthread_mutex_unlock(&o->lock);
}

const struct fetch_sink outcome_sink = {
    .response = outcome_response,
    .interim = outcome_interim,
    .head = outcome_head,
    .body = outcome_body,
    .done = outcome_done,
};

void
outcome_init(struct outcome *o)
{
    memset(o, 0, sizeof(*o));
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
}

void
outcome_wait(struct outcome *o)
{
    pthread_mutex_lock(&o->lock);
    while (!o->over)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
}

bool
outcome_is_over(struct outcome *o)
{
    bool over;

    pthread_mutex_lock(&o->lock);
    over = o->over;
    pthread_mutex_unlock(&o->lock);
    return over;
}

void
outcome_free(struct outcome *o)
{
    free(o->body);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->lock);
}

struct origin_route
route_to(const char *member, const char *host)
{
    static struct origin_server server;

    server = (struct origin_server){.drained = false};
    return (struct origin_route){.host = ORIGIN_HOST_NAMED,
                                 .name = span_str(host),
                                 .count = 1,
                                 .members = {{.url = span_str(member), .server = &server}}};
}

bool
submit_request(struct fetcher *fetcher, const struct request *request,
               const struct fetch_sink *sink, void *context, uint64_t *id)
{
    struct request asked = *request;
    const struct request *kept;
    bool submitted;

    asked.method = http_method_of(asked.method_name);
    kept = request_keep(&asked, asked.url, asked.client, NULL);
    submitted = kept && fetcher_submit(fetcher, kept, sink, context, id);
    request_release(&kept);
    return submitted;
}

void
fetch_with(struct fetcher *fetcher, const char *url, const char *headers, struct outcome *o)
{
    outcome_init(o);
    snprintf(o->url, sizeof(o->url), "%s", url);
    ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, headers), &outcome_sink, o, NULL));
    outcome_wait(o);
    ck_assert_uint_eq(o->dones, 1);
    ck_assert_int_ge(o->total_us, 0);
    ck_assert_uint_le(o->heads, 1);
    ck_assert_msg((o->error == FETCH_OK) == (o->sentence[0] == '\0'), "%s", o->sentence);
}

static void
fetch_url(struct fetcher *fetcher, struct outcome *o, const char *format, va_list args)
{
    char url[9000];

    vsnprintf(url, sizeof(url), format, args);
    fetch_with(fetcher, url, "", o);
}

void
fetch_one(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fetch_url(fetcher, o, format, args);
    va_end(args);
}

static void
assert_end(const struct outcome *o, enum fetch_error error)
{
    ck_assert_msg(o->error == error, "%s: %d instead of %d: %s", o->url, o->error, error,
                  o->sentence);
}

void
fetch_fine(struct fetcher *fetcher, struct outcome *o, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fetch_url(fetcher, o, format, args);
    va_end(args);
    assert_end(o, FETCH_OK);
}

void
expect_end(struct fetcher *fetcher, enum fetch_error error, const char *format, ...)
{
    struct outcome o;
    va_list args;

    va_start(args, format);
    fetch_url(fetcher, &o, format, args);
    va_end(args);
    assert_end(&o, error);
    outcome_free(&o);
}

void
expect_page(struct fetcher *fetcher, const char *body, const char *format, ...)
{
    struct outcome o;
    va_list args;

    va_start(args, format);
    fetch_url(fetcher, &o, format, args);
    va_end(args);
    assert_end(&o, FETCH_OK);
    ck_assert_msg(o.body && strcmp(o.body, body) == 0, "%s: %s", o.url, o.body ? o.body : "");
    outcome_free(&o);
}
