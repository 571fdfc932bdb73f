#include "server/peers/peer_message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "http/field.h"
#include "server/config/config.h"
#include "server/peers/peer_news.h"
#include "server/service.h"

#define MOST_BODY 4096 /* of a response, which has none */

/* ---- the text -------------------------------------------------------------------------------- */

/* The news that fit: bytes, and how many they are. */
static struct span
take_news(struct span news, uint64_t *count)
{
    size_t len = 0;

    *count = 0;
    while (len < news.len) {
        const char *end = memchr(news.ptr + len, ' ', news.len - len);
        size_t next = end ? (size_t)(end - news.ptr) + 1 : news.len;

        if (*count && next > PEER_MESSAGE_BYTES)
            break;
        len = next;
        ++*count;
    }
    return span_of(news.ptr, len);
}

uint64_t
peer_message_fill(struct peer_message *message, uint64_t before, struct span news, size_t *len)
{
    uint64_t count;
    struct span taken = take_news(news, &count);

    buf_printf(&message->text, "%016llx %016llx ", (unsigned long long)before,
               (unsigned long long)(before + count));
    buf_append(&message->text, taken.ptr, taken.len);
    buf_append_char(&message->text, '.'); /* blanks at the end of a field are not its value's */
    *len = taken.len;
    return count;
}

static const struct span leave = {.ptr = "bye", .len = 3};

void
peer_message_leave(struct peer_message *message, uint64_t last)
{
    buf_printf(&message->text, "%016llx %016llx %.*s.", (unsigned long long)last,
               (unsigned long long)last, (int)leave.len, leave.ptr);
}

bool
peer_message_is_leave(struct span text)
{
    return span_equal(text, leave);
}

static bool
read_number(struct span *text, uint64_t *number)
{
    char digits[17], *end;

    if (text->len < 17 || text->ptr[16] != ' ')
        return false;
    memcpy(digits, text->ptr, 16);
    digits[16] = '\0';
    *number = strtoull(digits, &end, 16);
    *text = span_of(text->ptr + 17, text->len - 17);
    return !*end;
}

bool
peer_message_read(struct span *text, struct peer_message_head *head)
{
    if (!text->len || text->ptr[text->len - 1] != '.')
        return false;
    text->len--;
    return read_number(text, &head->before) && read_number(text, &head->last) &&
           head->before <= head->last;
}

/* ---- its life -------------------------------------------------------------------------------- */

struct peer_message *
peer_message_create(struct config *config, unsigned member,
                    void (*end)(void *context, struct peer_message *message,
                                const struct peer_message_end *end),
                    void *context)
{
    struct peer_message *message = calloc(1, sizeof(*message));

    if (!message)
        return NULL;
    message->config = shared_retain(&config->rules.shared);
    message->peers = &config->peers.group;
    message->route = message->peers->route;
    message->member = member;
    buf_init(&message->text, PEER_MESSAGE_WAITING);
    buf_init(&message->told, PEER_MESSAGE_WAITING);
    message->end = end;
    message->context = context;
    return message;
}

void
peer_message_free(struct peer_message *message)
{
    shared_release(&message->config);
    buf_free(&message->text);
    buf_free(&message->told);
    free(message);
}

/* ---- the fetcher's calls --------------------------------------------------------------------- */

static void
begin(void *context, unsigned member)
{
    (void)member;
    atomic_store(&((struct peer_message *)context)->begun_us, clock_monotonic_us());
}

static void
take_response(void *context, const struct fetch_response *response)
{
    struct peer_message *message = context;
    struct span told = http_first_value(response->lines, PEER_NEWS_FIELD);

    if (told.len)
        buf_append(&message->told, told.ptr, told.len - 1); /* without the full stop */
    message->status = response->status;
    message->outcome = peer_response_read(&message->peers->keys, &message->code,
                                          http_first_value(response->lines, PEER_FIELD));
}

