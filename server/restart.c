#include "server/restart.h"

#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/listen/take_over.h"
#include "server/logs/log.h"

#define READY_SECONDS 60 /* for the new process to become ready */

/* ---- the daemon that is replaced ------------------------------------------------------------- */

void
restart_offer(struct restart *restart, const struct taken_sockets *offer)
{
    restart->sockets = *offer;
    restart->listener = -1;
    for (unsigned i = 0; i < offer->count; i++)
        if (offer->items[i].role == LISTEN_TAKE_OVER)
            restart->listener = offer->items[i].socket.fd;
}

static void
end(struct restart *restart)
{
    if (restart->fd >= 0)
        close(restart->fd);
    restart->fd = -1;
}

/* Sends the sockets to the process on this connection. */
static void
send_sockets(struct restart *restart, int fd)
{
    restart->fd = fd;
    restart->until_us = clock_monotonic_us() + READY_SECONDS * (int64_t)1000000;
    if (take_over_offer(fd, &restart->sockets))
        return;
    log_error("the sockets cannot be passed to another process; this one goes on serving");
    end(restart);
}

void
restart_begin(struct restart *restart, struct opener *opener)
{
    struct buf why;
    int fd;

    if (restart_is_going_on(restart)) {
        log_info("SIGUSR2: the process that is to replace this one was started already");
        return;
    }
    buf_init(&why, 1024);
    fd = opener_launch(opener, &why);
    if (fd >= 0) {
        log_info("SIGUSR2: starting the process that is to replace this one");
        send_sockets(restart, fd);
    } else {
        log_error("SIGUSR2: not restarted: %s", buf_str(&why));
    }
    buf_free(&why);
}

bool
restart_is_going_on(const struct restart *restart)
{
    return restart->fd >= 0;
}

static void
accept_other(struct restart *restart)
{
    int fd = restart->listener >= 0 ? take_over_accept(restart->listener) : -1;

    if (fd < 0)
        return;
    if (restart_is_going_on(restart)) {
        take_over_refuse(fd);
        close(fd);
        return;
    }
    log_info("a process is to replace this one");
    send_sockets(restart, fd);
}

bool
restart_look(struct restart *restart)
{
    enum take_over_state state = TAKE_OVER_WAITS;

    accept_other(restart);
    if (restart_is_going_on(restart))
        state = take_over_look(restart->fd, &restart->sockets, &restart->successor);
    if (state == TAKE_OVER_GONE) {
        log_error("the process that was to replace this one has ended; this one goes on serving");
        end(restart);
    } else if (state == TAKE_OVER_WAITS && restart_is_going_on(restart) &&
               clock_monotonic_us() >= restart->until_us) {
        log_error("the process that was to replace this one is not ready after %d s; this one goes "
                  "on serving",
                  READY_SECONDS);
        take_over_refuse(restart->fd);
        end(restart);
    }
    return state == TAKE_OVER_READY;
}

int
restart_yield(struct restart *restart)
{
    const int fd = restart->fd;

    take_over_yield(fd);
    restart->fd = -1;
    return fd;
}

/* ---- the process that replaces it ------------------------------------------------------------ */

int
restart_take(struct restart *restart, const struct options *options, uid_t uid)
{
    const bool none = options->socket && strcmp(options->socket, "none") == 0;
    struct local_socket local = LOCAL_SOCKET_NONE;
    struct buf why;
    bool ok;

    if (!options->take_over)
        return EX_OK;
    buf_init(&why, 1024);
    ok = none || local_socket_name(&local, options->socket, options->user, &why);
    if (ok)
        restart->fd = take_over_connect(none ? NULL : local.path, uid, &why);
    ok = ok && !why.len;
    if (ok && restart->fd < 0)
        log_info("there is no daemon to take over from");
    else if (ok && take_over_receive(restart->fd, &restart->sockets, &why))
        log_info("taking over %u sockets of the running daemon", restart->sockets.count);
    else
        ok = false;
    if (!ok)
        log_error("take-over: %s", buf_str(&why));
    buf_free(&why);
    return ok ? EX_OK : EX_UNAVAILABLE;
}

int
restart_finish(struct restart *restart, struct listening *listening, int *fd)
{
    bool yielded = true;

    if (restart->fd >= 0)
        yielded = take_over_finish(restart->fd, &restart->sockets);
    *fd = yielded ? restart->fd : -1;
    if (yielded)
        restart->fd = -1;
    end(restart);
    taken_sockets_close(&restart->sockets);
    if (yielded)
        listen_own(listening);
    else
        log_error("take-over: the running daemon goes on serving");
    return yielded ? EX_OK : EX_UNAVAILABLE;
}

void
restart_free(struct restart *restart)
{
    end(restart);
}
