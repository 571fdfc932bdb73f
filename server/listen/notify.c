#include "server/listen/notify.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/logs/log.h"

void
notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len;
    int fd;

    if (!path)
        return;
    len = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || len >= sizeof(address.sun_path)) {
        log_warning(
            "NOTIFY_SOCKET is neither a path nor an abstract socket; no notification is sent");
        return;
    }
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
               (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) < 0)
        log_warning("the service manager could not be notified");
    close(fd);
}

void
notify_reloading(void)
{
    char state[64];

    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_monotonic_us());
    notify_manager(state);
}
