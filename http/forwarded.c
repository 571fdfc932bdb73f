#include "http/forwarded.h"

#include <arpa/inet.h>

#include "http/field.h"
#include "http/octet.h"

/* The members of all lines of a field, in order. */
struct members {
    struct span items[HTTP_WAY_HOPS_MAX];
    size_t count;
};

/* What one proxy states. */
struct hop {
    struct span node;
    struct span scheme;
    struct span host;
};

static bool
list_members(struct span fields, const char *field, struct members *members)
{
    struct span line, name, value, member;

    members->count = 0;
    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is(name, field))
            continue;
        while (http_next_member(&value, &member)) {
            if (members->count == HTTP_WAY_HOPS_MAX)
                return false;
            members->items[members->count++] = member;
        }
    }
    return true;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Behind a node: nothing, or a port, which may be hidden (RFC 7239 section 6.2). */
static bool
is_port(struct span text)
{
    if (text.len == 0)
        return true;
    if (text.ptr[0] != ':' || text.len < 2)
        return false;
    for (size_t i = 1; i < text.len; i++)
        if (!http_octet_is(text.ptr[i], HTTP_OCTET_HOST))
            return false;
    return true;
}

static bool
read_ip(struct span text, struct sockaddr_storage *address)
{
    struct sockaddr_in *inet = (struct sockaddr_in *)address;
    struct sockaddr_in6 *inet6 = (struct sockaddr_in6 *)address;
    char copy[INET6_ADDRSTRLEN];

    if (text.len == 0 || text.len >= sizeof(copy) || span_has_zero(text))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    *address = (struct sockaddr_storage){.ss_family = AF_INET};
    if (inet_pton(AF_INET, copy, &inet->sin_addr) == 1)
        return true;
    address->ss_family = AF_INET6;
    return inet_pton(AF_INET6, copy, &inet6->sin6_addr) == 1;
}

/* An address, with a port or without; AF_UNSPEC for a node without one. False: it is no node. */
static bool
read_node(struct span node, struct sockaddr_storage *address)
{
    const char *end;

    *address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (node.len && node.ptr[0] == '[') {
        end = memchr(node.ptr, ']', node.len);
        return end && read_ip(span_of(node.ptr + 1, (size_t)(end - node.ptr) - 1), address) &&
               address->ss_family == AF_INET6 &&
               is_port(span_of(end + 1, node.len - (size_t)(end + 1 - node.ptr)));
    }
    if (read_ip(node, address))
        return true;
    end = node.len ? memchr(node.ptr, ':', node.len) : NULL;
    if (end && read_ip(span_of(node.ptr, (size_t)(end - node.ptr)), address))
        return is_port(span_of(end, node.len - (size_t)(end - node.ptr)));
    *address = (struct sockaddr_storage){.ss_family = AF_UNSPEC};
    if (end && is_port(span_of(end, node.len - (size_t)(end - node.ptr))))
        node.len = (size_t)(end - node.ptr);
    /* nginx states "unix:" for a client of an AF_UNIX socket. */
    return http_name_is(node, "unknown") || http_name_is(node, "unix:") ||
           (node.len > 1 && node.ptr[0] == '_' && http_is_token(node));
}

/* ---- what a hop states ----------------------------------------------------------------------- */

static bool
add_scheme(struct span scheme, struct http_way *forwarded)
{
    if (scheme.len == 0)
        return true;
    /* Some state the scheme of a WebSocket. */
    if (http_name_is(scheme, "https") || http_name_is(scheme, "wss"))
        forwarded->scheme = HTTP_SCHEME_HTTPS;
    else if (http_name_is(scheme, "http") || http_name_is(scheme, "ws"))
        forwarded->scheme = HTTP_SCHEME_HTTP;
    else
        return false;
    return true;
}

static bool
add_host(struct span host, struct http_way *forwarded)
{
    return host.len == 0 || http_authority_read(host, &forwarded->host);
}

/*
 * Adds what a hop states, which counts more than what the hops behind it do. *more is set to
 * whether the hop in front of it is trusted, too.
 */
static bool
add_hop(const struct hop *hop, const struct networks *trusted, struct http_way *forwarded,
        bool *more)
{
    struct sockaddr_storage address;

    *more = false;
    if (!add_scheme(hop->scheme, forwarded) || !add_host(hop->host, forwarded))
        return false;
    if (hop->node.len == 0)
        return true;
    if (!read_node(hop->node, &address))
        return false;
    if (address.ss_family != AF_UNSPEC) {
        forwarded->address = address;
        *more = networks_have_address(trusted, (const struct sockaddr *)&address);
    }
    return true;
}

/* ---- X-Forwarded-* --------------------------------------------------------------------------- */

