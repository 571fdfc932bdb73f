#include "tests/unit/client/local_server.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define MOST_CONNECTIONS 16

static void *
serve(void *context)
{
    struct local_server *server = context;
    struct pollfd fds[MOST_CONNECTIONS] = {{.fd = server->stop[0], .events = POLLIN},
                                           {.fd = server->listener, .events = POLLIN}};
    nfds_t count = 2;

    while (poll(fds, count, -1) > 0 && fds[0].revents == 0) {
        for (nfds_t i = 2; i < count; i++)
            if (fds[i].revents != 0 && !server->answer(server->context, fds[i].fd)) {
                close(fds[i].fd);
                fds[i--] = fds[--count];
            }
        if (fds[1].revents != 0 && count < MOST_CONNECTIONS) {
            int fd = accept(server->listener, NULL, NULL);

            if (fd >= 0)
                fds[count++] = (struct pollfd){.fd = fd, .events = POLLIN};
        }
    }
    while (count > 2)
        close(fds[--count].fd);
    return NULL;
}

void
local_server_start(struct local_server *server, const char *folder, const char *name,
                   local_server_answer *answer, void *context)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    server->answer = answer;
    server->context = context;
    snprintf(server->path, sizeof(server->path), "%s/%s", folder, name);
    memcpy(address.sun_path, server->path, sizeof(address.sun_path));
    server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert_int_eq(listen(server->listener, MOST_CONNECTIONS), 0);
    ck_assert_int_eq(pipe(server->stop), 0);
    ck_assert_int_eq(pthread_create(&server->thread, NULL, serve, server), 0);
}

void
local_server_stop(struct local_server *server)
{
    close(server->stop[1]);
    ck_assert_int_eq(pthread_join(server->thread, NULL), 0);
    close(server->stop[0]);
    close(server->listener);
    unlink(server->path);
}
