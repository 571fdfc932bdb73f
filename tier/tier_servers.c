/* The list of servers, as an operator writes it. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tier/tier.h"

#define SCHEME "memcached://"
#define PORT "11211"

static bool
refuse(struct buf *why, const char *sentence)
{
    buf_append_str(why, sentence);
    return false;
}

/* Host without the brackets of IPv6, and port. */
static bool
split(const char *name, char host[256], char port[8])
{
    const char *end = strrchr(name, ':');
    const size_t len = (size_t)(end - name);

    if (name[0] == '[' && len > 2 && name[len - 1] == ']')
        snprintf(host, 256, "%.*s", (int)len - 2, name + 1);
    else
        snprintf(host, 256, "%.*s", (int)len, name);
    snprintf(port, 8, "%s", end + 1);
    return host[0] != '\0';
}

static bool
read_port(struct span text)
{
    unsigned long port = 0;

    for (size_t i = 0; i < text.len && port <= 65535; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        port = port * 10 + (unsigned long)(text.ptr[i] - '0');
    }
    return text.len && port >= 1 && port <= 65535;
}

static bool
read_one(struct span item, struct tier_address *server, struct buf *why)
{
    const struct span scheme = span_str(SCHEME);
    const char *bracket, *colon;
    struct span name;

    if (!span_starts_with(item, scheme))
        return refuse(why, "a server is " SCHEME "HOST:PORT");
    name = span_of(item.ptr + scheme.len, item.len - scheme.len);
    if (name.len && name.ptr[name.len - 1] == '/')
        name.len--;
    if (!name.len || name.len > 255 || memchr(name.ptr, '/', name.len) ||
        memchr(name.ptr, ' ', name.len) || memchr(name.ptr, '@', name.len))
        return refuse(why, "a server is " SCHEME "HOST:PORT");
    bracket = memrchr(name.ptr, ']', name.len);
    colon = memrchr(name.ptr, ':', name.len);
    if (colon && bracket && colon < bracket)
        colon = NULL;
    if (colon && !read_port(span_of(colon + 1, (size_t)(name.ptr + name.len - colon - 1))))
        return refuse(why, "the port of a server is a number from 1 to 65535");
    if (colon == name.ptr)
        return refuse(why, "a server is " SCHEME "HOST:PORT");
    *server = (struct tier_address){.len = 0};
    snprintf(server->name, sizeof(server->name), "%.*s%s", (int)name.len, name.ptr,
             colon ? "" : ":" PORT);
    return true;
}

bool
tier_servers_read(struct span text, struct tier_servers *servers, struct buf *why)
{
    servers->count = 0;
    do {
        const char *comma = text.len ? memchr(text.ptr, ',', text.len) : NULL;
        const size_t len = comma ? (size_t)(comma - text.ptr) : text.len;

        if (servers->count == TIER_SERVERS)
            return refuse(why, "there are more than 32 servers");
        if (!read_one(span_of(text.ptr, len), &servers->of[servers->count], why))
            return false;
        for (unsigned i = 0; i < servers->count; i++)
            if (strcmp(servers->of[i].name, servers->of[servers->count].name) == 0)
                return refuse(why, "a server is in the list twice");
        servers->count++;
        text = comma ? span_of(comma + 1, text.len - len - 1) : span_of(NULL, 0);
        if (!comma)
            break;
    } while (true);
    return true;
}

bool
tier_servers_resolve(struct tier_servers *servers, struct buf *why)
{
    for (unsigned i = 0; i < servers->count; i++) {
        struct tier_address *server = &servers->of[i];
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        char host[256], port[8];
        int error =
            split(server->name, host, port) ? getaddrinfo(host, port, &hints, &found) : EAI_NONAME;

        if (error) {
            buf_printf(why, "%s: %s", server->name, gai_strerror(error));
            return false;
        }
        memcpy(&server->address, found->ai_addr, found->ai_addrlen);
        server->len = found->ai_addrlen;
        freeaddrinfo(found);
    }
    return true;
}
