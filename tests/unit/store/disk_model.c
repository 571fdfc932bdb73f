#include "tests/unit/store/disk_model.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/unit/faults.h"
#include "tests/unit/store/lost_writes.h"

static _Atomic unsigned countdown;
static _Atomic int error_wanted;
static _Atomic bool fails_all, read_only;
static const char *_Atomic failed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static bool hanging;
static char full_folder[256];
static unsigned most_segments;
static char hangs_from[64];

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
disk_model_read_only(bool now)
{
    atomic_store(&read_only, now);
}

/* Sets errno then. */
static bool
is_read_only(void)
{
    errno = EROFS;
    return atomic_load(&read_only);
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
disk_model_hang_from(const char *kind)
{
    pthread_mutex_lock(&lock);
    snprintf(hangs_from, sizeof(hangs_from), "%s", kind);
    pthread_mutex_unlock(&lock);
}

bool
disk_model_hangs(void)
{
    bool hangs;

    pthread_mutex_lock(&lock);
    hangs = hanging;
    pthread_mutex_unlock(&lock);
    return hangs;
}

static void
note_open(const char *name)
{
    pthread_mutex_lock(&lock);
    if (hangs_from[0] && strncmp(name, hangs_from, strlen(hangs_from)) == 0) {
        hanging = true;
        hangs_from[0] = '\0';
    }
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

int __real_unlinkat(int fd, const char *path, int flags);
int __wrap_unlinkat(int fd, const char *path, int flags);
int
__wrap_unlinkat(int fd, const char *path, int flags)
{
    int result = is_read_only() || fails("unlinkat") ? -1 : __real_unlinkat(fd, path, flags);

    if (result == 0)
        lost_writes_note_unlink(fd, path);
    return result;
}

/* Other programs count its calls one by one. */
ssize_t __real_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t n, off_t at);
ssize_t
__wrap_pwrite(int fd, const void *from, size_t n, off_t at)
{
    ssize_t result;

    if (faults_now("pwrite") || is_read_only() || fails("pwrite") || is_full())
        return -1;
    result = __real_pwrite(fd, from, n, at);
    if (result > 0)
        lost_writes_note_write(fd, from, (size_t)result, (uint64_t)at);
    return result;
}

/* A disk that hangs has nothing at once. */
ssize_t __real_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags);
ssize_t
__wrap_preadv2(int fd, const struct iovec *v, int n, off_t at, int flags)
{
    const bool hangs = disk_model_hangs();

    errno = EAGAIN;
    return hangs ? -1 : __real_preadv2(fd, v, n, at, flags);
}

int __real_openat(int fd, const char *path, int flags, ...);
int __wrap_openat(int fd, const char *path, int flags, ...);
int
__wrap_openat(int fd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    int result;

    if (flags & O_CREAT) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    result = (flags & (O_WRONLY | O_RDWR | O_CREAT) && is_read_only()) || fails("openat") ? -1 : __real_openat(fd, path, flags, mode);
    if (result >= 0 && flags & O_CREAT)
        lost_writes_note_create(fd, path);
    if (result >= 0)
        note_open(path);
    return result;
}

/* The real disk is not waited for: its loss of power is none that a test finds. */
static int
sync_file(const char *name, int fd)
{
    if (fails(name))
        return -1;
    lost_writes_note_sync(fd);
    return 0;
}

int __wrap_fdatasync(int fd);
int
__wrap_fdatasync(int fd)
{
    return sync_file("fdatasync", fd);
}

int __wrap_fsync(int fd);
int
__wrap_fsync(int fd)
{
    return sync_file("fsync", fd);
}
