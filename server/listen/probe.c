#include "server/listen/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server/listen/holder.h"
#include "server/listen/listen_address.h"
#include "server/listen/local_socket.h"

/* A value of an option, and where what is wrong with it goes. */
struct probe {
    const char *place, *name, *text;
    struct buf *why, *warnings;
};

static void
begin_line(const struct probe *probe, struct buf *line)
{
    buf_end_line(line);
    buf_printf(line, "%s%s: %s", probe->place, probe->name, probe->text);
}

/* Another user, such as root, may be allowed what this one is not. */
static bool
explain(const struct probe *probe, const char *what, int error)
{
    struct buf *line = error == EACCES && geteuid() != 0 ? probe->warnings : probe->why;

    begin_line(probe, line);
    buf_printf(line, "%s: %s", what,
               error == EADDRNOTAVAIL ? "it is not an address of this machine" : strerror(error));
    return line == probe->warnings;
}

/* `optional`: the machine may lack the family, or the address. */
static bool
probe_address(const struct probe *probe, const struct sockaddr_storage *address, socklen_t len,
              bool optional)
{
    int error = listen_address_try((const struct sockaddr *)address, len);
    const uint16_t port = listen_address_port(address);

    if (error == 0 ||
        (optional && (listen_address_family_is_missing(error) || error == EADDRNOTAVAIL)))
        return true;
    if (error != EADDRINUSE)
        return explain(probe, "", error);
    begin_line(probe, probe->warnings);
    buf_printf(probe->warnings, ": TCP port %u is in use by ", (unsigned)port);
    if (!holder_of_port(port, probe->warnings))
        buf_append_str(probe->warnings, "an unknown process");
    return true;
}

/* A socket is made in the folder, and its lock. */
static bool
probe_path(const struct probe *probe, const char *path)
{
    char what[sizeof(((struct local_socket *)NULL)->path) + 2];
    struct local_socket socket = LOCAL_SOCKET_NONE;
    char *slash;

    if (!local_socket_name(&socket, path, false, probe->why))
        return false;
    slash = strrchr(socket.path, '/');
    slash[slash == socket.path] = '\0';
    if (access(socket.path, W_OK | X_OK) == 0)
        return true;
    snprintf(what, sizeof(what), ": %s", socket.path);
    return explain(probe, what, errno);
}

static bool
probe_http(const struct option_list *list, const char *name, struct buf *why, struct buf *warnings)
{
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        const struct probe probe = {option_place(list, i), name, list->items[i], why, warnings};
        struct listen_http http;

        if (!listen_http_parse(name, list->items[i], &http, why))
            return false;
        if (http.path)
            ok = probe_path(&probe, http.path) && ok;
        for (unsigned n = 0; n < http.count; n++)
            ok = probe_address(&probe, &http.addresses[n], http.lens[n], n > 0) && ok;
    }
    return ok;
}

static bool
probe_rpc(const struct options *options, struct buf *why, struct buf *warnings)
{
    static char loopback4[] = "127.0.0.1", loopback6[] = "::1";
    static char *loopback[] = {loopback4, loopback6, NULL};
    const struct option_list ours = {.items = loopback, .count = 2};
    const bool given = options->listen.count != 0;
    const struct option_list *list = given ? &options->listen : &ours;
    bool ok = true;

    if (given && strcmp(list->items[0], "none") == 0)
        return true;
    for (size_t i = 0; i < list->count; i++) {
        const struct probe probe = {option_place(list, i), "listen", list->items[i], why, warnings};
        struct sockaddr_storage address;
        socklen_t len;

        if (!listen_address_parse(list->items[i], &address, &len))
            return false;
        listen_address_set_port(&address, (uint16_t)options->port);
        ok = probe_address(&probe, &address, len, !given) && ok;
    }
    return ok;
}

bool
probe_addresses(const struct options *options, struct buf *why, struct buf *warnings)
{
    const char *path = options->socket;
    const struct probe socket = {options_place(options, "socket"), "socket", path, why, warnings};
    bool ok = probe_rpc(options, why, warnings);

    if (path && strcmp(path, "none") != 0)
        ok = probe_path(&socket, path) && ok;
    ok = probe_http(&options->http, "http", why, warnings) && ok;
    ok = probe_http(&options->http_proxied, "http-proxied", why, warnings) && ok;
    return probe_http(&options->metrics, "metrics", why, warnings) && ok;
}
