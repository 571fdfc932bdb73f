#include "cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static struct {
    int fd; /* 0: not caught */
    bool came;
    sigset_t before;
} interrupt;

int
interrupt_catch(void)
{
    struct sigaction at_hangup;
    sigset_t ending;

    if (interrupt.fd)
        return interrupt.fd;
    sigemptyset(&ending);
    if (sigaction(SIGHUP, NULL, &at_hangup) == 0 && at_hangup.sa_handler != SIG_IGN)
        sigaddset(&ending, SIGHUP);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    interrupt.fd = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    if (interrupt.fd < 0)
        interrupt.fd = 0;
    else
        pthread_sigmask(SIG_BLOCK, &ending, &interrupt.before);
    return interrupt.fd;
}

bool
interrupt_came(void)
{
    struct signalfd_siginfo caught;

    while (interrupt.fd && read(interrupt.fd, &caught, sizeof(caught)) > 0)
        interrupt.came = true;
    return interrupt.came;
}

void
interrupt_release(void)
{
    if (!interrupt.fd)
        return;
    interrupt_came();
    close(interrupt.fd);
    interrupt.fd = 0;
    pthread_sigmask(SIG_SETMASK, &interrupt.before, NULL);
}
