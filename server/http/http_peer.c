#include "server/http/http_peer.h"

#include "base/clock.h"
#include "http/field.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_interim.h"
#include "server/http/http_page.h"
#include "server/http/http_purge.h"
#include "server/http/http_stream.h"
#include "server/logs/origin_report.h"
#include "server/peers/peer_message.h"
#include "server/peers/peer_news.h"

static unsigned
refuse_silently(const char **reason)
{
    *reason = "the request is not that of a peer";
    return 403;
}

static unsigned
refuse(struct http_exchange *x, const char *why, const char **reason)
{
    char client[INET6_ADDRSTRLEN];

    origin_report_peer_refused(http_service_of(x)->service->report, http_client_name(x, client),
                               why);
    return refuse_silently(reason);
}

static unsigned
take_news(struct http_exchange *x, uint64_t incarnation, struct span says, const char **reason)
{
    char bytes[HTTP_PAGE_LINES];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));
    struct buf told;
    bool taken;

    buf_init(&told, PEER_MESSAGE_WAITING);
    taken =
        peer_news_take(http_service_of(x)->service->news, x->peer->url, incarnation, says, &told);
    if (told.len && buf_append_char(&told, '.'))
        http_write_field(&lines, PEER_NEWS_FIELD, buf_span(&told));
    buf_free(&told);
    if (!taken || lines.full)
        return refuse(x, "its news are malformed, or too many", reason);
    http_page_make(x, &(struct http_page){
                          .status = HTTP_PEER_TAKEN, .empty = true, .lines = http_written(&lines)});
    return HTTP_PEER_TAKEN;
}

struct client *
http_peer_find_client(struct http_exchange *x)
{
    const struct span name = http_first_value(x->request.fields, PEER_CLIENT_FIELD);
    struct client *client = NULL;
    struct buf whole;

    if (!name.len || name.len >= PEER_NAME_SIZE)
        return NULL;
    buf_init(&whole, ORIGIN_ROUTE_URL + PEER_NAME_SIZE);
    buf_append(&whole, name.ptr, name.len);
    buf_append(&whole, x->peer->url.ptr, x->peer->url.len);
    if (!buf_failed(&whole))
        client = http_stream_find_named(&x->stream, CLIENT_PEER, buf_span(&whole));
    buf_free(&whole);
    return client;
}

unsigned
http_peer_take(struct http_exchange *x, const char **reason)
{
    const struct origin_peers *peers = config_peers_of(&x->config->peers);
    const struct http_request *request = &x->request;
    const struct span value = http_first_value(request->fields, PEER_FIELD);
    struct peer_words words = {.method = request->method,
                               .target = request->target,
                               .says = http_first_value(request->fields, PEER_NEWS_FIELD)};
    enum peer_verdict verdict;
    uint64_t incarnation;
    unsigned sender;

    if (!peers)
        return refuse(x, "this daemon has no peers (--peers)", reason);
    words.to = peers->route->members[peers->self].url;
    verdict = peer_auth_check(peers->auth, &peers->keys, value, &words, clock_wall_us(),
                              &x->peer_code, &incarnation);
    if (verdict == PEER_EARLY)
        return refuse_silently(reason);
    if (verdict != PEER_ACCEPTED)
        return refuse(x, peer_verdict_text(verdict), reason);
    sender = origin_peers_find(peers, peer_auth_sender(value));
    if (sender == peers->route->count || sender == peers->self)
        return refuse(x, "its sender is none of the peers, or this daemon itself", reason);
    x->peer = &peers->route->members[sender];
    if (words.says.len)
        return take_news(x, incarnation, words.says, reason);
    if (request->method_id != HTTP_GET || request->form != HTTP_ABSOLUTE_FORM)
        return refuse(x, "it is no request for a URL", reason);
    return 0;
}

bool
http_peer_is_noted(struct http_exchange *x)
{
    struct span says = http_first_value(x->request.fields, PEER_NEWS_FIELD);
    struct peer_message_head head;

    x->noted.marks = purging_all_marks();
    return !peer_message_read(&says, &head) || head.last == head.before || http_purge_is_noted(x);
}

void
http_peer_reassure(struct http_exchange *x)
{
    if (x->peer && http_stream_is_open(&x->stream))
        http_interim_send(&x->stream, 102, span_of(NULL, 0));
}
