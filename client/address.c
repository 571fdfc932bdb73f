#include "client/address.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/output.h"

bool
server_address_parse(struct server_address *address, const char *text)
{
    const char *colon = strrchr(text, ':'), *end = colon;
    uint64_t port;
    size_t len;

    *address = (struct server_address){.path = NULL};
    if (strncmp(text, "unix:", 5) == 0) {
        address->path = text + 5;
        return text[5] != '\0';
    }
    if (colon && *text == '[' && colon > text && colon[-1] == ']') {
        text++;
        end--;
    }
    if (!colon || end <= text || (size_t)(end - text) >= sizeof(address->host) ||
        !units_parse_uint(colon + 1, 1, 65535, &port))
        return false;
    len = (size_t)(end - text);
    memcpy(address->host, text, len);
    address->host[len] = '\0';
    address->port = (unsigned)port;
    return true;
}

bool
http_address_parse(struct http_address *address, const char *text)
{
    static const char scheme[] = "http://";
    bool has_scheme = strncmp(text, scheme, sizeof(scheme) - 1) == 0;
    struct server_address parsed;
    char plain[320];
    size_t len;

    snprintf(plain, sizeof(plain), "%s", has_scheme ? text + sizeof(scheme) - 1 : text);
    len = strlen(plain);
    if (has_scheme && len != 0 && plain[len - 1] == '/')
        plain[len - 1] = '\0';
    if (!server_address_parse(&parsed, has_scheme ? plain : text) || (parsed.path && has_scheme)) {
        output_complain("the HTTP front is HOST:PORT or unix:PATH, not '%s'", text);
        return false;
    }
    address->socket = parsed.path;
    if (parsed.path)
        snprintf(address->url, sizeof(address->url), "http://localhost/");
    else
        snprintf(address->url, sizeof(address->url),
                 strchr(parsed.host, ':') ? "http://[%s]:%u/" : "http://%s:%u/", parsed.host,
                 parsed.port);
    snprintf(address->name, sizeof(address->name), "%s", parsed.path ? text : address->url);
    return true;
}
