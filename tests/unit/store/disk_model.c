#include "tests/unit/store/disk_model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/faults.h"

static _Atomic unsigned countdown;
static _Atomic int error_wanted;
static _Atomic bool fails_all;
static const char *_Atomic failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool hanging;
static char full_folder[256];
static unsigned most_segments;
static char kept_folder[256], durable_folder[256];

void
disk_model_fail(unsigned n, int error, bool all)
{
    atomic_store(&failed, NULL);
    atomic_store(&error_wanted, error);
    atomic_store(&fails_all, all);
    atomic_store(&countdown, n);
}

const char *
disk_model_failed(void)
{
    return atomic_load(&failed);
}

void
disk_model_hang(bool hangs)
{
    pthread_mutex_lock(&lock);
    hanging = hangs;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

void
disk_model_full(const char *folder, unsigned segments)
{
    pthread_mutex_lock(&lock);
    snprintf(full_folder, sizeof(full_folder), "%s", folder ? folder : "");
    most_segments = segments;
    pthread_mutex_unlock(&lock);
}

/* Is the disk full? Sets errno then. */
static bool
is_full(void)
{
    unsigned count = 0;
    struct dirent *entry;
    DIR *dir;

    pthread_mutex_lock(&lock);
    dir = full_folder[0] ? opendir(full_folder) : NULL;
    while (dir && (entry = readdir(dir)))
        count += strncmp(entry->d_name, "segment-", 8) == 0;
    if (dir)
        closedir(dir);
    pthread_mutex_unlock(&lock);
    errno = ENOSPC;
    return count > most_segments;
}

void
disk_model_keep(const char *folder, const char *durable)
{
    pthread_mutex_lock(&lock);
    snprintf(kept_folder, sizeof(kept_folder), "%s", folder ? folder : "");
    snprintf(durable_folder, sizeof(durable_folder), "%s", durable ? durable : "");
    pthread_mutex_unlock(&lock);
}

/* Waits while the disk hangs. True, with errno set: the call is to fail. */
static bool
fails(const char *name)
{
    unsigned n = atomic_load(&countdown);

    pthread_mutex_lock(&lock);
    while (hanging)
        pthread_cond_wait(&released, &lock);
    pthread_mutex_unlock(&lock);
    while (n && !atomic_compare_exchange_weak(&countdown, &n, n == 1 && fails_all ? 1 : n - 1))
        ;
    if (n != 1)
        return false;
    atomic_store(&failed, name);
    errno = atomic_load(&error_wanted);
    return true;
}

#define MODEL(type, name, parameters, arguments) \
    type __real_##name parameters;               \
    type __wrap_##name parameters;               \
    type __wrap_##name parameters                \
    {                                            \
        if (fails(#name))                        \
            return -1;                           \
        return __real_##name arguments;          \
    }

MODEL(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at))
MODEL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))

/* Other programs count its calls one by one. */
ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t
__wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
    if (faults_now("pwrite") || fails("pwrite") || is_full())
        return -1;
    return __real_pwrite(fd, from, n, at);
}

/* A disk that hangs has nothing at once. */
ssize_t __real_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t
__wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
    bool hangs;

    pthread_mutex_lock(&lock);
    hangs = hanging;
    pthread_mutex_unlock(&lock);
    errno = EAGAIN;
    return hangs ? -1 : __real_preadv2(fd, v, n, at, flags);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int
__wrap_openat(int fd, const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return fails("openat") ? -1 : __real_openat(fd, path, flags, mode);
}

/* ---- what is durable ------------------------------------------------------------------------- */

static void
copy(int fd, const char *to)
{
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char bytes[65536];
    off_t at = 0;
    ssize_t n;

    while (out >= 0 && (n = __real_pread(fd, bytes, sizeof(bytes), at)) > 0) {
        if (__real_pwrite(out, bytes, (size_t)n, at) != n)
            break;
        at += n;
    }
    if (out >= 0)
        close(out);
}

/* A file whose name was synced or not: here it is with its content, as on ext4. */
static void
keep(int fd)
{
    char link[64], path[600], to[600];
    struct stat st;
    ssize_t n;

    pthread_mutex_lock(&lock);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = kept_folder[0] && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
            ? readlink(link, path, sizeof(path) - 1)
            : -1;
    if (n > 0) {
        path[n] = '\0';
        if (strncmp(path, kept_folder, strlen(kept_folder)) == 0 && !strstr(path, "(deleted)")) {
            snprintf(to, sizeof(to), "%s%s", durable_folder, strrchr(path, '/'));
            copy(fd, to);
        }
    }
    pthread_mutex_unlock(&lock);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int
__wrap_fdatasync(int fd)
{
    int result = fails("fdatasync") ? -1 : __real_fdatasync(fd);

    if (result == 0)
        keep(fd);
    return result;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int
__wrap_fsync(int fd)
{
    int result = fails("fsync") ? -1 : __real_fsync(fd);

    if (result == 0)
        keep(fd);
    return result;
}
