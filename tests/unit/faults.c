#include "tests/unit/faults.h"

#include <curl/curl.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static _Thread_local unsigned countdown;
static _Thread_local int error_wanted;
static _Thread_local const char *failed;
static _Thread_local const char *spared;
static _Thread_local const char *refused;

void
faults_fail_at(unsigned n, int error)
{
    countdown = n;
    error_wanted = error;
    if (n)
        failed = NULL;
}

void
faults_spare(const char *name)
{
    spared = name;
}

void
faults_refuse(const char *name)
{
    refused = name;
}

const char *
faults_failed(void)
{
    return failed;
}

bool
faults_now(const char *name)
{
    if (refused && strcmp(name, refused) == 0) {
        errno = EAGAIN;
        return true;
    }
    if (spared && strcmp(name, spared) == 0)
        return false;
    if (countdown == 0 || --countdown != 0)
        return false;
    failed = name;
    errno = error_wanted;
    return true;
}

unsigned
faults_walk(void (*body)(void *context), void *context, int error)
{
    for (unsigned n = 1;; n++) {
        const char *name;

        faults_fail_at(n, error);
        body(context);
        name = failed;
        faults_fail_at(0, 0);
        if (!name)
            return n - 1;
    }
}

/* A call of `type name parameters`; when it fails it returns `failure` (errno is set). */
#define FAULT(type, name, parameters, arguments, failure) \
    type __real_##name parameters;                        \
    type __wrap_##name parameters;                        \
    type __wrap_##name parameters                         \
    {                                                     \
        if (faults_now(#name))                            \
            return failure;                               \
        return __real_##name arguments;                   \
    }

FAULT(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1)
FAULT(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1)
FAULT(int, fstat, (int fd, struct stat *status), (fd, status), -1)
FAULT(int, stat, (const char *path, struct stat *status), (path, status), -1)
FAULT(int, lstat, (const char *path, struct stat *status), (path, status), -1)
FAULT(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
FAULT(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
FAULT(int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
FAULT(int, rename, (const char *from, const char *to), (from, to), -1)
FAULT(int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
FAULT(char *, mkdtemp, (char *path), (path), NULL)
FAULT(int, mkostemp, (char *path, int flags), (path, flags), -1)
FAULT(int, mkstemp, (char *path), (path), -1)
FAULT(ssize_t, readlink, (const char *path, char *to, size_t n), (path, to, n), -1)
FAULT(int, socket, (int family, int type, int protocol), (family, type, protocol), -1)
FAULT(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
FAULT(int, listen, (int fd, int backlog), (fd, backlog), -1)
FAULT(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n), -1)
FAULT(int, accept4, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), -1)
FAULT(int, getsockname, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1)
FAULT(int, getsockopt, (int fd, int level, int name, void *value, socklen_t *n),
      (fd, level, name, value, n), -1)
FAULT(int, setsockopt, (int fd, int level, int name, const void *value, socklen_t n),
      (fd, level, name, value, n), -1)
FAULT(int, getpeername, (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), -1)
FAULT(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), -1)
FAULT(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1)
FAULT(ssize_t, recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags), -1)
FAULT(int, poll, (struct pollfd * fds, nfds_t n, int ms), (fds, n, ms), -1)
FAULT(int, ftruncate, (int fd, off_t n), (fd, n), -1)
FAULT(char *, getcwd, (char *to, size_t n), (to, n), NULL)
FAULT(DIR *, opendir, (const char *path), (path), NULL)
FAULT(int, eventfd, (unsigned initial, int flags), (initial, flags), -1)
FAULT(int, epoll_create1, (int flags), (flags), -1)
FAULT(int, flock, (int fd, int operation), (fd, operation), -1)

/* An error number comes back, and not through errno. */
FAULT(int, pthread_create,
      (pthread_t * thread, const pthread_attr_t *a, void *(*run)(void *), void *context),
      (thread, a, run, context), errno)
FAULT(int, pthread_mutex_init, (pthread_mutex_t * m, const pthread_mutexattr_t *a), (m, a),
      error_wanted)
FAULT(int, pthread_cond_init, (pthread_cond_t * c, const pthread_condattr_t *a), (c, a),
      error_wanted)

/* libevent's, each a call of the system or an allocation inside it. */
FAULT(struct event_base *, event_base_new, (void), (), NULL)
FAULT(struct event *, event_new,
      (struct event_base * base, evutil_socket_t fd, short what, event_callback_fn f,
       void *context),
      (base, fd, what, f, context), NULL)
FAULT(int, event_add, (struct event * event, const struct timeval *after), (event, after), -1)

/* libcurl's, which fail without memory. */
FAULT(CURLM *, curl_multi_init, (void), (), NULL)
FAULT(CURLMcode, curl_multi_add_handle, (CURLM * multi, CURL *easy), (multi, easy),
      CURLM_OUT_OF_MEMORY)
FAULT(CURL *, curl_easy_init, (void), (), NULL)
FAULT(CURLcode, curl_easy_pause, (CURL * easy, int mask), (easy, mask), CURLE_OUT_OF_MEMORY)
FAULT(struct curl_slist *, curl_slist_append, (struct curl_slist * list, const char *text),
      (list, text), NULL)
FAULT(CURLU *, curl_url, (void), (), NULL)
FAULT(CURLU *, curl_url_dup, (const CURLU *url), (url), NULL)
FAULT(CURLUcode, curl_url_set, (CURLU * url, CURLUPart part, const char *text, unsigned flags),
      (url, part, text, flags), CURLUE_OUT_OF_MEMORY)
FAULT(CURLUcode, curl_url_get, (const CURLU *url, CURLUPart part, char **text, unsigned flags),
      (url, part, text, flags), CURLUE_OUT_OF_MEMORY)

/* Their argument is a long or a pointer, which are passed alike. */
CURLcode __real_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLcode __wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...);
CURLMcode __real_curl_multi_setopt(CURLM *multi, CURLMoption option, ...);
CURLMcode __wrap_curl_multi_setopt(CURLM *multi, CURLMoption option, ...);

CURLcode
__wrap_curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    va_list args;
    void *argument;

    if (faults_now("curl_easy_setopt"))
        return CURLE_OUT_OF_MEMORY;
    va_start(args, option);
    argument = va_arg(args, void *);
    va_end(args);
    return __real_curl_easy_setopt(easy, option, argument);
}

CURLMcode
__wrap_curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
    va_list args;
    void *argument;

    if (faults_now("curl_multi_setopt"))
        return CURLM_OUT_OF_MEMORY;
    va_start(args, option);
    argument = va_arg(args, void *);
    va_end(args);
    return __real_curl_multi_setopt(multi, option, argument);
}

/* A socket that takes nothing more gives nothing more, either: its peer would wait for ever. */
ssize_t __real_send(int fd, const void *from, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *from, size_t n, int flags);

ssize_t
__wrap_send(int fd, const void *from, size_t n, int flags)
{
    if (!faults_now("send"))
        return __real_send(fd, from, n, flags);
    shutdown(fd, SHUT_RDWR);
    errno = error_wanted;
    return -1;
}

/* open() and fcntl() take a third argument only at times. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);

int
__wrap_open(const char *path, int flags, ...)
{
    va_list args;
    mode_t mode;

    if (faults_now("open"))
        return -1;
    va_start(args, flags);
    mode = va_arg(args, mode_t);
    va_end(args);
    return __real_open(path, flags, mode);
}

int
__wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    void *argument;

    if (faults_now("fcntl"))
        return -1;
    va_start(args, command);
    argument = va_arg(args, void *);
    va_end(args);
    return __real_fcntl(fd, command, argument);
}

_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

/* What a child ran counts in a build that measures coverage, which otherwise only exit() writes. */
void __gcov_dump(void) __attribute__((weak));

void
__wrap__exit(int status)
{
    if (__gcov_dump)
        __gcov_dump();
    __real__exit(status);
}