static enum fetch_flow
take_head(void *context, const struct fetch_head *head)
{
    (void)context;
    return head->content_length >= 0 && head->content_length <= MOST_BODY ? FETCH_CONTINUE
                                                                          : FETCH_ABORT;
}

static enum fetch_flow
drop_body(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return FETCH_CONTINUE;
}

/* A bound of the daemon's own that ends a fetch shows nothing about the peer. */
static bool
is_of_peer(enum fetch_error error)
{
    return error != FETCH_STOPPING && error != FETCH_OVERLOADED && error != FETCH_DISPLACED &&
           error != FETCH_INTERNAL;
}

static void
done(void *context, enum fetch_error error, const char *sentence, int64_t total_us)
{
    struct peer_message *message = context;
    struct peer_message_end end = {
        .taken = message->outcome == PEER_SERVED, .result = ORIGIN_PROBE_PASSED, .reason = ""};
    char text[64];

    (void)total_us;
    if (!end.taken && message->status) {
        snprintf(text, sizeof(text), "it refuses news (status %u)", message->status);
        end.reason = text;
        end.result = ORIGIN_PROBE_FAILED;
    } else if (!end.taken) {
        end.reason = error == FETCH_CANCELLED ? "it has not taken news in time" : sentence;
        end.result = is_of_peer(error) ? ORIGIN_PROBE_FAILED : ORIGIN_PROBE_UNKNOWN;
    }
    message->end(message->context, message, &end);
}

static const struct fetch_sink sink = {
    .member = begin, .response = take_response, .head = take_head, .body = drop_body, .done = done};

/* ---- sending --------------------------------------------------------------------------------- */

/* The field lines. */
static bool
write_lines(struct peer_message *message, struct peer_auth *auth, struct buf *lines)
{
    const struct peer_words words = {
        .from = message->route->members[message->peers->self].url,
        .to = message->route->members[message->member].url,
        .method = span_str("GET"),
        .target = span_str("/"),
        .says = buf_span(&message->text),
    };

    buf_append_str(lines, PEER_NEWS_FIELD ": ");
    buf_append(lines, message->text.data, message->text.len);
    buf_append_str(lines, "\r\n" PEER_FIELD ": ");
    if (!peer_auth_write(auth, &message->peers->keys, &words, clock_wall_us(), lines,
                         &message->code))
        return false;
    buf_append_str(lines, "\r\n");
    return !buf_failed(lines);
}

/* NULL without memory. */
static const struct request *
make_request(struct peer_message *message, struct service *service, struct client *client)
{
    struct request asked = {.method = HTTP_GET,
                            .method_name = span_str("GET"),
                            .flags = REQUEST_CONFIGURED,
                            .peers = (struct origin_peers *)(uintptr_t)message->peers,
                            .rules = message->config};
    const struct request *request = NULL;
    struct buf lines;

    buf_init(&lines, PEER_MESSAGE_WAITING);
    if (write_lines(message, service->peer_auth, &lines)) {
        asked.fields = buf_span(&lines);
        request = request_keep(&asked, message->route->members[message->member].url, client,
                               &service->memory);
    }
    buf_free(&lines);
    return request;
}

void
peer_message_send(struct peer_message *message, struct service *service, struct client *client)
{
    const struct origin *origin = &service->proxy.config.origin;
    const struct request *request = make_request(message, service, client);

    if (request &&
        origin->ops->submit(origin->context, request, &sink, message, &message->fetch)) {
        request_release(&request);
        return;
    }
    request_release(&request);
    message->end(message->context, message,
                 &(struct peer_message_end){.result = ORIGIN_PROBE_UNKNOWN, .reason = ""});
}

void
peer_messages_cancel_late(struct peer_messages *messages, const struct origin *origin)
{
    const int64_t now_us = clock_monotonic_us();
    struct peer_message *message;

    LIST_FOREACH(message, messages, link)
    {
        const int64_t begun_us = atomic_load(&message->begun_us);

        if (begun_us && now_us - begun_us > PEER_NEWS_US)
            origin->ops->cancel(origin->context, message->fetch);
    }
}