/*
 * The member of the `hop`-th proxy, counted from the last one. A proxy that replaces the field
 * leaves one member for those in front of it.
 */
static struct span
stated_by(const struct members *members, size_t hop)
{
    if (members->count == 0)
        return span_of(NULL, 0);
    return members->items[hop < members->count ? members->count - 1 - hop : 0];
}

static bool
read_x(struct span fields, const struct networks *trusted, struct http_way *forwarded)
{
    struct members nodes, schemes, hosts;
    bool more = true;

    if (!list_members(fields, "X-Forwarded-For", &nodes) ||
        !list_members(fields, "X-Forwarded-Proto", &schemes) ||
        !list_members(fields, "X-Forwarded-Host", &hosts))
        return false;
    for (size_t i = 0; more; i++) {
        struct hop hop = {.scheme = stated_by(&schemes, i), .host = stated_by(&hosts, i)};

        if (i < nodes.count)
            hop.node = nodes.items[nodes.count - 1 - i];
        else if (i > 0)
            break;
        if (!add_hop(&hop, trusted, forwarded, &more))
            return false;
        forwarded->members += i < nodes.count;
    }
    return true;
}

/* ---- Forwarded ------------------------------------------------------------------------------- */

/* Takes a token or a quoted string without escapes off the front. */
static bool
take_value(struct span *rest, struct span *value)
{
    size_t len = 0;

    if (rest->len && rest->ptr[0] == '"') {
        const char *end = memchr(rest->ptr + 1, '"', rest->len - 1);

        if (!end)
            return false;
        *value = span_of(rest->ptr + 1, (size_t)(end - rest->ptr) - 1);
        *rest = span_of(end + 1, rest->len - value->len - 2);
        return !value->len || !memchr(value->ptr, '\\', value->len);
    }
    while (len < rest->len && rest->ptr[len] != ';' && !http_is_blank(rest->ptr[len]))
        len++;
    *value = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len, rest->len - len);
    /* Some send colons and brackets without quotes. */
    return len && !memchr(value->ptr, '"', len);
}

static struct span *
parameter(struct hop *hop, struct span name)
{
    if (http_name_is(name, "for"))
        return &hop->node;
    if (http_name_is(name, "proto"))
        return &hop->scheme;
    return http_name_is(name, "host") ? &hop->host : NULL;
}

/* Pairs with semicolons between them; each parameter once (RFC 7239 section 4). */
static bool
read_element(struct span element, struct hop *hop)
{
    *hop = (struct hop){.node = span_of(NULL, 0)};
    while (element.len) {
        const char *equals = memchr(element.ptr, '=', element.len);
        struct span name, value, *place;

        if (!equals)
            return false;
        name = span_of(element.ptr, (size_t)(equals - element.ptr));
        element = span_of(equals + 1, element.len - name.len - 1);
        place = parameter(hop, name);
        if (!http_is_token(name) || !take_value(&element, &value) || (place && place->ptr))
            return false;
        if (place)
            *place = value;
        element = http_trim(element);
        if (element.len == 0)
            return true;
        if (element.ptr[0] != ';')
            return false;
        element = http_trim(span_of(element.ptr + 1, element.len - 1));
    }
    return true;
}

static bool
read_standard(struct span fields, const struct networks *trusted, struct http_way *forwarded)
{
    struct members elements;
    bool more = true;

    if (!list_members(fields, "Forwarded", &elements))
        return false;
    for (size_t i = elements.count; more && i-- > 0;) {
        struct hop hop;

        if (!read_element(elements.items[i], &hop) || !add_hop(&hop, trusted, forwarded, &more))
            return false;
        forwarded->members++;
    }
    return true;
}

/* ---- both ------------------------------------------------------------------------------------ */

bool
http_forwarded_read(struct span fields, enum http_way_field field,
                    const struct networks *trusted, struct http_way *forwarded)
{
    *forwarded = (struct http_way){.address.ss_family = AF_UNSPEC};
    switch (field) {
    case HTTP_WAY_X:
        return read_x(fields, trusted, forwarded);
    case HTTP_WAY_FORWARDED:
        return read_standard(fields, trusted, forwarded);
    case HTTP_WAY_NONE:
        break;
    }
    return true;
}

void
http_forwarded_append_node(struct buf *out, struct span address)
{
    if (address.len && memchr(address.ptr, ':', address.len)) {
        buf_append_str(out, "\"[");
        buf_append(out, address.ptr, address.len);
        buf_append_str(out, "]\"");
    } else if (span_equal(address, span_str("unix"))) {
        buf_append_str(out, "unknown");
    } else {
        buf_append(out, address.ptr, address.len);
    }
}
