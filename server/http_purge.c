/* The method PURGE: it removes what is stored of a URL, for clients of --purge-net and
 * administrators. */
#include <inttypes.h>
#include <stdio.h>

#include "proxy/control.h"
#include "server/http_front.h"

bool
http_purge_is_allowed(const struct http_connection *c)
{
    const struct http_service *http = c->worker->http;
    const struct net_peer *peer = &c->net.peer;

    return service_is_admin(http->service, peer) ||
           networks_have_address(&http->purgers, (const struct sockaddr *)&peer->address);
}

void
http_purge(struct http_exchange *x, struct span url)
{
    uint64_t count = control_purge(&http_service_of(x)->service->proxy, CONTROL_PURGE_URL, url);
    char sentence[64];

    snprintf(sentence, sizeof(sentence), "%" PRIu64 " stored response%s removed", count,
             count == 1 ? " was" : "s were");
    http_page_make(x,
                   &(struct http_page){.status = count ? 200 : 404, .reason = span_str(sentence)});
}
