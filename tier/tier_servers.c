/* The list of servers, as an operator writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/url.h"
#include "tier/tier.h"

#define SCHEME "memcached://"
#define PORT "11211"

static bool
refuse(struct buf *why, const char *sentence)
{
    buf_append_str(why, sentence);
    return false;
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

void
tier_address_set(struct tier_address *server, const union address *address)
{
    const bool is_inet = address->any.sa_family == AF_INET;

    server->address = *address;
    server->len = is_inet ? sizeof(address->in) : sizeof(address->in6);
    *(is_inet ? &server->address.in.sin_port : &server->address.in6.sin6_port) =
        htons(server->port);
}

/* Host without the brackets of IPv6, and port; and the address, if the host is one. */
static bool
read_name(struct tier_address *server)
{
    const char *name = server->name, *end = strrchr(name, ':');
    const size_t all = (size_t)(end - name);
    const bool has_brackets = name[0] == '[' && all > 2 && name[all - 1] == ']';
    const size_t len = has_brackets ? all - 2 : all;
    union address address;

    if (len >= sizeof(server->host))
        return false;
    memcpy(server->host, name + has_brackets, len);
    server->host[len] = '\0';
    server->port = (uint16_t)strtoul(end + 1, NULL, 10);
    server->is_name = !address_parse(server->host, server->port, &address);
    if (!server->is_name)
        tier_address_set(server, &address);
    return server->host[0] != '\0';
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
    return read_name(server) || refuse(why, "a server is " SCHEME "HOST:PORT");
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
